"""From a question to the pool of candidates that profile v3.1 answers from: lanes, states, series, relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from services.query.domain.admission import Admitted, admit, common_terms, covered_share
from services.query.domain.expansion import Pair, across_series, contradictors, expand, find_pair, types_for
from services.query.domain.fusion import Fused, document_scores
from services.query.domain.intent import Intent, VersionWish
from services.query.domain.living import Family, LivingState, Moment, Reach, Relation, RelationType, StateReport, View
from services.query.domain.modes import AnswerMode
from services.query.domain.pool import Item, Pool, barred_versions, make_pool, with_titles
from services.query.domain.profile import PPM, LivingNumbers
from services.query.domain.question import content_terms
from services.query.domain.values import Form, RecordKey
from services.query.domain.versions import series_of, version_note, wanted_member
from services.query.ports import Index, Walk
from services.query.retrieval import Read, Request, Retrieval, Retriever

NOTHING_IN_FORCE = "nothing in force answers; superseded and deprecated documents are used"
_CHAIN = (RelationType.SUPERSEDES,)
_AGAINST = (RelationType.CONTRADICTS,)

_Found: TypeAlias = tuple[Retrieval, Read, Pool]
_Version: TypeAlias = tuple[StateReport | None, Family | None, str]


@dataclass(frozen=True, slots=True)
class Case:
    """What is known of a question from all sides.

    Attributes:
        intent: The question's.
        moment: That the answer has to hold for.
        retrieval: What the lanes gave.
        read: The chunks read of it.
        pool: Candidates that count, those that relations added included.
        chosen: Document that the version intent picks; empty when it picks none.
        pair: Documents that a question about a pair means; None when it means none.
        barred: Documents that may not be the answer.
        against: From each contradicting document to the one that it stands against.
        notes: What to tell.
        position: Cursor.
    """

    intent: Intent
    moment: Moment
    retrieval: Retrieval
    read: Read
    pool: Pool
    chosen: str
    pair: Pair | None
    barred: frozenset[str]
    against: Mapping[str, str]
    notes: tuple[str, ...]
    position: int


class Investigator:
    """Gathers what an answer of profile v3.1 is chosen from."""

    def __init__(self, *, retriever: Retriever, index: Index) -> None:
        self._retriever = retriever
        self._index = index

    async def investigate(self, request: Request, intent: Intent, numbers: LivingNumbers, mode: AnswerMode) -> Case:
        """Look from all sides.

        Args:
            request: What is looked for; its view holds the moment and the reach.
            intent: The question's.
            numbers: The manifest's.
            mode: Mode to be applied; audit looks for contradictions of every candidate.

        Returns:
            The case.

        Raises:
            Unavailable: When no lane or not the index answers.
            Rejected: When the index refuses the moment.
        """
        request, found, version, notes = await self._begin(request, intent, numbers)
        retrieval, read, pool = found
        chosen, family, note = version
        if chosen is not None:
            pool = pool.plus(await self._within(request, retrieval, {chosen.document_id: 1.0}, picked=True))
        relations = await self._relations(request, pool, types_for(intent), numbers)
        pool, pair = await self._expanded(request, retrieval, pool, (relations, intent), numbers)
        barred = barred_versions(
            pool,
            chosen.document_id if chosen else "",
            [member.document_id for member in family.members] if family else (),
            margin=numbers.family_margin_ppm / PPM,
        )
        against = await self._against(request, pool, numbers, everyone=mode is AnswerMode.AUDIT or intent.contested)
        unfound = _unfound(pool, against, numbers.contra_ppm / PPM)
        pool = pool.plus(await self._within(request, retrieval, unfound, seeds=against))
        if pair is not None:
            barred -= {pair.first, pair.second, *pair.further}
        if mode is AnswerMode.AUDIT:
            note = "\n".join(filter(None, (note, _searched(pool, against))))
        return Case(
            intent,
            request.view.moment,
            retrieval,
            read,
            pool,
            chosen.document_id if chosen else "",
            pair,
            barred,
            against,
            (*notes, *filter(None, note.split("\n"))),
            read.position,
        )

    async def _begin(
        self, request: Request, intent: Intent, numbers: LivingNumbers
    ) -> tuple[Request, _Found, _Version, tuple[str, ...]]:
        """Look in force first where a version is wanted: old versions crowd out what tells which series is meant."""
        nothing: _Version = (None, None, "")
        if intent.version is not VersionWish.NONE and not intent.status and request.view.reach is Reach.EVERY:
            near = replace(request, view=replace(request.view, reach=Reach.IN_FORCE))
            found = await self._look(near, intent, numbers)
            version = await self._version(near, intent, found[2], numbers)
            if version[0] is not None:
                return near, found, version, ()
        found = await self._look(request, intent, numbers)
        notes: tuple[str, ...] = ()
        if not found[2].items and request.view.reach is Reach.IN_FORCE:
            wider = replace(request, view=replace(request.view, reach=Reach.EVERY))
            again = await self._look(wider, intent, numbers)
            if again[2].items:
                request, found, notes = wider, again, (NOTHING_IN_FORCE,)
        if intent.version is VersionWish.NONE:
            return request, found, nothing, notes
        return request, found, await self._version(request, intent, found[2], numbers), notes

    async def _look(self, request: Request, intent: Intent, numbers: LivingNumbers) -> _Found:
        """Chunks ranked by the lanes, their documents as a search that shows each document once ranks them."""
        profile = request.profile
        retrieval = await self._retriever.retrieve(request)
        by_document = replace(request, by_document=True, vector=retrieval.vector)
        documents = await self._retriever.retrieve(by_document) if retrieval.candidates else retrieval
        scores = document_scores(documents.candidates, retrieval.candidates, k=profile.rank_constant)
        looked_at = _looked_at(retrieval.candidates, scores, numbers.chunk_ppm / PPM, profile.candidates)
        read = await self._retriever.fetch(request, looked_at, min(retrieval.position, documents.position))
        admitted = admit(
            read.pairs,
            retrieval.keyword.terms,
            coverage=profile.admission.coverage_ppm / PPM,
            cosine=profile.admission.cosine_ppm / PPM,
        )
        pool = make_pool(admitted, read.states, intent, numbers)
        least, bonus = numbers.title_least_ppm / PPM, numbers.title_bonus_ppm / PPM
        asked = frozenset(content_terms(request.query))
        common = common_terms(retrieval.keyword.terms, numbers.title_common_ppm / PPM)
        return retrieval, read, with_titles(pool, asked, common, least=least, bonus=bonus)

    async def _version(self, request: Request, intent: Intent, pool: Pool, numbers: LivingNumbers) -> _Version:
        """The member of a series that the question wants, by the best candidate whose series has it."""
        best = tuple(pool.documents)[: numbers.seeds]
        if intent.version is VersionWish.NONE or not best or not numbers.features.version_intent:
            return None, None, ""
        # What only one lane finds close tells less of which series is meant.
        close = {name: _closeness(pool.documents[name]) for name in best}
        least = numbers.series_closeness_ppm / PPM * max(close.values())
        best = tuple(name for name in best if close[name] >= least or pool.documents[name].named)
        moment = request.view.moment
        families = await self._index.families(request.crate_id, best, moment)
        looked_at = best if intent.version is VersionWish.EXPLICIT else best[:2]
        for document_id in looked_at:
            family = _family_of(document_id, families) or await self._chain(request, document_id, intent)
            wanted = wanted_member(family, intent) if family else None
            if wanted is not None:
                told = intent.version is not VersionWish.CURRENT
                return wanted, family, version_note(wanted, family) if told and family else ""
        return None, None, ""

    async def _chain(self, request: Request, document_id: str, intent: Intent) -> Family | None:
        if intent.version is VersionWish.EXPLICIT:
            return None
        moment = request.view.moment
        walk = Walk(kinds=_CHAIN, depth=4, fan_out=20)
        relations = await self._index.neighbours(request.crate_id, [document_id], walk, moment)
        ends = sorted({end for edge in relations for end in (edge.source, edge.target)} | {document_id})
        if len(ends) < 2:
            return None
        states = await self._index.states(request.crate_id, ends, moment)
        return series_of(document_id, relations, {report.document_id: report for report in states})

    async def _relations(
        self, request: Request, pool: Pool, kinds: Sequence[RelationType], numbers: LivingNumbers
    ) -> tuple[Relation, ...]:
        seeds = tuple(pool.documents)[: numbers.seeds]
        if not seeds or not numbers.features.relation_expansion:
            return ()
        walk = Walk(kinds=tuple(kinds), fan_out=numbers.fan_out)
        return await self._index.neighbours(request.crate_id, seeds, walk, request.view.moment)

    async def _expanded(
        self,
        request: Request,
        retrieval: Retrieval,
        pool: Pool,
        asked: tuple[tuple[Relation, ...], Intent],
        numbers: LivingNumbers,
    ) -> tuple[Pool, Pair | None]:
        relations, intent = asked
        share, out = numbers.expansion_ppm / PPM, numbers.out_of_force_ppm / PPM
        scores = {
            item: found.score * (1.0 if found.state is None or found.state.in_force else out)
            for item, found in pool.documents.items()
        }
        added = expand(scores, relations, share=share, limit=numbers.neighbours)
        pair = None
        if intent.pair and numbers.features.pair_partners:
            further = numbers.partners - 1 if intent.many else 0
            ends = sorted({end for edge in relations for end in (edge.source, edge.target)})
            reports = await self._index.states(request.crate_id, ends, request.view.moment) if ends else ()
            edges = across_series(relations, {report.document_id: report for report in reports})
            pair = find_pair(scores, edges, intent, share=share, most=further)
        both = (pair.first, pair.second, *pair.further) if pair is not None else ()
        ends_wanted = {end: share * max(scores.values()) for end in both if end not in scores}
        wanted = {one.document_id: one.score for one in added if one.document_id not in ends_wanted}
        seeds = {one.document_id: one.seed for one in added}
        # What relations add is held to what the question looks at: a replaced neighbour is no evidence for a plain one.
        reach = request.view.reach
        return pool.plus(
            (
                *await self._within(request, retrieval, wanted, seeds=seeds, reach=reach),
                *await self._within(request, retrieval, ends_wanted, seeds=seeds),
            )
        ), pair

    # Only what a lane found can be cited by itself; its contradictions are worth knowing where it is contested.
    async def _against(self, request: Request, pool: Pool, numbers: LivingNumbers, *, everyone: bool) -> dict[str, str]:
        if not numbers.features.contested_sides:
            return {}
        contested = [
            item
            for item, found in pool.documents.items()
            if not found.expanded_from and (everyone or _contested(found.state))
        ][:64]
        if not contested:
            return {}
        walk = Walk(kinds=_AGAINST, fan_out=numbers.fan_out)
        relations = await self._index.neighbours(request.crate_id, contested, walk, request.view.moment)
        return contradictors(contested, relations) | _in_circles(pool)

    async def _within(
        self,
        request: Request,
        retrieval: Retrieval,
        scores: Mapping[str, float],
        *,
        seeds: Mapping[str, str] | None = None,
        picked: bool = False,
        reach: Reach = Reach.EVERY,
    ) -> tuple[Item, ...]:
        """The best chunk of each document within reach by the lanes restricted to them, else its first one."""
        if not scores:
            return ()
        view = View(reach, request.view.moment)
        inside = replace(
            request,
            lane_filter=replace(request.lane_filter, document_ids=tuple(sorted(scores))),
            view=view,
            vector=retrieval.vector,
        )
        found = await self._retriever.retrieve(inside)
        best: dict[str, list[Fused]] = {}
        for candidate in found.candidates:
            best.setdefault(candidate.key.document_id, []).append(candidate)
        reports = await self._index.states(request.crate_id, sorted(scores), view.moment)
        for report in reports:
            first = RecordKey(report.document_id, report.revision, 0)
            best.setdefault(report.document_id, [Fused(first, 0.0, Form.TEXT)])
        depth = request.profile.evidence.max_sentences if picked else 1
        keys = [candidate for several in best.values() for candidate in several[:depth]]
        read = await self._retriever.fetch(inside, keys, retrieval.position)
        return _items(read, retrieval, scores, seeds or {}, picked=picked)


def _looked_at(candidates: Sequence[Fused], scores: Mapping[str, float], own: float, most: int) -> tuple[Fused, ...]:
    """The candidates whose chunks are read: by their document's score, of one document by their own."""
    scored = [replace(found, score=scores.get(found.key.document_id, 0.0) + found.score * own) for found in candidates]
    ordered = sorted(scored, key=lambda found: (-found.score, found.best_rank, found.key))
    best = {found.key.document_id: found for found in reversed(ordered)}
    first = sorted(best.values(), key=lambda found: (-found.score, found.best_rank, found.key))
    rest = [found for found in ordered if best[found.key.document_id] is not found]
    return tuple((first[: most // 2] + rest)[:most])


def _items(
    read: Read, retrieval: Retrieval, scores: Mapping[str, float], seeds: Mapping[str, str], *, picked: bool
) -> tuple[Item, ...]:
    items = []
    for candidate, passage in read.pairs:
        key = candidate.key
        share = covered_share(retrieval.keyword.terms, passage.terms)
        scored = replace(candidate, score=scores[key.document_id])
        state = read.states.get((key.document_id, key.revision))
        items.append(Item(Admitted(scored, passage, share), state, seeds.get(key.document_id, ""), picked))
    return tuple(items)


def _unfound(pool: Pool, against: Mapping[str, str], share: float) -> dict[str, float]:
    """Contradicting documents that no lane found, with a share of the score of what they stand against."""
    held = pool.documents
    return {item: held[other].score * share for item, other in against.items() if item not in held}


def _closeness(item: Item) -> float:
    return item.admitted.coverage + item.admitted.candidate.cosine


def _in_circles(pool: Pool) -> dict[str, str]:
    """Documents that supersede each other: each stands against the one that it is in a circle with."""
    return {
        found.state.other_document_id: item
        for item, found in pool.documents.items()
        if found.state is not None and found.state.in_circle
    }


def _contested(state: StateReport | None) -> bool:
    return state is not None and state.state is LivingState.CONTESTED


def _family_of(document_id: str, families: Sequence[Family]) -> Family | None:
    for family in families:
        if len(family.members) > 1 and any(member.document_id == document_id for member in family.members):
            return family
    return None


def _searched(pool: Pool, against: Mapping[str, str]) -> str:
    found = f"{len(against)} found" if against else "none found"
    return f"audit: contradicting evidence was looked for around {len(pool.documents)} documents: {found}"
