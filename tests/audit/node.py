"""A running node to audit: one that is there already, or one started for this run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def node(*, address: str = "", cache: Path | None = None, data_dir: Path | None = None) -> Iterator[str]:
    """Give the address of a node.

    Args:
        address: A running node's; empty starts one.
        cache: Folder where vectors are kept between runs.
        data_dir: Folder of the started node; a temporary one by default.

    Yields:
        host:port of all services.
    """
    if address:
        yield address
        return
    environment = dict(os.environ) | ({"AFFIDAVIT_EMBED_CACHE_DIR": str(cache)} if cache else {})
    with started(environment=environment, data_dir=data_dir) as (found, _):
        yield found


@contextlib.contextmanager
def started(*, environment: Mapping[str, str], data_dir: Path | None = None) -> Iterator[tuple[str, int]]:
    """Start a node, stop it at the end.

    Args:
        environment: Its environment.
        data_dir: Its folder; a temporary one by default.

    Yields:
        Address of all services, and the process id.
    """
    with contextlib.ExitStack() as stack:
        folder = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="affidavit-audit-")))
        folder.chmod(0o755)
        command = [str(Path(sysconfig.get_path("scripts")) / "affidavit"), "up", "--json"]
        command += ["--data-dir", str(folder), "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)  # noqa: S603
        stack.callback(_stop, process)
        yield _address(process), process.pid


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    lines = ""
    for line in process.stdout:
        lines += line
        with contextlib.suppress(ValueError):
            return str(json.loads(lines)["address"])
    raise RuntimeError(f"affidavit up ended with code {process.wait()}: its output above says why")


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    if process.stdout is not None:
        process.stdout.close()
