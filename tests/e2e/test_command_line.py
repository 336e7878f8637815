"""The command line on inputs that went wrong once: names, terminals, files, erased documents, lost keys, orphans."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2, ingest_service_pb2_grpc, settings_pb2

from services.embedded.folder import Endpoints
from tests.e2e.commands import AFFIDAVIT, FAST, children_of, eventually, let_through, result, run, up

ESCAPE = "\x1b[2J\u202e"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data folder of a running node."""
    folder = tmp_path_factory.mktemp("command-line")
    let_through(folder)
    with up(folder / "data", environment=FAST | {"AFFIDAVIT_ALLOW_LOOPBACK_PROVIDERS": "true"}):
        yield folder / "data"


@pytest.fixture
def crate(data_dir: Path, request: pytest.FixtureRequest) -> str:
    """An empty crate with the test's name."""
    name = str(request.node.name).replace("_", "-")[:40]
    result("crate", "create", name, data_dir=data_dir)
    return name


def test_the_same_bytes_elsewhere_are_the_same_document(data_dir: Path, crate: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("The depot opens at seven.")
    assert result("ingest", str(tmp_path / "one"), "--crate", crate, data_dir=data_dir)["outcomes"] == {"created": 1}
    assert result("ingest", str(tmp_path / "two"), "--crate", crate, data_dir=data_dir)["outcomes"] == {"unchanged": 1}
    other = result("ingest", str(tmp_path / "two"), "--prefix", "two/", "--crate", crate, data_dir=data_dir)
    assert [document["source_id"] for document in other["documents"]] == ["two/a.md"]
    refused = run("ingest", str(tmp_path / "one"), str(tmp_path / "two"), "--crate", crate, data_dir=data_dir)
    assert refused.returncode == 3
    assert "--prefix" in refused.stderr


def test_a_name_that_is_no_text_costs_that_file_only(data_dir: Path, crate: str, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("The depot opens at seven.")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("x")
    os.mkfifo(tmp_path / "fifo")
    done = run("ingest", str(tmp_path), "--crate", crate, data_dir=data_dir)
    assert done.returncode == 8
    assert "2 files: 1 created, 1 refused" in done.stdout
    assert r"refused: caf\xe9.md: " in done.stderr
    assert f"skipped: {tmp_path / 'fifo'} is a pipe" in done.stderr
    told = run("ingest", str(tmp_path), "--json", "--crate", crate, data_dir=data_dir)
    assert json.loads(told.stdout)["refused"][0]["source_id"] == r"caf\xe9.md"
    assert json.loads(told.stderr)["error"]["code"] == "partial"


@pytest.mark.parametrize(
    "command", [["ask"], ["search"], ["documents"], ["retire"], ["receipt", "show"], ["crate", "show"]]
)
def test_arguments_that_are_no_text_are_refused(data_dir: Path, command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603
        [AFFIDAVIT, *command, b"\xff what", "--data-dir", str(data_dir)], capture_output=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr.startswith(rb"error: '\xff what' is not UTF-8")


def test_documents_cannot_drive_the_terminal(data_dir: Path, crate: str) -> None:
    endpoints = Endpoints.read(data_dir)
    with grpc.insecure_channel(endpoints.listen) as channel:
        stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
        header = ingest_service_pb2.DocumentHeader(source_id="a.md", title=f"Depot {ESCAPE}", media_type="text/plain")
        text = f"The Aldgate depot {ESCAPE} opens at seven."
        request = ingest_service_pb2.PutDocumentRequest(crate_id=crate, header=header, body=text.encode())
        stub.PutDocument(request)
    assert eventually(lambda: "searchable" in run("documents", "--crate", crate, data_dir=data_dir).stdout)
    shown = [
        run(*command, "--crate", crate, data_dir=data_dir).stdout
        for command in (["documents"], ["search", "depot"], ["ask", "When does the Aldgate depot open?"])
    ]
    for out in shown:
        assert "a.md" in out
        assert not {"\x1b", "\u202e"} & set(out)
    told = run("search", "depot", "--json", "--crate", crate, data_dir=data_dir)
    assert not {"\x1b", "\u202e"} & set(told.stdout)
    assert "\u202e" in json.dumps(json.loads(told.stdout), ensure_ascii=False)


def test_an_answer_is_shown_though_its_receipt_cannot_be_written(data_dir: Path, crate: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The Aldgate depot opens at seven.")
    result("ingest", str(tmp_path / "a.md"), "--crate", crate, data_dir=data_dir)
    question = ("ask", "When does the Aldgate depot open?", "--crate", crate, "--receipt")
    done = run(*question, str(tmp_path / "nowhere" / "r"), data_dir=data_dir)
    assert done.returncode == 1
    assert "seven" in done.stdout
    assert "nowhere/r can't be written" in done.stderr
    assert run(*question, str(tmp_path / "r"), data_dir=data_dir).stdout.rstrip().endswith(f"written to {tmp_path}/r")
    keys = run("receipt", "keys", "-o", str(tmp_path / "nowhere" / "k"), "--crate", crate, data_dir=data_dir)
    assert keys.returncode == 1
    assert "can't be written" in keys.stderr


def test_retiring_says_what_happened_before(data_dir: Path, crate: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The depot opens at seven.")
    result("ingest", str(tmp_path / "a.md"), "--crate", crate, data_dir=data_dir)
    assert "retired at" in run("retire", "a.md", "--crate", crate, data_dir=data_dir).stdout
    assert "was retired already" in run("retire", "a.md", "--crate", crate, data_dir=data_dir).stdout
    assert "erased at" in run("erase", "a.md", "--yes", "--crate", crate, data_dir=data_dir).stdout
    assert "was erased" in run("retire", "a.md", "--crate", crate, data_dir=data_dir).stdout


def test_conflicts_name_commands(data_dir: Path, crate: str) -> None:
    again = run("crate", "create", crate, data_dir=data_dir)
    assert again.returncode == 6
    assert "`affidavit crate set`" in again.stderr


class NoModel(http.server.BaseHTTPRequestHandler):
    """A provider that doesn't have the model."""

    def do_POST(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[settings_pb2.Provider]:
    """An embedding provider that refuses everything."""
    with http.server.HTTPServer(("127.0.0.1", 0), NoModel) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield settings_pb2.Provider(
            role=settings_pb2.PROVIDER_ROLE_EMBEDDING,
            kind=settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE,
            enabled=True,
            base_url=f"http://127.0.0.1:{server.server_port}/v1",
            model="other",
            dimension=8,
        )
        server.shutdown()
        thread.join()


def test_doctor_names_failures_and_broken_providers(
    data_dir: Path, tmp_path: Path, provider: settings_pb2.Provider
) -> None:
    assert run("doctor", data_dir=data_dir).returncode == 0
    with grpc.insecure_channel(Endpoints.read(data_dir).listen) as channel:
        request = ingest_service_pb2.CreateCrateRequest(crate_id="no-model", providers=[provider])
        ingest_service_pb2_grpc.IngestServiceStub(channel).CreateCrate(request)
    (tmp_path / "a.md").write_text("The depot opens at seven.")
    done = run("ingest", str(tmp_path / "a.md"), "--crate", "no-model", data_dir=data_dir)
    assert done.returncode == 8
    assert "1 file: 1 created" in done.stdout
    found = run("doctor", data_dir=data_dir)
    assert found.returncode == 1
    assert "failures: crate no-model has 1 given up, for example a.md by embedder" in found.stdout
    assert "embedding provider: the provider of crate no-model doesn't embed" in found.stdout
    result("retire", "a.md", "--crate", "no-model", data_dir=data_dir)
    assert "failures: " not in run("doctor", data_dir=data_dir).stdout


def test_a_broken_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "affidavit.toml").write_text("bogus = [")
    refused = run("up", data_dir=tmp_path)
    assert refused.returncode == 3
    assert "affidavit.toml" in refused.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "affidavit.toml"]
    found = run("doctor", data_dir=tmp_path)
    assert found.returncode == 1
    assert "settings: " in found.stdout
    assert "affidavit.toml is not valid TOML" in found.stdout


def test_addresses_are_checked_before_anything_is_made(tmp_path: Path) -> None:
    for address in ("0.0.0.0:7401", "127.0.0.1:99999"):
        refused = run("up", "--listen", address, data_dir=tmp_path / "data")
        assert refused.returncode == 3
        assert address in refused.stderr
    assert not (tmp_path / "data").exists()


def test_up_warns_of_a_lost_key(tmp_path: Path) -> None:
    let_through(tmp_path)
    data_dir = tmp_path / "data"
    (tmp_path / "a.md").write_text("The Aldgate depot opens at seven.")
    with up(data_dir):
        result("ingest", str(tmp_path / "a.md"), data_dir=data_dir)
        result("ask", "When does the Aldgate depot open?", data_dir=data_dir)
    shutil.rmtree(data_dir / "keys")
    command = [AFFIDAVIT, "up", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:  # noqa: S603
        assert node.stdout is not None
        lines = [node.stdout.readline() for _ in range(4)]
        node.send_signal(signal.SIGTERM)
    assert lines[2].startswith("warning: no receipt can be signed: ")
    assert lines[3] == "ready\n"


def test_a_worker_ends_with_its_node_whatever_it_does(tmp_path: Path) -> None:
    let_through(tmp_path)
    data_dir = tmp_path / "data"
    with up(data_dir) as node:
        worker = children_of(data_dir)["run chunker"]
        # Stopped in the middle of something, it can't obey a signal that it must handle itself.
        os.kill(worker, signal.SIGSTOP)
        os.kill(node.pid, signal.SIGKILL)
        node.wait()
        assert eventually(lambda: not Path(f"/proc/{worker}").exists(), within_s=5)


def test_doctor_finds_an_orphaned_role(tmp_path: Path) -> None:
    let_through(tmp_path)
    data_dir = tmp_path / "data"
    with up(data_dir):
        pass
    command = [sys.executable, "-m", "services.cli", "run", "chunker", "embedder", "--data-dir", str(data_dir)]
    # It waits for servers that aren't there.
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as orphan:  # noqa: S603
        found = run("doctor", "--listen", "127.0.0.1:0", data_dir=data_dir)
        orphan.terminate()
    assert found.returncode == 1
    assert f"orphaned process: chunker embedder (pid {orphan.pid}) still runs" in found.stdout
