"""Edge 1: a revision was ingested, so it is cut; a document was erased, so its chunks go."""

from __future__ import annotations

from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb

from services.chunker import codec
from services.chunker.bounds import embedding_bound
from services.chunker.ports import Contents, Cutter, Log
from services.kernel.envelope import Event
from services.kernel.erasures import erased_since
from services.kernel.errors import Corrupt, NotFound, Rejected
from services.topology import KNOWLEDGE

EVENTS = ("DocumentIngested", "DocumentErased")


class Chunking:
    """The step."""

    def __init__(self, *, log: Log, contents: Contents, cutter: Cutter) -> None:
        self._log = log
        self._contents = contents
        self._cutter = cutter

    async def handle(self, event: Event) -> None:
        """Handle one event; the same event again changes nothing.

        Args:
            event: DocumentIngested or DocumentErased.

        Raises:
            Rejected: When the chunk settings are out of range.
            NotFound: When the source pack is gone and the document wasn't erased.
            Corrupt: When the source pack isn't what ingest writes.
            Unavailable: When the log or the store doesn't answer.
        """
        message = event.message
        if isinstance(message, ingest_pb.DocumentErased):
            await self._contents.erase_chunks(codec.address(event.crate, message))
        elif isinstance(message, ingest_pb.DocumentIngested):
            await self._cut(event, message)

    async def _cut(self, event: Event, message: ingest_pb.DocumentIngested) -> None:
        key = f"{message.document_id}:{message.revision}:chunked:{message.settings_digest}"
        if event.repeated and await self._log.stands(
            crate=event.crate, aggregate=event.aggregate, name="DocumentChunked", key=key
        ):
            return
        at = codec.address(event.crate, message)
        try:
            sizes = codec.sizes(message.chunking, max_input_chars=await embedding_bound(self._log, event.crate))
        except ValueError as error:
            raise Rejected(f"{message.document_id} revision {message.revision}: {error}") from error
        try:
            parts = await self._contents.source(at, message.source.id)
        except NotFound:
            if await erased_since(self._log, event):
                return
            raise
        try:
            count, chunks = await self._cutter.cut(parts, sizes)
        except ValueError as error:
            raise Corrupt(
                f"source pack of {message.document_id} revision {message.revision} can't be cut ({error}): "
                "ingest the document again"
            ) from error
        pack = await self._contents.write_chunks(at, chunks) if count else None
        # Only now: whoever erases from here on finds our pack.
        if pack and await erased_since(self._log, event):
            await self._contents.erase_chunks(at)
            return
        fact = codec.chunked(message, count, pack)
        appended = await self._log.append_once(crate=event.crate, aggregate=event.aggregate, message=fact, key=key)
        if pack and appended.duplicate and not await self._named(fact, appended.position):
            await self._contents.remove_chunks(at, pack[0])

    async def _named(self, fact: chunker_pb.DocumentChunked, position: int) -> bool:
        """Whether the fact that stood already is ours, confirmed late, and not another one's with its own pack."""
        standing = await self._log.at(KNOWLEDGE, position)
        return isinstance(standing, Event) and standing.message == fact
