"""Disclosures in packs."""

from __future__ import annotations

from collections.abc import Mapping

from services.kernel.packs import PackRef, PackStore
from services.receipt.ports import Gone


def answer_prefix(crate: str, receipt_id: bytes) -> str:
    """Where the pack of a receipt's question and answer lies."""
    return f"{crate}/{receipt_id.hex()}/answer"


def evidence_prefix(crate: str, document_id: str, revision: int) -> str:
    """Where packs of a revision's evidence lie: below the document, so that erasing the document takes them along."""
    return f"{crate}/{document_id}/{revision}/evidence"


class PackedDisclosures:
    """Disclosures in the node's pack store."""

    def __init__(self, *, packs: PackStore) -> None:
        self._packs = packs

    async def write_answer(self, crate: str, receipt_id: bytes, parts: Mapping[str, bytes]) -> PackRef:
        """See DisclosureStore."""
        return await self._packs.write(answer_prefix(crate, receipt_id), parts)

    async def write_evidence(self, crate: str, document_id: str, revision: int, parts: Mapping[str, bytes]) -> PackRef:
        """See DisclosureStore."""
        return await self._packs.write(evidence_prefix(crate, document_id, revision), parts)

    async def read_answer(self, crate: str, receipt_id: bytes, pack_id: bytes) -> dict[str, bytes]:
        """See DisclosureStore."""
        return await self._packs.read(answer_prefix(crate, receipt_id), pack_id)

    async def read_evidence(self, crate: str, document_id: str, revision: int, pack_id: bytes) -> dict[str, bytes]:
        """See DisclosureStore."""
        return await self._packs.read(evidence_prefix(crate, document_id, revision), pack_id)

    async def delete(self, gone: Gone) -> None:
        """See DisclosureStore."""
        for receipt_id in gone.receipts:
            await self._packs.erase(answer_prefix(gone.crate, receipt_id))
        for document_id, revision in gone.revisions:
            await self._packs.erase(evidence_prefix(gone.crate, document_id, revision))
