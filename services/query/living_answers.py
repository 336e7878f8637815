"""The evidence of an answer in profile v3.1: what is cited, in which role, and whether it suffices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from services.kernel.errors import Failure, PreconditionFailed
from services.query.domain import choosing, evidence
from services.query.domain.choosing import Choice
from services.query.domain.extractive import CitedPlace
from services.query.domain.intent import Intent, VersionWish
from services.query.domain.living import LivingState, Role
from services.query.domain.modes import AnswerMode, ModeDecision, ModeRefusal, mode_needs, settle_mode
from services.query.domain.outcomes import Considered
from services.query.domain.pool import Item, explain
from services.query.domain.profile import PPM, LivingNumbers
from services.query.domain.question import Question, content_terms, read_question
from services.query.domain.selection import select_contexts
from services.query.domain.sufficiency import CitedDocument, Sufficiency, weigh_sufficiency
from services.query.domain.units import Unit, units_of
from services.query.investigation import Case, Investigator
from services.query.ports import Embedder
from services.query.retrieval import Request
from services.query.searching import nothing_then


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an answer is to be made of.

    Attributes:
        request: What is looked for; its view holds the moment and the reach.
        intent: The question's.
        mode: Mode asked for.
        allow_downgrade: Verified may fall back to light.
        limit: Contexts considered.
        otherwise: What to look for where nothing is found; None: nothing else.
    """

    request: Request
    intent: Intent
    mode: ModeDecision
    allow_downgrade: bool
    limit: int
    otherwise: Request | None = None


@dataclass(frozen=True, slots=True)
class LivingEvidence:
    """Cited places and what is to be told about them; `query` is what they answer."""

    query: str
    places: tuple[CitedPlace, ...]
    case: Case
    mode: ModeDecision
    notes: tuple[str, ...]


class LivingEvidenceMaker:
    """Chooses what an answer cites."""

    def __init__(self, *, investigator: Investigator, embedder: Embedder) -> None:
        self._investigator = investigator
        self._embedder = embedder

    async def make(self, wanted: Wanted, numbers: LivingNumbers) -> LivingEvidence:
        """Choose the evidence.

        Args:
            wanted: What the answer is to be made of.
            numbers: The manifest's.

        Returns:
            The evidence; no place where nothing answers.

        Raises:
            PreconditionFailed: When the mode needs more source domains than answer, and nothing else may be served.
            Unavailable: When no lane or not the index answers.
        """
        wanted, case = await self._case(wanted, numbers)
        ranked, note = await self._rank(wanted, case, numbers)
        needed = mode_needs(wanted.mode.requested, domains=numbers.verified_domains)
        places = choosing.place_choices(_choose(wanted, case, ranked, numbers, needed))
        domains = sorted({place.unit.passage.source_domain for place in places if place.role is Role.SUPPORT})
        mode = (
            settle_mode(wanted.mode, domains=domains, needed=needed, allow_downgrade=wanted.allow_downgrade)
            if places or needed > 1
            else wanted.mode
        )
        if isinstance(mode, ModeRefusal):
            raise PreconditionFailed(mode.message)
        return LivingEvidence(wanted.request.query, places, case, mode, (*case.notes, *note))

    async def _case(self, wanted: Wanted, numbers: LivingNumbers) -> tuple[Wanted, Case]:
        case = await self._investigator.investigate(wanted.request, wanted.intent, numbers, wanted.mode.requested)
        if case.pool.items or wanted.otherwise is None:
            return wanted, case
        other = replace(wanted, request=wanted.otherwise, otherwise=None)
        found = await self._investigator.investigate(other.request, other.intent, numbers, other.mode.requested)
        if not found.pool.items:
            return wanted, case
        return other, replace(found, notes=(nothing_then(wanted.request), *found.notes))

    async def _rank(
        self, wanted: Wanted, case: Case, numbers: LivingNumbers
    ) -> tuple[tuple[evidence.Scored, ...], tuple[str, ...]]:
        profile, retrieval = wanted.request.profile, case.retrieval
        told = profile.evidence
        question = read_question(
            wanted.request.query,
            retrieval.keyword.terms,
            floor=told.term_floor_ppm / PPM,
            generic=told.generic_ppm / PPM,
        )
        soft = told.soft()
        short = _shortlist(question, case, wanted, numbers)
        if not short:
            return (), ()
        meanings: evidence.Meanings | None = None
        note: tuple[str, ...] = ()
        if retrieval.vector is not None:
            texts = evidence.texts_to_embed(question, short, limit=profile.evidence.embedded_texts)
            try:
                vectors = await self._embedder.embed_texts(wanted.request.crate_id, retrieval.vector.model_id, texts)
                meanings = evidence.Meanings(retrieval.vector.vector, dict(zip(texts, vectors, strict=True)))
            except Failure as error:
                note = (f"evidence was weighed by its words alone: {error.message}",)
        rule = (profile.evidence.with_meaning if meanings else profile.evidence.by_words).rule()
        return evidence.rank(question, short, soft=soft, rule=rule, meanings=meanings), note


