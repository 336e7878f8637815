"""The command line as a user runs it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from services.kernel.addresses import holder

AFFIDAVIT = str(Path(sysconfig.get_path("scripts")) / "affidavit")
FAST = {"AFFIDAVIT_EMBEDDER_MODEL": "hash-384"}
_STOP_S = 30


def run(*arguments: str, data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a data folder; it may fail."""
    variables = dict(os.environ) | FAST | {"AFFIDAVIT_DATA_DIR": str(data_dir)} | environment
    return subprocess.run([AFFIDAVIT, *arguments], env=variables, capture_output=True, text=True, check=False)  # noqa: S603


def start(*arguments: str, data_dir: Path) -> subprocess.Popen[bytes]:
    """Start a command on a data folder and don't wait for it."""
    variables = dict(os.environ) | FAST | {"AFFIDAVIT_DATA_DIR": str(data_dir)}
    silent = subprocess.DEVNULL
    return subprocess.Popen([AFFIDAVIT, *arguments], env=variables, stdout=silent, stderr=silent)  # noqa: S603


def result(*arguments: str, data_dir: Path) -> Any:
    """Run a command that must succeed, and read its JSON."""
    done = run(*arguments, "--json", data_dir=data_dir)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextlib.contextmanager
def up(data_dir: Path, *flags: str, environment: Mapping[str, str] = FAST) -> Iterator[subprocess.Popen[str]]:
    """A node that runs while the block does, and stops cleanly unless the block killed it."""
    command = [AFFIDAVIT, "up", "--json", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0", *flags]
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, text=True, env=dict(os.environ) | dict(environment)
    )
    assert process.stdout is not None
    lines = ""
    for line in process.stdout:
        lines += line
        with contextlib.suppress(ValueError):
            json.loads(lines)
            break
    try:
        yield process
    finally:
        killed = process.poll() is not None
        process.send_signal(signal.SIGTERM)
        code = process.wait(_STOP_S)
        process.stdout.close()
    assert killed or code == 0


@contextlib.contextmanager
def beside(data_dir: Path, *roles: str) -> Iterator[str]:
    """Address of a process that runs roles beside a running node, as long as the block does."""
    process = subprocess.Popen(  # noqa: S603
        [AFFIDAVIT, "run", *roles, "--data-dir", str(data_dir)],
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | FAST,
    )
    assert process.stderr is not None
    told = process.stderr.readline()
    address = told.removeprefix("serving on ").split(": ")[0]
    port = int(address.rsplit(":", 1)[1])
    try:
        assert eventually(lambda: holder(port) is not None), told
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(_STOP_S)
        process.stderr.close()
    assert code == 0


def children_of(data_dir: Path) -> dict[str, int]:
    """Processes that a node has started on its data folder: servers by program name, roles as "run chunker"."""
    found: dict[str, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().split(b"\0")
                if any(f"{data_dir}/".encode() in part for part in command[1:]):
                    module = command[command.index(b"-m") + 1] if b"-m" in command else command[0]
                    found.setdefault(re.split(r"[./]", module.decode())[-1], int(entry.name))
                elif b"run" in command and str(data_dir).encode() in command:
                    found.setdefault(f"run {command[command.index(b'run') + 1].decode()}", int(entry.name))
    return found


def let_through(folder: Path) -> None:
    """Open the way to a folder for the user that Postgres runs as."""
    for parent in (folder, *folder.parents):
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o001)


def eventually(condition: Any, within_s: float = 20) -> bool:
    """Wait for a condition."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return bool(condition())
