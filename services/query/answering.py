"""From a question to a cited, signed answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from services.kernel.errors import Failure, NotAvailableYet, Rejected
from services.query.domain import evidence
from services.query.domain.admission import admit
from services.query.domain.choosing import state_notes
from services.query.domain.claims import RawAnswer, Repaired
from services.query.domain.crate import CrateRules, Turn, with_history
from services.query.domain.extractive import NO_ANSWER_TEXT, CitedPlace, answer_text, choose, compose, literal_spans
from services.query.domain.fusion import Fused
from services.query.domain.living import Moment
from services.query.domain.modes import (
    AnswerMode,
    ModeDecision,
    ModeRefusal,
    decide_mode,
    mode_needs,
    requested_mode,
)
from services.query.domain.outcomes import AnswerOutcome, sources_of
from services.query.domain.profile import PPM, Profile
from services.query.domain.question import read_question
from services.query.domain.selection import select_contexts
from services.query.domain.units import Unit, units_of
from services.query.domain.values import LaneFilter, RecordKind, RetrievalMode
from services.query.investigation import Case
from services.query.living_answers import LivingEvidenceMaker, Wanted, explanation, weigh
from services.query.ports import Citations, CrateBook, Embedder
from services.query.retrieval import Request, Retrieval, Retriever, check_query, usable_profile
from services.query.searching import living_numbers, read_view, refuse_past
from services.query.signing import Draft, Notary

MAX_SOURCES = 32


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as it came.

    Attributes:
        crate_id: Crate.
        question: In plain words.
        mode: None: the crate's.
        retrieval_mode: None: the crate's.
        history: The caller's turns, oldest first.
        lane_filter: What the lanes may return.
        source_limit: Contexts considered; 0: the crate's.
        moment: What held then, as far as it was known then; the default is now.
        explain: Tell of every candidate why it is in or out.
    """

    crate_id: str
    question: str
    mode: AnswerMode | None = None
    retrieval_mode: RetrievalMode | None = None
    history: tuple[Turn, ...] = ()
    lane_filter: LaneFilter = field(default_factory=LaneFilter)
    source_limit: int = 0
    moment: Moment = field(default_factory=Moment)
    explain: bool = False


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What was found for a question: the cited places, the cursor and what to tell about the way there."""

    places: tuple[CitedPlace, ...]
    profile: Profile
    retrieval: Retrieval
    position: int
    notes: tuple[str, ...]


class Answerer:
    """Answers questions."""

    def __init__(
        self,
        *,
        retriever: Retriever,
        embedder: Embedder,
        crates: CrateBook,
        living: LivingEvidenceMaker,
        citations: Citations,
        notary: Notary,
        new_id: Callable[[], str],
        clock: Callable[[], datetime],
    ) -> None:
        self._retriever = retriever
        self._embedder = embedder
        self._crates = crates
        self._living = living
        self._citations = citations
        self._notary = notary
        self._new_id = new_id
        self._clock = clock

    async def ask(self, ask: Ask) -> AnswerOutcome:
        """Answer a question from the evidence, or say that there is none.

        Args:
            ask: The question.

        Returns:
            The answer with its cited places, cursor and receipt. Without evidence above the thresholds it is a
            no-answer, which is signed too: that nothing was found is a claim like any other.

        Raises:
            Rejected: When the question is blank or too long, or the source limit is out of range.
            NotAvailableYet: When the mode or profile is not built and nothing else may be served.
            PreconditionFailed: When the mode needs more source domains than answer.
            Unavailable: When no lane answers, or the mode needs a receipt and there is none.
        """
        question = check_query(ask.question, name="question")
        rules = await self._crates.rules(ask.crate_id)
        profile = usable_profile(rules)
        refuse_past(profile, ask.moment)
        mode = _mode(ask, rules, profile)
        limit = _source_limit(ask, rules)
        if ask.lane_filter.kind is RecordKind.DOCUMENT:
            raise Rejected("an answer is made of chunks: leave the filter's kind out, or search with kind document")
        reading = with_history(question, ask.history, allowed=rules.allow_client_history)
        retrieval_mode = ask.retrieval_mode or rules.retrieval_mode
        request = Request(ask.crate_id, reading.text, retrieval_mode, ask.lane_filter, profile, profile.lane_depth)
        if profile.living is not None:
            seen = read_view(request, ask.moment, None, self._clock())
            wanted = Wanted(seen.request, seen.intent, mode, rules.allow_downgrade, limit, seen.otherwise)
            draft = await self._write_living(ask, rules, wanted, reading.note)
        else:
            found = await self._gather(request, limit)
            draft = await self._write(ask, rules, mode, found, reading.note)
        return await self._notary.sign(draft, self._clock())

    async def _write_living(self, ask: Ask, rules: CrateRules, wanted: Wanted, history_note: str) -> Draft:
        profile = wanted.request.profile
        numbers = living_numbers(profile)
        made = await self._living.make(wanted, numbers)
        case = made.case
        found = _Evidence(made.places, profile, case.retrieval, case.position, made.notes)
        draft = await self._write(ask, rules, made.mode, found, history_note)
        places = draft.outcome.places
        needed = mode_needs(made.mode.applied, domains=numbers.verified_domains)
        states = case.pool.states
        outcome = replace(
            draft.outcome,
            moment=Moment(case.moment.as_of, case.moment.at or case.position),
            sufficiency=weigh(places, made.query, needed),
            states=states,
            notes=(*draft.outcome.notes, *state_notes(places, states)),
            explanation=explanation(places, case) if ask.explain else (),
        )
        considered = replace(draft.retrieval, candidates=_considered(case))
        return replace(draft, outcome=outcome, retrieval=considered)

    async def _gather(self, request: Request, limit: int) -> _Evidence:
        profile = request.profile
        retrieval = await self._retriever.retrieve(request)
        read = await self._retriever.fetch(request, retrieval.candidates[: profile.candidates], retrieval.position)
        position = read.position
        admitted = admit(
            read.pairs,
            retrieval.keyword.terms,
            coverage=profile.admission.coverage_ppm / PPM,
            cosine=profile.admission.cosine_ppm / PPM,
        )
        contexts = select_contexts(admitted, limit=limit)
        units = tuple(unit for context in contexts for unit in units_of(context.passage))
        if not units:
            return _Evidence((), profile, retrieval, position, ())
        return await self._extract(request, retrieval, position, units)

    async def _extract(self, request: Request, retrieval: Retrieval, position: int, units: Sequence[Unit]) -> _Evidence:
        numbers = request.profile.evidence
        soft = numbers.soft()
        question = read_question(
            request.query,
            retrieval.keyword.terms,
            floor=numbers.term_floor_ppm / PPM,
            generic=numbers.generic_ppm / PPM,
        )
        shortlist = evidence.shortlist(question, units, soft=soft, limit=numbers.shortlist)
        texts = evidence.texts_to_embed(question, shortlist, limit=numbers.embedded_texts) if retrieval.vector else ()
        meanings, note = await self._meanings(request.crate_id, retrieval, texts)
        ranked = evidence.rank(
            question,
            shortlist,
            soft=soft,
            rule=(numbers.with_meaning if meanings else numbers.by_words).rule(),
            meanings=meanings,
        )
        chosen = choose(
            ranked,
            most=numbers.max_sentences,
            margin=numbers.companion_margin_ppm / PPM,
            duplicate=numbers.duplicate_ppm / PPM,
        )
        return _Evidence(compose(chosen), request.profile, retrieval, position, note)

    async def _meanings(
        self, crate_id: str, retrieval: Retrieval, texts: Sequence[str]
    ) -> tuple[evidence.Meanings | None, tuple[str, ...]]:
        if not texts or retrieval.vector is None:
            return None, ()
        try:
            vectors = await self._embedder.embed_texts(crate_id, retrieval.vector.model_id, texts)
        except Failure as error:
            return None, (f"evidence was weighed by its words alone: {error.message}",)
        return evidence.Meanings(retrieval.vector.vector, dict(zip(texts, vectors, strict=True))), ()

    async def _write(
        self, ask: Ask, rules: CrateRules, mode: ModeDecision, found: _Evidence, history_note: str
    ) -> Draft:
        answer_id = self._new_id()
        raw = answer_text(found.places, markers=True)
        repaired = Repaired("", ())
        if found.places:
            spans = literal_spans(found.places)
            repaired = await self._citations.repair(RawAnswer(ask.crate_id, answer_id, raw, len(found.places), spans))
        places = tuple(place for place in found.places if place.marker in repaired.cited)
        text = repaired.text if rules.inline_citations else answer_text(places, markers=False)
        outcome = AnswerOutcome(
            answer_id=answer_id,
            answered=bool(places),
            text=text if places else NO_ANSWER_TEXT,
            places=places,
            sources=sources_of(places) if rules.structured_sources else (),
            mode=mode,
            lanes=found.retrieval.lanes,
            position=found.position,
            unsupported=repaired.unsupported,
            notes=_notes(history_note, rules, found),
        )
        return Draft(ask.crate_id, ask.question, outcome, raw, found.retrieval, found.profile, repaired.actions)


def _considered(case: Case) -> tuple[Fused, ...]:
    """All candidates, those that relations brought last: what a receipt says was considered."""
    known = {candidate.key for candidate in case.retrieval.candidates}
    added = (item.admitted.candidate for item in case.pool.items)
    return (*case.retrieval.candidates, *(candidate for candidate in added if candidate.key not in known))


def _mode(ask: Ask, rules: CrateRules, profile: Profile) -> ModeDecision:
    if profile.living is not None:
        return requested_mode(ask.mode, crate_mode=rules.mode)
    decision = decide_mode(ask.mode, crate_mode=rules.mode, allow_downgrade=rules.allow_downgrade)
    if isinstance(decision, ModeRefusal):
        raise NotAvailableYet(decision.message)
    return decision


def _source_limit(ask: Ask, rules: CrateRules) -> int:
    limit = ask.source_limit or rules.source_limit
    if not 1 <= limit <= MAX_SOURCES:
        raise Rejected(f"source_limit {limit} is out of range: choose 1 to {MAX_SOURCES}")
    return limit


def _notes(history: str, rules: CrateRules, found: _Evidence) -> tuple[str, ...]:
    provider = f"answer provider {rules.answer_model}: not used in this version" if rules.answer_model else ""
    lanes = (f"{use.lane} lane: {use.note}" for use in found.retrieval.lanes if not use.used)
    return tuple(note for note in (history, "rerank: not configured", provider, *lanes, *found.notes) if note)
