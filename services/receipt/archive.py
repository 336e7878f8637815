"""Receipts that were issued: read, shown and verified."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from affidavit.verify import Exit, verify_bundle

from services import topology
from services.kernel import erasures
from services.kernel.bus import Bus
from services.kernel.errors import Corrupt, NotFound, Rejected, Unavailable
from services.receipt.codec import opening
from services.receipt.issuing import CHAIN
from services.receipt.ports import DisclosureStore, ReceiptRow, Signer, Tables

_ID = re.compile(r"[0-9a-f]{64}")
_READ_OWN_WRITES_S = 5.0


@dataclass(frozen=True, slots=True)
class Shown:
    """A receipt as it is handed out.

    Attributes:
        bundle: The file.
        view_json: For people.
        disclosed: False when something was erased.
    """

    bundle: bytes
    view_json: str
    disclosed: bool


class Archive:
    """Reads receipts from the tables, and what they disclose from the packs."""

    def __init__(
        self,
        *,
        log: Bus,
        tables: Tables,
        store: DisclosureStore,
        signer: Signer,
        applied: Callable[[int, float], Awaitable[bool]],
        erased: Callable[[], Awaitable[int]],
    ) -> None:
        self._log = log
        self._tables = tables
        self._store = store
        self._signer = signer
        self._applied = applied
        self._erased = erased

    async def show(self, crate: str, receipt_id: str) -> Shown:
        """Hand a receipt out with everything that is still disclosed.

        Args:
            crate: Crate.
            receipt_id: 64 hex digits.

        Returns:
            Bundle and view.

        Raises:
            Rejected: When the id isn't one.
            NotFound: When the crate has no such receipt.
            Corrupt: When a disclosure that should be there isn't.
        """
        if not _ID.fullmatch(receipt_id):
            raise Rejected(f"receipt_id {receipt_id[:80]!r} is not 64 lower-case hex digits")
        row = await self._find(crate, bytes.fromhex(receipt_id))
        try:
            return await self._open(row)
        except NotFound:
            # An erasure deletes packs just before its rows change: wait for it and look again.
            settled = await self._tables.receipt(crate, row.head.receipt_id, settled=True)
            return await self._open_settled(settled or row)

    async def erased(self, crate: str, document_id: str, position: int) -> bool:
        """Tell whether what receipts disclose of an erased document is deleted.

        Args:
            crate: Crate.
            document_id: Document.
            position: KNOWLEDGE position of its erasure, 0 for its last one.

        Returns:
            False as well when the document was never erased.

        Raises:
            Rejected: When no document is named.
            NotFound: When there is no such document.
            Unavailable: When log or tables don't answer.
        """
        erased_at = await erasures.erased_at(self._log, crate, document_id)
        return erased_at > 0 and await self._erased() >= max(position, erased_at)

    async def verify(self, crate: str, bundle: bytes) -> tuple[bool, str]:
        """Verify a bundle with this server's own key, its parent taken from the tables.

        Args:
            crate: Crate.
            bundle: Any bytes.

        Returns:
            Whether the verdict's exit code is 0, and the verdict as JSON.
        """
        parents = []
        named = opening.parent_of(bundle)
        if named:
            parent = await self._tables.receipt(crate, named)
            if parent:
                parents = [opening.closed_bundle(parent.cose)]
        verdict = verify_bundle(bundle, self.keys_file(), parents=parents)
        return verdict.exit is Exit.OK, json.dumps(verdict.as_dict(), sort_keys=True)

    def keys_file(self) -> bytes:
        """What a verifier pins.

        Raises:
            Unavailable: When neither key nor keys file is there.
        """
        if not self._signer.keys_file:
            raise Unavailable(f"there is no keys file: {self._signer.problem}")
        return self._signer.keys_file

    async def _find(self, crate: str, receipt_id: bytes) -> ReceiptRow:
        row = await self._tables.receipt(crate, receipt_id)
        if row is None:
            last = await self._log.last(crate=crate, service="receipt", aggregate=CHAIN, stream=topology.SIGNALS)
            # It may have been issued a moment ago: the tables follow the log.
            if last and last.name == "ReceiptIssued" and await self._applied(last.position, _READ_OWN_WRITES_S):
                row = await self._tables.receipt(crate, receipt_id)
        if row is None:
            raise NotFound(f"crate {crate} has no receipt {receipt_id.hex()}")
        return row

    async def _open_settled(self, row: ReceiptRow) -> Shown:
        try:
            return await self._open(row)
        except NotFound as error:
            raise Corrupt(
                f"what receipt {row.head.receipt_id.hex()} discloses is gone, but nothing it cites was erased: "
                "restore the blobs from a backup"
            ) from error

    async def _open(self, row: ReceiptRow) -> Shown:
        answer = None
        if row.answer_pack is not None:
            answer = await self._store.read_answer(row.crate, row.head.receipt_id, row.answer_pack)
        evidence = {
            cited: None if pack is None else await self._store.read_evidence(row.crate, *cited, pack)
            for cited, pack in row.evidence_packs.items()
        }
        try:
            shown = opening.opened(row.cose, answer, evidence)
        except ValueError as error:
            raise Corrupt(f"receipt {row.head.receipt_id.hex()}: {error}") from error
        return Shown(opening.bundle(row.cose, shown), opening.view(row.cose, shown), opening.is_complete(shown))
