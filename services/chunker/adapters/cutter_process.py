"""Cuts beside the event loop: small texts at once, larger ones in threads, the largest in a process of their own."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from services.chunker import codec
from services.chunker.domain.chunking import Sizes, chunk
from services.kernel.errors import Unavailable

_USED_PARTS = ("normalized", "manifest")
_PR_SET_PDEATHSIG = 1


def cut(parts: Mapping[str, bytes], sizes: Sizes) -> tuple[int, bytes]:
    """Cut a document; runs in a thread or in another process.

    Args:
        parts: Of its source pack.
        sizes: How it is cut.

    Returns:
        Number of chunks and the encoded ChunkSet.

    Raises:
        ValueError: When the parts aren't what ingest writes.
    """
    document, description = codec.source(parts)
    chunks = chunk(document, size_chars=sizes.size_chars, overlap_chars=sizes.overlap_chars)
    # Encoded where it was made: a large document's chunks are too much to hand over object by object.
    return len(chunks), codec.chunk_set(chunks, document, description, sizes.notices) if chunks else b""


def end_with(parent: int) -> None:
    """Have this process end with its parent: it would wait for work for ever otherwise.

    Args:
        parent: Process id.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It ended before the line above took effect.
        os._exit(1)


class ProcessCutter:
    """See `Cutter`."""

    def __init__(self, *, thread_above_bytes: int, process_above_bytes: int) -> None:
        """Keep the limits.

        Args:
            thread_above_bytes: Smaller texts are cut at once: less work than handing them over.
            process_above_bytes: Larger texts are cut in a process, since they would hold up everything else.
        """
        self._thread_above = thread_above_bytes
        self._process_above = process_above_bytes
        self._turn = asyncio.Semaphore(1)

    async def cut(self, parts: Mapping[str, bytes], sizes: Sizes) -> tuple[int, bytes]:
        """See `Cutter`."""
        used = {name: parts[name] for name in _USED_PARTS if name in parts}
        size_bytes = sum(map(len, used.values()))
        if size_bytes <= self._thread_above:
            return cut(used, sizes)
        if size_bytes <= self._process_above:
            return await asyncio.to_thread(cut, used, sizes)
        async with self._turn:
            return await self._in_process(used, sizes, size_bytes)

    async def _in_process(self, parts: Mapping[str, bytes], sizes: Sizes, size_bytes: int) -> tuple[int, bytes]:
        # One process per text: its memory goes back to the system, and a crash takes nothing else along.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(os.getpid(), theirs, parts, sizes), daemon=True)
        unwanted = threading.Event()
        try:
            answer = await asyncio.to_thread(_exchange, process, ours, theirs, unwanted)
        except (EOFError, OSError) as error:
            raise Unavailable(
                f"the process that cut a text of {size_bytes} bytes ended early, perhaps for want of memory: "
                "it is tried again"
            ) from error
        finally:
            # Also after a cancellation: nobody waits for a cut that nobody wants. The thread then meets the pipe's end.
            unwanted.set()
            if process.pid is not None:
                process.kill()
        if isinstance(answer, ValueError):
            raise answer
        return answer


def _exchange(
    process: SpawnProcess, ours: Connection, theirs: Connection, unwanted: threading.Event
) -> tuple[int, bytes] | ValueError:
    with ours:
        with theirs:
            process.start()
        if unwanted.is_set():
            process.kill()
        try:
            answer: tuple[int, bytes] | ValueError = ours.recv()
        finally:
            process.join()
        return answer


def _serve(parent: int, answers: Connection, parts: Mapping[str, bytes], sizes: Sizes) -> None:
    end_with(parent)
    try:
        answers.send(cut(parts, sizes))
    except ValueError as error:
        answers.send(error)
