"""Issuing: read the chain's head, sign, store what is disclosed, append; one writer per chain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from services import topology
from services.kernel.bus import Bus
from services.kernel.errors import Conflict, Corrupt, Rejected, Unavailable
from services.receipt.codec import messages, opening, sealing
from services.receipt.codec.messages import EvidencePack, Issued
from services.receipt.domain import chains, drafts
from services.receipt.domain.body import Stamp
from services.receipt.domain.chains import Head
from services.receipt.domain.drafts import Draft, Salts
from services.receipt.ports import DisclosureStore, Entropy, Gone, Intent, Signer, Tables

CHAIN = "chain"
# Longer than any issue can take: an older intent has no issue behind it any more.
STALE_AFTER = timedelta(minutes=15)
_DEADLINE_S = 120.0
_ATTEMPTS = 8
_SALT_BYTES = 32
_RECEIPT_ISSUED = "ReceiptIssued"


@dataclass(frozen=True, slots=True)
class _Signed:
    """A signed receipt that isn't in the log yet."""

    cose: bytes
    head: Head
    parent_id: bytes
    issued_at: datetime


class Issuer:
    """The one writer of every chain of this process.

    Two processes can't fork a chain either: the append carries the chain's last position, and the loser reads again.
    """

    def __init__(
        self,
        *,
        log: Bus,
        tables: Tables,
        store: DisclosureStore,
        signer: Signer,
        entropy: Entropy,
        clock: Callable[[], datetime],
    ) -> None:
        self._log = log
        self._tables = tables
        self._store = store
        self._signer = signer
        self._entropy = entropy
        self._clock = clock
        self._locks: dict[str, asyncio.Lock] = {}

    async def issue(self, crate: str, draft: Draft) -> tuple[bytes, bytes]:
        """Issue the next receipt of a crate's chain.

        Args:
            crate: Crate.
            draft: What is signed.

        Returns:
            Id and bundle. The receipt is in the log, and what it discloses is durable.

        Raises:
            Rejected: When no receipt can be made of the draft.
            Conflict: When a cited document was erased, or the chain may not be continued.
            Unavailable: When the key, the log or the tables aren't at hand.
        """
        try:
            drafts.check(draft)
            async with asyncio.timeout(_DEADLINE_S), self._locks.setdefault(crate, asyncio.Lock()):
                return await self._issue(crate, draft)
        except drafts.Unfit as error:
            raise Rejected(str(error)) from error
        except TimeoutError as error:
            raise Unavailable(f"no receipt within {_DEADLINE_S:g} s for answer {draft.answer_id}: retry") from error

    async def _issue(self, crate: str, draft: Draft) -> tuple[bytes, bytes]:
        self._signer.check()
        await self._check_log(draft)
        await self._check_erased(crate, draft)
        salts = self._draw(draft)
        shown = sealing.disclosures(draft, salts)
        evidence: tuple[EvidencePack, ...] | None = None
        for _ in range(_ATTEMPTS):
            position, head = await self._head(crate)
            signed = self._sign(draft, salts, head)
            intent = Intent(crate, signed.head.receipt_id, draft.cited)
            await self._tables.intend(intent)
            if evidence is None:
                evidence = await self._write_evidence(crate, draft, salts)
            answer = await self._store.write_answer(crate, signed.head.receipt_id, sealing.answer_parts(shown))
            issued = Issued(
                cose=signed.cose,
                head=signed.head,
                parent_id=signed.parent_id,
                answer_id=draft.answer_id,
                answer_pack=answer,
                evidence_packs=evidence,
                issued_at=signed.issued_at,
            )
            if await self._append(crate, issued, position):
                return signed.head.receipt_id, opening.bundle(signed.cose, shown)
            # Somebody else's receipt took the place: this one is in no log for certain, so its pack may go.
            await self._store.delete(Gone(crate, (signed.head.receipt_id,), ()))
            await self._tables.drop(intent)
        raise Conflict(f"crate {crate} is being answered by too many at once: ask for the receipt again")

    async def _check_log(self, draft: Draft) -> None:
        if draft.incarnation != self._log.incarnation():
            raise Conflict(f"answer {draft.answer_id} was made from another log than this one: ask again")
        last = await self._log.last_position()
        if draft.position > last:
            raise Rejected(f"answer {draft.answer_id} holds for position {draft.position}, but the log ends at {last}")

    async def _check_erased(self, crate: str, draft: Draft) -> None:
        tombstones = await self._tables.tombstones(crate, [document for document, _ in draft.cited])
        erased = drafts.erased_among(draft.cited, tombstones)
        if erased:
            raise Conflict(f"document {erased[0]}, which answer {draft.answer_id} cites, was erased: ask again")

    def _draw(self, draft: Draft) -> Salts:
        return Salts(
            question=self._entropy.draw(_SALT_BYTES),
            answer=self._entropy.draw(_SALT_BYTES),
            raw_answer=self._entropy.draw(_SALT_BYTES),
            repairs=self._entropy.draw(_SALT_BYTES),
            candidates=self._entropy.draw(_SALT_BYTES),
            evidence=tuple(self._entropy.draw(_SALT_BYTES) for _ in draft.evidence),
        )

    async def _head(self, crate: str) -> tuple[int, Head | None]:
        """Position of the chain's last event of any kind, and the chain's last receipt."""
        # The tables first: they follow the log, so that what they know is in what is read after.
        known = await self._tables.last(crate)
        last = await self._log.last(crate=crate, service="receipt", aggregate=CHAIN, stream=topology.SIGNALS)
        found = last
        if last and last.name != _RECEIPT_ISSUED:
            found = await self._log.last_named(
                crate=crate, service="receipt", aggregate=CHAIN, name=_RECEIPT_ISSUED, stream=topology.SIGNALS
            )
        head = None
        if found:
            try:
                head = messages.issued_from(found.message).head
            except ValueError as error:
                raise Corrupt(f"chain of crate {crate}: {error}; see `affidavit doctor`") from error
        problem = chains.fault(head, known=known, kid=self._signer.kid)
        if problem:
            raise Conflict(f"no receipt for crate {crate}: {problem}")
        return (last.position if last else 0), head

    def _sign(self, draft: Draft, salts: Salts, head: Head | None) -> _Signed:
        now = self._clock()
        link = chains.follow(head, self._entropy.draw(chains.CHAIN_BYTES))
        stamp = Stamp(self._signer.issuer, int(now.timestamp() * 1000))
        unsigned = sealing.seal(draft, link, sealing.commit(draft, salts), stamp, self._signer.kid)
        cose = sealing.finish(unsigned, self._signer.sign(unsigned.signing_input))
        own = Head(link.chain_id, link.sequence, unsigned.receipt_id, unsigned.kid)
        return _Signed(cose, own, link.parent, now)

    async def _write_evidence(self, crate: str, draft: Draft, salts: Salts) -> tuple[EvidencePack, ...]:
        packs = await asyncio.gather(
            *(
                self._store.write_evidence(
                    crate, document_id, revision, sealing.evidence_parts(draft, salts, document_id, revision)
                )
                for document_id, revision in draft.cited
            )
        )
        return tuple(EvidencePack(*cited, pack) for cited, pack in zip(draft.cited, packs, strict=True))

    async def _append(self, crate: str, issued: Issued, position: int) -> bool:
        """Append; False when another receipt took the place.

        Any other failure leaves everything as it is: the append may have come through, and if not, the intent tells the
        sweeper what to delete.
        """
        receipt_id = issued.head.receipt_id.hex()
        try:
            await self._log.append(
                crate=crate, aggregate=CHAIN, message=messages.event_from(issued), key=receipt_id, expected=position
            )
        except Conflict:
            # A confirmation that was lost looks the same; the log knows.
            _, head = await self._head(crate)
            return head == issued.head
        return True


class Sweeper:
    """Deletes the packs of receipts that never got into the log."""

    def __init__(
        self,
        *,
        tables: Tables,
        store: DisclosureStore,
        caught_up: Callable[[], bool],
        clock: Callable[[], datetime],
        every_s: float = 600.0,
    ) -> None:
        self._tables = tables
        self._store = store
        self._caught_up = caught_up
        self._clock = clock
        self._every_s = every_s

    async def run(self) -> None:
        """Sweep now and then, until cancelled."""
        while True:
            await self.sweep()
            await asyncio.sleep(self._every_s)

    async def sweep(self) -> int:
        """Delete what crashes left.

        Returns:
            How many intents were resolved. None while the tables are behind the log, since a receipt that they haven't
            seen looks like one that never was.
        """
        if not self._caught_up():
            return 0
        stale = await self._tables.stale(self._clock() - STALE_AFTER)
        for intent in stale:
            tombstones = await self._tables.tombstones(intent.crate, [document for document, _ in intent.cited])
            erased = tuple(one for one in intent.cited if one[1] <= tombstones.get(one[0], 0))
            await self._store.delete(Gone(intent.crate, (intent.receipt_id,), erased))
            await self._tables.drop(intent)
        return len(stale)
