"""Asks both lanes side by side and fuses what they say."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from services.kernel.errors import Failure, NotAvailableYet, NotFound, Rejected, Unavailable
from services.query.domain.crate import CrateRules
from services.query.domain.fusion import Fused, best_per_document, fuse, fuse_documents, rank_one_lane
from services.query.domain.living import Reach, StateReport, View
from services.query.domain.outcomes import Found, SearchOutcome
from services.query.domain.profile import PROFILES, Profile
from services.query.domain.snippets import snippet
from services.query.domain.values import LaneAnswer, LaneFilter, LaneUse, Passage, RecordKey, RecordKind, RetrievalMode
from services.query.domain.words import holds_word
from services.query.ports import Embedder, Fetched, Index, QueryVector

MAX_QUERY_CHARS = 8_000
KEYWORD, VECTOR = "keyword", "vector"
_NO_WORD = "the query holds no word"


@dataclass(frozen=True, slots=True)
class Request:
    """What is looked for.

    Attributes:
        crate_id: Crate.
        query: Plain words, checked by `check_query`.
        mode: Lanes to use.
        lane_filter: What the lanes may return.
        profile: Manifest.
        depth: Candidates asked of each lane.
        by_document: One candidate per document, by the keyword lane's document records and the vector lane's chunks.
        view: What the index may show.
        vector: The query, embedded already; None: it still has to be.
    """

    crate_id: str
    query: str
    mode: RetrievalMode
    lane_filter: LaneFilter
    profile: Profile
    depth: int
    by_document: bool = False
    view: View = field(default_factory=View)
    vector: QueryVector | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Candidates with their chunks.

    Attributes:
        pairs: Order kept.
        position: Cursor.
        states: By document id and revision; empty where the view knows none.
    """

    pairs: tuple[tuple[Fused, Passage], ...]
    position: int
    states: Mapping[tuple[str, int], StateReport]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What was found.

    Attributes:
        candidates: Fused, best first.
        lanes: How each lane took part.
        keyword: The keyword lane's answer; empty when it wasn't used.
        vector: The embedded query; None when the vector lane wasn't used.
        position: Smallest position of the lanes used.
        generation: Index generation that answered.
    """

    candidates: tuple[Fused, ...]
    lanes: tuple[LaneUse, ...]
    keyword: LaneAnswer
    vector: QueryVector | None
    position: int
    generation: int


@dataclass(frozen=True, slots=True)
class _Side:
    """One lane's part: its answer, the chunks to show where that holds documents, its query vector; or why not."""

    answer: LaneAnswer | None = None
    note: str = ""
    vector: QueryVector | None = None
    chunks: LaneAnswer | None = None


def check_query(query: str, *, name: str) -> str:
    """Check a query or question.

    Args:
        query: As it came.
        name: What it is called, for the message.

    Returns:
        It, without white space around.

    Raises:
        Rejected: When it is blank or too long.
    """
    if not query.strip():
        raise Rejected(f"the {name} is empty: ask with at least one word")
    if len(query) > MAX_QUERY_CHARS:
        raise Rejected(f"the {name} has {len(query)} characters: shorten it to {MAX_QUERY_CHARS}")
    return query.strip()


def usable_profile(rules: CrateRules) -> Profile:
    """Find the manifest that a crate asks for.

    Args:
        rules: Settings of the crate.

    Returns:
        The manifest.

    Raises:
        NotAvailableYet: When this version has none of that name.
    """
    profile = PROFILES.get(rules.profile)
    if profile is None:
        raise NotAvailableYet(
            f"profile {rules.profile} is not available yet: set the crate's profile to one of {', '.join(PROFILES)}"
        )
    return profile


