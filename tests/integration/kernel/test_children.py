"""Processes of a node that end before they answer."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from services.embedded import processes
from services.embedded.children import NatsServer
from services.embedded.processes import Child
from services.kernel.errors import Unavailable
from tests.conftest import owned


class Sleeper(Child):
    """Answers from its nth start on; before, it says so and ends by a signal."""

    def __init__(self, log: Path, *, answers_at: int) -> None:
        super().__init__(name="sleeper", log=log)
        self._answers_at = answers_at
        self.starts = 0

    def command(self) -> Sequence[Path | str]:
        self.starts += 1
        end = "time.sleep(60)" if self.starts >= self._answers_at else "os.kill(os.getpid(), 9)"
        script = f"import os, time; print('start {self.starts}', flush=True); {end}"
        return [Path(sys.executable), "-c", script]

    async def ready(self) -> bool:
        return self.starts >= self._answers_at


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_START_PAUSE_S", 0.01)


async def test_a_child_that_is_killed_while_it_starts_is_started_again(tmp_path: Path) -> None:
    child = Sleeper(tmp_path / "log", answers_at=3)
    await child.start()
    assert (child.alive, child.starts) == (True, 3)
    child.stop()


async def test_one_that_never_starts_is_told_with_the_log_of_this_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a fault of last week\n")
    child = Sleeper(log, answers_at=9)
    with pytest.raises(Unavailable) as refused:
        await child.start()
    assert child.starts == 3
    assert refused.value.message == (
        "sleeper did not start in 3 attempts (ended by signal 9); "
        f"its log {log} says of this start: start 1 | start 2 | start 3"
    )


async def test_a_server_that_is_killed_while_it_starts_is_started_again(tmp_path: Path) -> None:
    with owned(tmp_path / "data") as folder:
        server = NatsServer(folder)
        killed: list[int] = []
        ready = NatsServer.ready

        async def kill_first() -> bool:
            if not killed:
                killed.append(server.pid)
                os.kill(server.pid, signal.SIGKILL)
                await asyncio.sleep(0.1)
                return False
            return await ready(server)

        server.ready = kill_first  # type: ignore[method-assign]  # the moment before it answers
        await server.start()
        port = server.port
        assert server.pid != killed[0]
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.sleep(0.1)
        assert not server.alive
        await server.start()
        assert (server.alive, server.port) == (True, port)
        server.stop()
