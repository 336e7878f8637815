"""Processes end when they must, whatever they are doing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.cli.doctor import _name_on

BUSY = "import threading; threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()"
# A node that is told to stop while a thread of it never ends.
DRAINS = f"""
import asyncio, os, signal
from services.embedded.node import _stop_event
{BUSY}
async def main():
    stopping = _stop_event(0.1)
    os.kill(os.getpid(), signal.SIGTERM)
    await stopping.wait()
asyncio.run(main())
"""
# A parent that starts a child by spawn, as the chunker does, prints its id and waits.
PARENT = """
import multiprocessing, os, time
from services.chunker.adapters.cutter_process import end_with
from concurrent.futures import ProcessPoolExecutor
pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=end_with, initargs=(os.getpid(),))
print(pool.submit(os.getpid).result(), flush=True)
time.sleep(60)
"""


def test_a_drain_that_a_thread_holds_up_comes_to_an_end() -> None:
    done = subprocess.run([sys.executable, "-c", DRAINS], timeout=60, check=False, capture_output=True, text=True)  # noqa: S603
    assert (done.returncode, done.stderr.count("not everything ended in time")) == (0, 1)


def test_a_cutting_process_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:  # noqa: S603
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    # What nobody waits for stays as a zombie where process 1 reaps nothing.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python -m services.cli run chunker embedder --data-dir /d --listen 127.0.0.1:1", "chunker embedder"),
        ("python -m services.cli run chunker --data-dir /data --listen 127.0.0.1:1", ""),
        ("/bin/nats-server -c /d/nats/nats-server.conf", "nats-server"),
        ("python /bin/affidavit ask --data-dir /d", ""),
        ("python -m services.cli run chunker", ""),
        ("sleep 1", ""),
    ],
)
def test_processes_of_a_node_are_known_by_their_arguments(command: str, name: str) -> None:
    assert _name_on(Path("/d"), command.split()) == name
