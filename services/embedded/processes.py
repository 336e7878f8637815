"""Processes of a node: started, waited for, stopped and started again. None outlives its parent."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from services.kernel.errors import Unavailable

# Attempts of one start: somebody may end a process before it answers, or take the port that it was given.
STARTS = 3
STOP_S = 10.0
POLL_S = 0.01
_START_S = 60.0
_START_PAUSE_S = 0.5
_LAUNCHER = Path(__file__).with_name("launcher.py")


class Child:
    """A process of ours: started, waited for, stopped in its own orderly way, and restarted at the same address.

    Must be started from the main thread: the kernel ends it when the starting thread ends.

    Attributes:
        name: For messages.
        log: File that its output goes to.
        stop_signal: Asks it to stop.
        orphan_signal: Sent by the kernel when we have ended without stopping it.
    """

    stop_signal = signal.SIGTERM
    orphan_signal = signal.SIGTERM

    def __init__(self, *, name: str, log: Path, user: str | None = None) -> None:
        self.name = name
        self.log = log
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        self._told = 0.0
        # Where this start's output begins in the log.
        self._log_start = 0

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._process.pid if self._process else 0

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def command(self) -> Sequence[Path | str]:
        """Program and arguments."""
        raise NotImplementedError

    async def ready(self) -> bool:
        """Whether it answers."""
        raise NotImplementedError

    async def prepare(self) -> None:
        """What must be done before each start."""

    async def start(self) -> None:
        """Start it and wait until it answers; one that ends before it does is started again, a few times.

        Raises:
            Unavailable: When it doesn't; the message quotes what its log says of this start.
        """
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        for attempt in range(1, STARTS + 1):
            await self.prepare()
            if await self._answers():
                return
            if self.alive:
                await asyncio.to_thread(self.stop)
                raise Unavailable(f"{self.name} doesn't answer after {_START_S:.0f} s; {self._told_by_log()}")
            if attempt < STARTS:
                await asyncio.sleep(_START_PAUSE_S)
        raise Unavailable(
            f"{self.name} did not start in {STARTS} attempts ({_ending(self._process)}); {self._told_by_log()}"
        )

    async def _answers(self) -> bool:
        self._told = 0.0
        self._process = _spawn(self.command(), log=self.log, user=self._user, orphan_signal=self.orphan_signal)
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self.alive:
            if await self.ready():
                return True
            await asyncio.sleep(POLL_S)
        return False

    def _told_by_log(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            tail = log.read().decode(errors="replace").strip().splitlines()[-3:]
        return f"its log {self.log} says of this start: {' | '.join(tail) or 'nothing'}"

    def tell(self) -> None:
        """Tell it to stop, and don't wait: those that were told together end together."""
        if self._process is not None and self.alive and not self._told:
            self._process.send_signal(self.stop_signal)
            self._told = time.monotonic()

    def stop(self) -> None:
        """Stop it; kill it only when it doesn't within ten seconds after it was told."""
        if self._process is None or not self.alive:
            return
        self.tell()
        try:
            self._process.wait(max(self._told + STOP_S - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_S)


class Server(Child):
    """A server on a loopback port that nobody else uses; a restart keeps the port.

    Attributes:
        port: The port.
    """

    port = 0
    _known = False

    async def start(self) -> None:
        """See Child; the first start tries other ports, since another program may have been faster."""
        await super().start()
        self._known = True

    async def prepare(self) -> None:
        """See Child."""
        if not self._known:
            self.port = free_port()


def free_port() -> int:
    """A loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Identity(TypedDict, total=False):
    user: str
    group: int
    extra_groups: list[str]


def identity(user: str | None) -> _Identity:
    """Arguments that let a subprocess run as a user; none for None."""
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _ending(process: subprocess.Popen[bytes] | None) -> str:
    code = process.returncode if process else 0
    if code >= 0:
        return f"exit code {code}"
    return f"ended by signal {-code}"


def _spawn(
    command: Sequence[Path | str], *, log: Path, user: str | None, orphan_signal: signal.Signals
) -> subprocess.Popen[bytes]:
    launch = [sys.executable, "-I", "-S", str(_LAUNCHER), str(int(orphan_signal)), str(os.getpid()), user or ""]
    with log.open("ab") as output:
        try:
            return subprocess.Popen(  # noqa: S603  (our own binaries and arguments)
                [*launch, *(str(part) for part in command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"{command[0]} can't be started: {error}; install affidavit-server[embedded]") from error
