"""Reads bodies beside the event loop: small ones in threads, large ones in a process of their own."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import replace
from typing import Final

from services.ingest.adapters import reader
from services.ingest.adapters.reader import LENGTHS, Refusal, Task
from services.ingest.domain.documents import Prepared
from services.ingest.domain.headers import Header
from services.ingest.domain.normalize import InvalidDocument
from services.kernel.errors import Unavailable
from services.kernel.turns import FairTurns

_PIECE_BYTES: Final = 1024 * 1024
# Not run as a module: what is pickled must be of the same classes at both ends.
_PROGRAM: Final = "from services.ingest.adapters.reader import main; main()"


class ProcessPreparer:
    """See `Preparer`."""

    def __init__(self, *, thread_above_bytes: int, process_above_bytes: int, recycle_above_bytes: int) -> None:
        """Keep the limits.

        Args:
            thread_above_bytes: Smaller bodies are read at once: less work than handing them over.
            process_above_bytes: Larger bodies are read one by one in a process, since they would hold up everything.
            recycle_above_bytes: After a larger body the process ends, so that its memory goes back to the system.
        """
        self._thread_above = thread_above_bytes
        self._process_above = process_above_bytes
        self._recycle_above = recycle_above_bytes
        self._turns = FairTurns(total=1, per_crate=1)
        self._process: Process | None = None

    async def prepare(self, crate_id: str, header: Header, body: bytes) -> Prepared:
        """See `Preparer`."""
        task = Task(crate_id, header)
        if len(body) <= self._thread_above:
            return reader.read(task, body)
        if len(body) <= self._process_above:
            return await asyncio.to_thread(reader.read, task, body)
        async with self._turns.of(crate_id):
            return await self._in_process(task, body)

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _in_process(self, task: Task, body: bytes) -> Prepared:
        whole = False
        try:
            answer, raw = await self._exchange(task, body)
            whole = True
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Unavailable(
                f"the process that read {task.header.source_id!r} ({len(body)} bytes) ended early, perhaps for want "
                "of memory: free some and send it again"
            ) from error
        finally:
            # Half a message on the pipe, also after a cancellation, would be taken for the next one's.
            if not whole or len(body) > self._recycle_above:
                await asyncio.shield(self.close())
        if isinstance(answer, Refusal):
            raise InvalidDocument(answer.message)
        if not isinstance(answer, Prepared):
            raise TypeError("the reading process isn't ours")
        return replace(answer, normalized=raw)

    async def _exchange(self, task: Task, body: bytes) -> tuple[object, bytes]:
        if self._process is None or self._process.returncode is not None:
            # In a session of its own: an interrupt at the terminal is the server's, which then closes the pipe.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-c", _PROGRAM, stdin=PIPE, stdout=PIPE, start_new_session=True
            )
        source, target = self._process.stdout, self._process.stdin
        if source is None or target is None:
            raise OSError("the reading process has no pipes")
        head, raw = reader.pack(task, body)
        target.write(head)
        for start in range(0, len(raw), _PIECE_BYTES):
            target.write(raw[start : start + _PIECE_BYTES])
            await target.drain()
        await target.drain()
        value_bytes, raw_bytes = LENGTHS.unpack(await source.readexactly(LENGTHS.size))
        answer = reader.unpack(await source.readexactly(value_bytes))
        return answer, await source.readexactly(raw_bytes)
