"""What the chunker needs from the outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from google.protobuf.message import Message

from services.chunker.domain.chunking import Sizes
from services.chunker.domain.document import RevisionAddress
from services.kernel.bus import Appended
from services.kernel.envelope import Event, Poison


class Log(Protocol):
    """The log, as the kernel's bus gives it."""

    async def last_named(
        self, *, crate: str, service: str, aggregate: str, name: str, stream: str | None = None
    ) -> Event | None:
        """The last event of one kind of an aggregate, or None."""

    async def recent(self, *, crate: str, service: str, aggregate: str) -> Event | None:
        """The last event of an aggregate as it was within the last second, or None."""

    async def at(self, stream: str, position: int) -> Event | Poison | None:
        """The event at a position."""

    async def stands(self, *, crate: str, aggregate: str, name: str, key: str) -> bool:
        """Whether a fact of this role stands in the log."""

    async def append_once(self, *, crate: str, aggregate: str, message: Message, key: str) -> Appended:
        """Append unless the aggregate's last event has this key."""


class Cutter(Protocol):
    """Cuts documents."""

    async def cut(self, parts: Mapping[str, bytes], sizes: Sizes) -> tuple[int, bytes]:
        """Cut a document without holding up other work.

        Args:
            parts: Of its source pack, by name.
            sizes: How it is cut.

        Returns:
            Number of chunks, and the encoded ChunkSet; empty when there is no chunk.

        Raises:
            ValueError: When the parts aren't what ingest writes.
            Unavailable: When the work could not be done, for example for want of memory.
        """


class Contents(Protocol):
    """Content of documents."""

    async def source(self, at: RevisionAddress, pack_id: bytes) -> Mapping[str, bytes]:
        """Read the parts of a source pack.

        Args:
            at: Revision.
            pack_id: 32 bytes.

        Returns:
            Parts by name.

        Raises:
            NotFound: When the pack is gone.
            Corrupt: When it isn't what was written.
        """

    async def write_chunks(self, at: RevisionAddress, chunks: bytes) -> tuple[bytes, int]:
        """Store a revision's chunks durably.

        Args:
            at: Revision.
            chunks: Encoded ChunkSet.

        Returns:
            Pack id and its size in bytes.

        Raises:
            Unavailable: When the store can't write.
        """

    async def remove_chunks(self, at: RevisionAddress, pack_id: bytes) -> None:
        """Delete one chunks pack that no event names.

        Args:
            at: Revision.
            pack_id: 32 bytes.

        Raises:
            Unavailable: When the store can't delete.
        """

    async def erase_chunks(self, at: RevisionAddress) -> None:
        """Delete every chunks pack of this revision and the ones before it.

        Args:
            at: Newest revision that goes.
        """
