"""Owns the vector engine: starts it, talks to it, starts it again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from services.index.adapters.edge_engine import frames
from services.index.adapters.edge_engine.frames import FrameError, Header
from services.kernel.errors import Conflict, Corrupt, Failure, Rejected, Unavailable

_MODULE = "services.index.adapters.edge_engine"
_SOCKET = "vector-engine.sock"
_LONGEST_SOCKET_PATH = 100
_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 20.0
_DEATH_NOTICE_S = 2.0
_CALL_TIMEOUT_S = 120.0
_FAILURES: dict[str, type[Failure]] = {"rejected": Rejected, "conflict": Conflict, "corrupt": Corrupt}
_LOST = (OSError, asyncio.IncompleteReadError, FrameError)

T = TypeVar("T")


class EngineConnection:
    """One connection; its calls are answered in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def call(self, header: Header, body: bytes = b"", *, timeout_s: float | None = _CALL_TIMEOUT_S) -> Header:
        """Ask the engine for something.

        Args:
            header: The operation and what it needs.
            body: Raw float32.
            timeout_s: How long to wait for the answer; None for ever.

        Returns:
            The answer's header.

        Raises:
            Failure: The outcome that the engine names.
        """
        return await self.send(frames.encode(header, body), timeout_s=timeout_s)

    async def send(self, frame: tuple[bytes, bytes], *, timeout_s: float | None = _CALL_TIMEOUT_S) -> Header:
        """Like `call`, for an encoded frame."""
        async with asyncio.timeout(timeout_s):
            for piece in frame:
                self._writer.write(piece)
            await self._writer.drain()
            answer, _ = await frames.read(self._reader)
        if "error" in answer:
            raise _FAILURES.get(answer["error"], Unavailable)(f"vector engine: {answer['message']}")
        return answer

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


class VectorEngineProcess:
    """The engine's process and the connections to it.

    The engine ends when this process does, however that ends, since it reads from a pipe that only this process holds.
    """

    def __init__(self, *, root: Path, runtime_dir: Path, optimise_at: int = 20_000) -> None:
        self._root = root
        self._runtime_dir = runtime_dir
        self._optimise_at = optimise_at
        self._process: asyncio.subprocess.Process | None = None
        self._socket: Path | None = None
        self._idle: list[EngineConnection] = []
        self._starting = asyncio.Lock()
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """Process id of the running engine."""
        return self._process.pid if self._process is not None and self.is_alive() else None

    def is_alive(self) -> bool:
        """True while the engine runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the engine, unless it runs.

        Raises:
            Unavailable: When it doesn't come up; the message says why.
        """
        self._stopped = False
        await self._ensure_running()

    async def stop(self) -> None:
        """Let the engine flush and end. Stopping twice is harmless."""
        self._stopped = True
        async with self._starting:
            self._hang_up()
            process = self._process
            if process is not None:
                if process.stdin is not None:
                    process.stdin.close()
                await _wait_for_end(process)
            if self._socket is not None and self._socket.parent != self._runtime_dir:
                shutil.rmtree(self._socket.parent, ignore_errors=True)
            self._process = self._socket = None

    async def run(self, work: Callable[[EngineConnection], Awaitable[T]]) -> T:
        """Do something on a connection, and once more from the beginning when the engine dies meanwhile.

        Args:
            work: Calls of the engine that may be repeated as a whole.

        Returns:
            What the work returns.

        Raises:
            Unavailable: The engine is stopped, doesn't start, doesn't answer in time, or died twice.
        """
        try:
            return await self._attempt(work)
        except _LOST:
            await self._notice_death()
        try:
            return await self._attempt(work)
        except _LOST as error:
            await self._notice_death()
            raise Unavailable("the vector engine died twice in one call; look at its last messages") from error

    async def _attempt(self, work: Callable[[EngineConnection], Awaitable[T]]) -> T:
        await self._ensure_running()
        try:
            async with self._connection() as connection:
                return await work(connection)
        except TimeoutError as error:
            raise Unavailable("the vector engine doesn't answer in time; try again, or restart the index") from error

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[EngineConnection]:
        connection = self._idle.pop() if self._idle else await self._connect()
        process = self._process
        try:
            yield connection
        except Failure:
            # The engine answered, so the connection is in order.
            self._give_back(connection, process)
            raise
        except BaseException:
            connection.close()
            raise
        self._give_back(connection, process)

    async def _connect(self) -> EngineConnection:
        if self._socket is None:
            raise ConnectionError("the engine was stopped meanwhile")
        return EngineConnection(*await asyncio.open_unix_connection(self._socket))

    def _give_back(self, connection: EngineConnection, process: asyncio.subprocess.Process | None) -> None:
        if process is self._process and self.is_alive():
            self._idle.append(connection)
        else:
            connection.close()

    async def _notice_death(self) -> None:
        self._hang_up()
        if self._process is not None:
            try:
                async with asyncio.timeout(_DEATH_NOTICE_S):
                    await self._process.wait()
            except TimeoutError:
                # It lives: only the connection was lost.
                return

    async def _ensure_running(self) -> None:
        if self.is_alive():
            return
        async with self._starting:
            if self._stopped:
                raise Unavailable("the vector engine is stopped; start the index again")
            if not self.is_alive():
                self._hang_up()
                await self._spawn()

    async def _spawn(self) -> None:
        self._socket = self._socket or self._socket_path()
        arguments = ["--root", str(self._root), "--socket", str(self._socket), "--optimise-at", str(self._optimise_at)]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            _MODULE,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # One arena keeps the memory of a process that works in one thread small.
            env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        )
        ready = b""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_START_TIMEOUT_S):
                    ready = await process.stdout.readline() if process.stdout is not None else b""
        finally:
            if ready != b"ready\n" and process.returncode is None:
                process.kill()
        if ready != b"ready\n":
            raise Unavailable(
                f"the vector engine on {self._root} didn't start (status {await process.wait()}); "
                "look at its messages in the log"
            )
        self._process = process

    def _socket_path(self) -> Path:
        self._runtime_dir.mkdir(parents=True, exist_ok=True)
        path = self._runtime_dir / _SOCKET
        if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
            return path
        # The system allows 107 bytes for a socket's path, however deep the data folder lies.
        return Path(tempfile.mkdtemp(prefix="affidavit-")) / _SOCKET

    def _hang_up(self) -> None:
        while self._idle:
            self._idle.pop().close()


async def _wait_for_end(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