class Retriever:
    """Search over both lanes."""

    def __init__(self, *, index: Index, embedder: Embedder, lane_timeout_s: float) -> None:
        self._index = index
        self._embedder = embedder
        self._lane_timeout_s = lane_timeout_s

    async def search(self, request: Request, *, limit: int, by_document: bool) -> SearchOutcome:
        """Find records.

        Args:
            request: What is looked for.
            limit: How many results at most.
            by_document: One result per document: its best record.

        Returns:
            Results with snippets.

        Raises:
            Unavailable: When no lane answers.
        """
        kind = request.lane_filter.kind
        grouped = by_document or kind is RecordKind.DOCUMENT
        fused = grouped and request.mode is RetrievalMode.HYBRID and request.profile.features.level_per_lane
        retrieval = await self.retrieve(replace(request, by_document=fused))
        candidates = retrieval.candidates
        if grouped:
            candidates = best_per_document(candidates)
        terms = tuple(weight.term for weight in retrieval.keyword.terms)
        shown = candidates[:limit]
        show = functools.partial(self._index.show, request.crate_id, terms=terms, view=request.view)
        read = await _read(show, shown, retrieval.position, request.view)
        results = tuple(
            Found(
                candidate,
                passage,
                snippet(passage, retrieval.keyword.terms),
                read.states.get((candidate.key.document_id, candidate.key.revision)),
            )
            for candidate, passage in read.pairs
        )
        return SearchOutcome(results, retrieval.lanes, read.position, kind)

    async def retrieve(self, request: Request) -> Retrieval:
        """Ask the lanes and fuse.

        Args:
            request: What is looked for.

        Returns:
            Candidates; none for a query without a word, which no lane is asked for.

        Raises:
            Unavailable: When no lane answers.
            NotFound: When there is no such crate.
            Rejected: When a lane refuses the query.
        """
        if not holds_word(request.query):
            position = await self._index.position(request.crate_id)
            uses = (LaneUse(KEYWORD, False, _NO_WORD, 0), LaneUse(VECTOR, False, _NO_WORD, 0))
            return Retrieval((), uses, LaneAnswer(), None, position, 0)
        keyword, vector = await asyncio.gather(
            self._side(request.mode is not RetrievalMode.SEMANTIC, request, self._keyword(request)),
            self._side(request.mode is not RetrievalMode.LEXICAL, request, self._vector(request)),
        )
        if keyword.answer is None and vector.answer is None:
            raise Unavailable(f"no lane answers: keyword lane: {keyword.note}; vector lane: {vector.note}; retry")
        held = (keyword.answer, keyword.chunks, vector.answer)
        answers = tuple(answer for answer in held if answer is not None)
        return Retrieval(
            candidates=_rank(request, keyword, vector),
            lanes=(_use(KEYWORD, keyword), _use(VECTOR, vector)),
            keyword=keyword.answer or LaneAnswer(),
            vector=vector.vector,
            position=min(answer.position for answer in answers),
            generation=max(answer.generation for answer in answers),
        )

    async def fetch(self, request: Request, candidates: Sequence[Fused], position: int) -> Read:
        """Read the chunks of candidates.

        Args:
            request: What is looked for.
            candidates: In order.
            position: Smallest position of the lanes used.

        Returns:
            Candidates with their chunks, and the cursor. A candidate whose revision is not in force any more is left
            out, and so is one that came after the cursor: the answer could not claim it.
        """
        fetch = functools.partial(self._index.fetch, request.crate_id, view=request.view)
        return await _read(fetch, candidates, position, request.view)

    async def _side(self, wanted: bool, request: Request, work: Coroutine[Any, Any, _Side]) -> _Side:
        if not wanted:
            work.close()
            return _Side(note=f"retrieval mode is {request.mode.value}")
        try:
            return await asyncio.wait_for(work, self._lane_timeout_s)
        except (NotFound, Rejected):
            raise
        except TimeoutError:
            return _Side(note=f"no answer within {self._lane_timeout_s:g} s")
        except Failure as error:
            return _Side(note=error.message)

    async def _keyword(self, request: Request) -> _Side:
        async def search(lane_filter: LaneFilter) -> LaneAnswer:
            return await self._index.search_keyword(
                request.crate_id, request.query, lane_filter, request.depth, request.view
            )

        own, chunks = request.lane_filter, None
        if request.by_document and own.kind is RecordKind.CHUNK:
            documents = replace(own, kind=RecordKind.DOCUMENT)
            answer, chunks = await asyncio.gather(search(documents), search(own))
        else:
            answer = await search(own)
        return _Side(answer, chunks=chunks) if answer.terms else _Side(note=_NO_WORD)

    async def _vector(self, request: Request) -> _Side:
        vector = request.vector or await self._embedder.embed_query(request.crate_id, request.query)
        own = request.lane_filter
        lane_filter = replace(own, kind=RecordKind.CHUNK) if request.by_document else own
        answer = await self._index.search_vector(request.crate_id, vector, lane_filter, request.depth, request.view)
        return _Side(answer, vector=vector)


async def _read(
    fetch: Callable[[Sequence[RecordKey]], Awaitable[Fetched]],
    candidates: Sequence[Fused],
    position: int,
    view: View,
) -> Read:
    if not candidates:
        return Read((), position, {})
    fetched = await fetch([candidate.key for candidate in candidates])
    cursor = min(position, fetched.position)
    states = {(report.document_id, report.revision): report for report in fetched.states}
    # The lanes hold one stretch per revision; a revision that left it and came back is told by its state alone.
    gone = {key for key, report in states.items() if view.reach is Reach.IN_FORCE and not report.in_force}
    held = {
        passage.key: passage
        for passage in fetched.passages
        if passage.ingested_position <= cursor and (passage.key.document_id, passage.key.revision) not in gone
    }
    pairs = tuple((candidate, held[candidate.key]) for candidate in candidates if candidate.key in held)
    return Read(pairs, cursor, states)


def _rank(request: Request, keyword: _Side, vector: _Side) -> tuple[Fused, ...]:
    if request.mode is not RetrievalMode.HYBRID:
        answer = keyword.answer or vector.answer or LaneAnswer()
        return rank_one_lane(answer.hits, request.mode)
    words, meaning = (side.answer.hits if side.answer else () for side in (keyword, vector))
    weights, k = request.profile.weights.by_form(), request.profile.rank_constant
    if not request.by_document:
        return fuse(words, meaning, weights=weights, k=k)
    if request.lane_filter.kind is RecordKind.DOCUMENT:
        shown = tuple(replace(hit, key=replace(hit.key, ordinal=0, statement=0)) for hit in meaning)
    else:
        shown = (*meaning, *(keyword.chunks.hits if keyword.chunks else ()))
    return fuse_documents(words, meaning, shown=shown, weights=weights, k=k)


def _use(lane: str, side: _Side) -> LaneUse:
    return LaneUse(lane, side.answer is not None, side.note, len(side.answer.hits) if side.answer else 0)
