"""The house's rules that no linter knows."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import generate
from services import topology

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ROOT / "services"
SERVICE_FILES = ("README.md", "main.py", "servicer.py", "settings.py")
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 50


def modules() -> Iterator[Path]:
    for top in ("services", "tests", "docs"):
        yield from sorted((ROOT / top).rglob("*.py"))
    yield from sorted((ROOT / "protos" / "gen" / "affidavit" / "verify").rglob("*.py"))


def test_no_module_is_too_long() -> None:
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in long.items() if lines > MAX_MODULE_LINES} == {}


def test_no_function_is_too_long() -> None:
    long = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{node.name}"] = lines
    assert long == {}


@pytest.mark.parametrize("role", topology.ROLE_NAMES)
def test_every_service_has_the_same_files(role: str) -> None:
    for name in SERVICE_FILES:
        assert (SERVICES / role / name).is_file(), f"services/{role}/{name} is missing"
    for name in ("domain", "ports", "codec", "adapters"):
        assert (SERVICES / role / name).is_dir() or (SERVICES / role / f"{name}.py").is_file(), f"{role}: {name}"


def test_only_main_imports_adapters() -> None:
    offenders = []
    for role in topology.ROLE_NAMES:
        for path in (SERVICES / role).rglob("*.py"):
            relative = path.relative_to(SERVICES / role)
            if relative.name == "main.py" or relative.parts[0] == "adapters":
                continue
            offenders += [
                f"{role}/{relative}: {name}" for name in imports(path) if name.startswith(f"services.{role}.adapters")
            ]
    assert offenders == []


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


HEAVY = {
    "onnxruntime": "services/embedder/adapters",
    "tokenizers": "services/embedder/adapters",
    "qdrant_edge": "services/index/adapters",
    "tantivy": "services/index/adapters",
    "nacl": "services/receipt/adapters",
    "asyncpg": "adapters",
    "httpx": "services/embedder/adapters",
}


@pytest.mark.parametrize(("package", "home"), HEAVY.items())
def test_heavy_packages_stay_in_their_adapters(package: str, home: str) -> None:
    offenders = [
        str(path.relative_to(ROOT))
        for path in SERVICES.rglob("*.py")
        if home not in str(path) and "kernel" not in path.parts
        for name in imports(path)
        if name.split(".")[0] == package
    ]
    assert offenders == []


def test_every_rpc_has_a_grant_and_its_service_is_served_once() -> None:
    served = [name for role in topology.ROLES for name in role.serves]
    assert len(served) == len(set(served)) == len(topology.ROLES)
    for name in served:
        package, service = name.rsplit(".", 1)
        module = importlib.import_module(f"{package}.{package.split('.')[1]}_service_pb2")
        for method in module.DESCRIPTOR.services_by_name[service].methods:
            assert topology.rpc_grant(f"/{name}/{method.name}") in {"reader", "writer", "owner"}


def test_every_event_has_its_message_and_its_emitter() -> None:
    for row in generate.rows():
        assert generate.message_class(row).DESCRIPTOR.full_name == row.type_uri
        assert row.service in topology.ROLE_NAMES


def test_asyncapi_lists_exactly_the_topology() -> None:
    document = json.loads((generate.REFERENCE / "asyncapi.json").read_text())
    listed = {name for name in document["channels"] if name not in ("submit", "submit-reply", "progress")}
    assert listed == {f"{row.service}.{row.name}" for row in generate.rows()}
    assert document == generate.asyncapi()


def test_topology_page_is_current() -> None:
    assert (generate.REFERENCE / "topology.md").read_text() == generate.topology_page()