def weigh(places: Sequence[CitedPlace], query: str, needed: int) -> Sufficiency:
    """Weigh the supporting documents of an answer.

    Args:
        places: Those that the text still names.
        query: The question.
        needed: Source domains that the applied mode needs.

    Returns:
        The verdict; a passage covers the question's content terms that it holds.
    """
    asked = frozenset(content_terms(query))
    held: dict[str, tuple[str, frozenset[str]]] = {}
    for place in places:
        if place.role is Role.SUPPORT:
            passage = place.unit.passage
            _, covered = held.get(passage.key.document_id, ("", frozenset()))
            held[passage.key.document_id] = (passage.source_domain, covered | (asked & passage.terms))
    documents = [CitedDocument(name, domain, covered) for name, (domain, covered) in held.items()]
    return weigh_sufficiency(documents, domains_needed=needed)


def explanation(places: Sequence[CitedPlace], case: Case) -> tuple[Considered, ...]:
    """Tell of each candidate why it is in or out.

    Args:
        places: Those that the text names.
        case: All candidates.

    Returns:
        One entry per candidate.
    """
    roles = {place.unit.passage.key.document_id: place.role.value for place in reversed(places)}
    return explain(case.retrieval.candidates, case.pool, roles, case.barred, case.read.states)


def _shortlist(question: Question, case: Case, wanted: Wanted, numbers: LivingNumbers) -> tuple[Unit, ...]:
    """The units weighed: the best of all contexts, and some of every document that may have to be cited."""
    told = wanted.request.profile.evidence
    soft = told.soft()
    contexts = select_contexts(
        [item.admitted for item in case.pool.items if not item.expanded_from], limit=wanted.limit
    )
    units = [unit for context in contexts for unit in units_of(context.passage)]
    short = list(evidence.shortlist(question, units, soft=soft, limit=told.shortlist))
    best = [name for name in case.pool.documents if name not in case.barred]
    needed = {case.chosen, *case.against, *case.against.values(), *best[: numbers.cited_documents]}
    needed |= {case.pair.first, case.pair.second, *case.pair.further} if case.pair else set()
    for document_id in sorted(needed - {unit.passage.key.document_id for unit in short} - {""}):
        own = [
            unit
            for item in case.pool.items
            if item.document_id == document_id
            for unit in units_of(item.admitted.passage)
        ]
        short += evidence.shortlist(question, own, soft=soft, limit=numbers.units_per_document)
    return tuple(short)


