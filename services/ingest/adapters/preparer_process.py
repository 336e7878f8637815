"""Reads bodies beside the event loop: small ones in threads, large ones in a process of their own."""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from blake3 import blake3

from services.ingest.codec import content
from services.ingest.domain.documents import Form, Prepared
from services.ingest.domain.headers import MAX_TITLE_CHARS, Header, clean
from services.ingest.domain.normalize import normalize, source_domain
from services.kernel.errors import Unavailable


def read(crate_id: str, header: Header, body: bytes) -> Prepared:
    """Read a body; runs in a thread or in another process.

    Args:
        crate_id: Crate, the last resort for the source domain.
        header: Checked.
        body: Original bytes.

    Returns:
        What is in it.

    Raises:
        InvalidDocument: When it can't be read.
    """
    document = normalize(body, source_id=header.source_id, media_type=header.media_type, charset=header.charset)
    title, notices = clean("the document's title", header.title or document.title[:MAX_TITLE_CHARS])
    return Prepared(
        media_type=document.media_type,
        charset=document.charset,
        form=Form(document.form),
        title=title,
        metadata=document.metadata,
        source_domain=header.source_domain or source_domain(header.uri, header.source_id, crate_id),
        notices=(*document.notices, *notices),
        content_hash=blake3(body).digest(),
        size_bytes=len(body),
        # Serialised where it was made: a large document's structure is too much to hand over object by object.
        normalized=content.normalized_bytes(document, title),
    )


class ProcessPreparer:
    """See `Preparer`."""

    def __init__(self, *, thread_above_bytes: int, process_above_bytes: int, processes: int) -> None:
        """Keep the limits.

        Args:
            thread_above_bytes: Smaller bodies are read at once: less work than handing them over.
            process_above_bytes: Larger bodies are read in a process, since they would hold up everything else.
            processes: Processes at once; others wait for their turn.
        """
        self._thread_above = thread_above_bytes
        self._process_above = process_above_bytes
        self._turns = asyncio.Semaphore(processes)

    async def prepare(self, crate_id: str, header: Header, body: bytes) -> Prepared:
        """See `Preparer`."""
        if len(body) <= self._thread_above:
            return read(crate_id, header, body)
        if len(body) <= self._process_above:
            return await asyncio.to_thread(read, crate_id, header, body)
        async with self._turns:
            return await self._in_process(crate_id, header, body)

    async def _in_process(self, crate_id: str, header: Header, body: bytes) -> Prepared:
        # One process per body: its memory goes back to the system, and a crash takes nothing else along.
        pool = ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn"))
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, read, crate_id, header, body)
        except BrokenProcessPool as error:
            raise Unavailable(
                f"the process that read {header.source_id!r} ({len(body)} bytes) ended early, perhaps for want of "
                "memory: free some and send it again"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
