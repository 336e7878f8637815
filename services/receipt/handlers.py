"""Edge 1: receipts of the log become rows, erased documents lose everything that receipts disclose of them."""

from __future__ import annotations

from collections.abc import Sequence

from services.kernel.envelope import Event
from services.kernel.errors import Corrupt
from services.receipt.codec import messages
from services.receipt.ports import DisclosureStore, ErasedRow, ReceiptRow, Tables


class Follower:
    """Applies both streams; every call may be repeated."""

    def __init__(self, *, tables: Tables, store: DisclosureStore) -> None:
        self._tables = tables
        self._store = store

    async def receipts(self, events: Sequence[Event]) -> None:
        """Add receipts.

        Args:
            events: ReceiptIssued, in log order.

        Raises:
            Corrupt: When an event holds no receipt, or one that forks its chain.
        """
        rows = tuple(_row(event) for event in events)
        await self._tables.add(rows, position=events[-1].position, delete=self._store.delete)

    async def erasures(self, events: Sequence[Event]) -> None:
        """Erase what receipts disclose of documents that are gone.

        The evidence cut from such a document goes, and so do question, answer and list of candidates of every receipt
        that cites it; the commitments stay.

        Args:
            events: DocumentErased, in log order.
        """
        erased = []
        for event in events:
            erasure = messages.erasure_from(event.message)
            erased.append(ErasedRow(event.crate, erasure.document_id, erasure.revision))
        await self._tables.erase(erased, position=events[-1].position, delete=self._store.delete)


def _row(event: Event) -> ReceiptRow:
    try:
        issued = messages.issued_from(event.message)
    except ValueError as error:
        raise Corrupt(str(error)) from error
    return ReceiptRow(
        crate=event.crate,
        head=issued.head,
        parent_id=issued.parent_id,
        answer_id=issued.answer_id,
        position=event.position,
        cose=issued.cose,
        answer_pack=issued.answer_pack.id,
        evidence_packs={(one.document_id, one.revision): one.pack.id for one in issued.evidence_packs},
    )
