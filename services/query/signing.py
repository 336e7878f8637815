"""Receipts and the record of answers. In mode light an answer leaves unsigned rather than not at all, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from services.kernel.errors import Failure, Unavailable
from services.query.domain.claims import AnswerFact, Claim, EvidenceBytes, IssuedReceipt
from services.query.domain.extractive import CitedPlace
from services.query.domain.modes import AnswerMode
from services.query.domain.outcomes import AnswerOutcome
from services.query.domain.profile import Profile
from services.query.domain.spans import encode_piece
from services.query.domain.values import RecordKey
from services.query.ports import Answers, Embedder, Originals, Receipts
from services.query.retrieval import Retrieval

_STATUS = {True: "answered", False: "no_answer"}


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer before it is signed.

    Attributes:
        crate_id: Crate.
        question: As it came.
        outcome: The answer.
        raw_text: As written, before repair; empty for a no-answer.
        retrieval: What was considered.
        profile: Manifest that shaped it.
        repairs: One line each.
    """

    crate_id: str
    question: str
    outcome: AnswerOutcome
    raw_text: str
    retrieval: Retrieval
    profile: Profile
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """What the engine's digest is made of.

    Attributes:
        build: Version of the server.
        incarnation: Of the KNOWLEDGE stream, 16 bytes.
        policy_digest: From a manifest to its digest.
        engine_digest: From build, model fingerprints and generation to a digest.
    """

    build: str
    incarnation: bytes
    policy_digest: Callable[[Profile], bytes]
    engine_digest: Callable[[str, Sequence[str], int], bytes]


class Notary:
    """Signs answers and records that they left."""

    def __init__(
        self,
        *,
        originals: Originals,
        receipts: Receipts,
        embedder: Embedder,
        answers: Answers,
        engine: Engine,
        timeout_s: float,
    ) -> None:
        self._originals = originals
        self._receipts = receipts
        self._embedder = embedder
        self._answers = answers
        self._engine = engine
        self._timeout_s = timeout_s

    async def sign(self, draft: Draft, now: datetime) -> AnswerOutcome:
        """Sign an answer and record it.

        Args:
            draft: The answer.
            now: Time of the signal.

        Returns:
            The answer with its receipt, or in mode light with the reason why it has none.

        Raises:
            Unavailable: When the mode needs a receipt and none can be had; nothing is recorded then.
        """
        outcome = draft.outcome
        try:
            receipt = await asyncio.wait_for(self._issue(draft), self._timeout_s)
            outcome = replace(outcome, receipt_id=receipt.receipt_id, receipt=receipt.bundle, receipt_status="signed")
        except TimeoutError:
            outcome = replace(outcome, receipt_status=f"unsigned: signing took longer than {self._timeout_s:g} s")
        except Failure as error:
            outcome = replace(outcome, receipt_status=f"unsigned: {error.message}")
        applied = outcome.mode.applied
        if applied is not AnswerMode.LIGHT and not outcome.receipt_id:
            raise Unavailable(
                f"mode {applied.value} needs a signed receipt, and there is none ({outcome.receipt_status}):"
                " retry, or ask in mode light"
            )
        return await self._record(draft.crate_id, outcome, now)

    async def _issue(self, draft: Draft) -> IssuedReceipt:
        outcome = draft.outcome
        evidence, fingerprints = await asyncio.gather(
            self._evidence(draft.crate_id, outcome.places), self._embedder.fingerprints(draft.crate_id)
        )
        engine = self._engine
        claim = Claim(
            crate_id=draft.crate_id,
            answer_id=outcome.answer_id,
            question=draft.question,
            answer_text=outcome.text,
            raw_text=draft.raw_text or outcome.text,
            evidence=evidence,
            candidates=tuple(candidate.key for candidate in draft.retrieval.candidates),
            position=outcome.position,
            incarnation=engine.incarnation,
            policy_digest=engine.policy_digest(draft.profile),
            engine_digest=engine.engine_digest(engine.build, fingerprints, draft.retrieval.generation),
            mode=outcome.mode,
            repairs=draft.repairs,
        )
        return await self._receipts.issue(claim)

    async def _evidence(self, crate_id: str, places: Sequence[CitedPlace]) -> tuple[EvidenceBytes, ...]:
        """The exact original bytes of each place: encoded from a verbatim quote, else read from the original."""
        known = {
            place.marker: encode_piece(place.quote, place.unit.passage.charset)
            for place in places
            if place.span.verbatim
        }
        unread: dict[RecordKey, list[CitedPlace]] = {}
        for place in places:
            content = known.get(place.marker)
            if content is None or len(content) != place.span.byte_end - place.span.byte_start:
                known[place.marker] = None
                unread.setdefault(place.unit.passage.key, []).append(place)
        for key, wanted in unread.items():
            spans = [(place.span.byte_start, place.span.byte_end) for place in wanted]
            read = await self._originals.read(crate_id, key, spans)
            known.update((place.marker, content) for place, content in zip(wanted, read, strict=True))
        return tuple(
            EvidenceBytes(
                place.unit.passage.key,
                place.span.byte_start,
                place.span.byte_end,
                known[place.marker] or b"",
                place.role,
            )
            for place in places
        )

    async def _record(self, crate_id: str, outcome: AnswerOutcome, now: datetime) -> AnswerOutcome:
        fact = AnswerFact(
            answer_id=outcome.answer_id,
            receipt_id=outcome.receipt_id,
            status=_STATUS[outcome.answered],
            document_ids=tuple(dict.fromkeys(place.unit.passage.key.document_id for place in outcome.places)),
            position=outcome.position,
            mode=outcome.mode,
            issued_at=now,
        )
        try:
            await self._answers.record(crate_id, fact)
        except Failure as error:
            note = f"the signal AnswerIssued was not recorded: {error.message}"
            return replace(outcome, notes=(*outcome.notes, note))
        return outcome
