"""Contents in the kernel's pack store."""

from __future__ import annotations

from collections.abc import Mapping

from services.chunker.domain.document import RevisionAddress
from services.kernel.packs import PackStore

_PART = "chunks"


class PackContents:
    """See `Contents`."""

    def __init__(self, *, packs: PackStore) -> None:
        self._packs = packs

    async def source(self, at: RevisionAddress, pack_id: bytes) -> Mapping[str, bytes]:
        """See `Contents`."""
        return await self._packs.read(_prefix(at, at.revision, "source"), pack_id)

    async def write_chunks(self, at: RevisionAddress, chunks: bytes) -> tuple[bytes, int]:
        """See `Contents`."""
        ref = await self._packs.write(_prefix(at, at.revision, "chunks"), {_PART: chunks})
        return ref.id, ref.size_bytes

    async def remove_chunks(self, at: RevisionAddress, pack_id: bytes) -> None:
        """See `Contents`."""
        await self._packs.remove(_prefix(at, at.revision, "chunks"), pack_id)

    async def erase_chunks(self, at: RevisionAddress) -> None:
        """See `Contents`."""
        for revision in range(1, at.revision + 1):
            await self._packs.erase(_prefix(at, revision, "chunks"))


def _prefix(at: RevisionAddress, revision: int, step: str) -> str:
    return f"{at.crate_id}/{at.document_id}/{revision}/{step}"