def _choose(
    wanted: Wanted, case: Case, ranked: Sequence[evidence.Scored], numbers: LivingNumbers, needed: int
) -> tuple[Choice, ...]:
    profile, pool = wanted.request.profile, case.pool
    most = min(numbers.cited_documents, wanted.limit)
    units = choosing.best_units(ranked)
    allowed = frozenset(pool.documents) - case.barred
    by_words = choosing.choose_units(ranked, allowed, profile)
    scores = {scored.unit.passage.key.document_id: scored.score for scored in reversed(ranked)}
    wished = _wanted_documents(case, scores, bool(by_words), numbers)
    choices = choosing.limit_documents(choosing.put_first(wished, units, by_words), most=most)
    if not choices:
        return ()
    cited = {choice.document_id for choice in choices}
    audit = wanted.mode.requested is AnswerMode.AUDIT
    order = {item: place for place, item in enumerate(pool.documents)}
    ranked_sides = sorted(case.against.items(), key=lambda pair: order.get(pair[0], len(order)))
    against = {item: other for item, other in ranked_sides if other in cited or audit}
    # Whoever contradicts may answer best: then the other side is what it stands against.
    first = choices[0].document_id
    if first in case.against:
        against = {case.against[first]: first} | {item: other for item, other in against.items() if item != first}
    choices = choosing.with_other_side(choices, against, units, least=needed, most=most)
    # What speaks against the other side, in turn, belongs to the dispute as well.
    turn = {item for item, other in ranked_sides if other in against} - set(against)
    further = [Choice(units[item], Role.CONTEXT) for item in order if item in turn and item in units]
    choices = choosing.limit_documents([*choices, *further], most=most)
    if needed > 1 and numbers.features.second_domain:
        admitted = [item for item, found in pool.documents.items() if item in allowed and not found.expanded_from]
        admitted = [item for item in admitted if item not in against]
        choices = choosing.with_second_domain(choices, admitted, units, needed=needed, most=most)
    return choices


def _wanted_documents(
    case: Case, scores: Mapping[str, float], answered: bool, numbers: LivingNumbers
) -> tuple[tuple[str, Role], ...]:
    """Documents that go first by the question's intent: a version, a pair, or the best one as such."""
    documents = case.pool.documents
    if case.chosen:
        return ((case.chosen, Role.SUPPORT),)
    if case.pair is not None:
        ends = (case.pair.first, case.pair.second, *case.pair.further)
        return tuple((end, _pair_role(documents.get(end), first=end == ends[0])) for end in ends)
    if not numbers.features.document_answers:
        return ()
    held = [item for name, item in documents.items() if name not in case.barred and not item.expanded_from]
    asked = case.intent.documents or case.intent.status or case.intent.version is not VersionWish.NONE
    if not held:
        return ()
    # A document that the question names may speak for itself, but a number or a person asked for has to be there.
    meant = asked or (held[0].named and not case.intent.particular)
    if not (answered or (meant and _strong(held[0], numbers))):
        return ()
    near = [item for item in held if item.score >= held[0].score * numbers.companion_score_ppm / PPM]
    # Of documents that rank alike, the one whose own words answer best goes first.
    near.sort(key=lambda item: -scores.get(item.document_id, -inf))
    held = [*near, *held[len(near) :]]
    companions = near[1 : numbers.companions] if asked else []
    if case.intent.many and case.intent.documents:
        enough = held[0].admitted.coverage * numbers.several_coverage_ppm / PPM
        companions = [item for item in held[1 : numbers.cited_documents] if item.admitted.coverage >= enough]
    return tuple(pair for item in (held[0], *companions) for pair in _with_successor(item, case))


def _with_successor(item: Item, case: Case) -> tuple[tuple[str, Role], ...]:
    """A document, and ahead of it the one that superseded it where that is known and in force."""
    other = item.state.other_document_id if item.state and item.state.state is LivingState.SUPERSEDED else ""
    successor = case.pool.documents.get(other)
    if successor is None or other in case.barred or (successor.state and not successor.state.in_force):
        return ((item.document_id, Role.SUPPORT),)
    return ((other, Role.SUPPORT), (item.document_id, Role.CONTEXT))


def _pair_role(item: Item | None, *, first: bool) -> Role:
    out = item is not None and item.state is not None and not item.state.in_force
    return Role.CONTEXT if out and not first else Role.SUPPORT


def _strong(item: Item, numbers: LivingNumbers) -> bool:
    candidate = item.admitted.candidate
    return (
        item.admitted.coverage >= numbers.document_coverage_ppm / PPM
        or candidate.cosine >= numbers.document_cosine_ppm / PPM
    )
