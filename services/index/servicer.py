"""Edge 2: searches in the lanes, chunks from the rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import grpc
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import index_service_pb2_grpc as pb_grpc

from services.index.codec import replies as codec
from services.index.domain import generations, requests
from services.index.domain.analysis import analyse_query
from services.index.domain.generations import Generation
from services.index.domain.living.changes import from_instant
from services.index.domain.records import LaneFilter, LaneHit, Reach, RevisionKey, TermStatistics, Within, strongest
from services.index.gate import Gate
from services.index.ports import ChunkReader, KeywordLanes, PastForces, VectorLanes
from services.index.remembered import RememberedRows
from services.index.states import LivingAnswers, LivingStateRpcs
from services.kernel.errors import Conflict, NotAvailableYet, NotFound, Rejected, Unavailable
from services.kernel.scrub import Scrubber

# A search that meets a batch on its way looks again: the lanes are written before the rows.
_LOOKS = 4
_SETTLE_S = 0.25
_WIDEST = 2 * requests.MAX_LIMIT
# A chunk may have many records: where they leave no room for other chunks, lanes are asked for more.
_DEEPER = 4
_DEEPEST = 64 * requests.MAX_LIMIT

Call = grpc.aio.ServicerContext[Any, Any]
Reaching = pb.SearchKeywordRequest | pb.SearchVectorRequest | pb.FetchChunksRequest
Search = Callable[[int], Awaitable[list[LaneHit]]]


class IndexServicer(LivingStateRpcs, pb_grpc.IndexServiceServicer):
    """Serves affidavit.index.v1.IndexService."""

    def __init__(
        self,
        *,
        reader: ChunkReader,
        past: PastForces,
        keyword_lanes: KeywordLanes,
        vector_lanes: VectorLanes,
        gate: Gate,
        scrubber: Scrubber,
        incarnation: bytes,
        clock: Callable[[], datetime],
        states: LivingAnswers,
    ) -> None:
        self._states = states
        self._reader = reader
        self._past = past
        self._clock = clock
        self._remembered = RememberedRows(reader=reader, gate=gate)
        self._keyword_lanes = keyword_lanes
        self._vector_lanes = vector_lanes
        self._gate = gate
        self._scrubber = scrubber
        self._incarnation = incarnation

    async def SearchKeyword(self, request: pb.SearchKeywordRequest, context: Call) -> pb.SearchKeywordResponse:
        """Rank records by BM25 over the query's words."""
        _check_limit("limit", request.limit)
        generation = await self._serving(request.crate_id)
        lane_filter = await self._filter(request, _filter(request.filter))
        terms = analyse_query(request.query)
        number = generation.start.generation
        if not terms:
            position = await self._reader.position()
            return codec.keyword_response((), (), TermStatistics(0), position=position, generation=number)
        lane = await self._keyword_lanes.open(request.crate_id, number)

        async def search(limit: int) -> list[LaneHit]:
            return await lane.search(terms, lane_filter, limit)

        (hits, position), statistics = await asyncio.gather(
            self._confirmed(request.crate_id, lane_filter, search, request.limit),
            lane.term_statistics(terms, lane_filter.kind, lane_filter.reach),
        )
        return codec.keyword_response(hits, terms, statistics, position=position, generation=number)

    async def SearchVector(self, request: pb.SearchVectorRequest, context: Call) -> pb.SearchVectorResponse:
        """Rank records by cosine."""
        _check_limit("limit", request.limit)
        told = _filter(request.filter)
        try:
            vector = codec.query_vector(request.vector)
        except ValueError as error:
            raise Rejected(str(error)) from error
        generation = await self._serving(request.crate_id)
        start = generation.start
        if (request.model_id, len(vector)) != (start.model_id, start.dimension):
            raise Conflict(
                f"the vector comes from {request.model_id or 'an unnamed model'} with {len(vector)} dimensions, but "
                f"generation {start.generation} of crate {request.crate_id} is built on {start.model_id} with "
                f"{start.dimension}: embed the query with that model, or set the crate's embedding provider back to it"
            )
        lane_filter = await self._filter(request, told)
        lane = await self._vector_lanes.open(request.crate_id, start.generation, start.dimension)

        async def search(limit: int) -> list[LaneHit]:
            return await lane.search(vector, lane_filter, limit)

        hits, position = await self._confirmed(request.crate_id, lane_filter, search, request.limit)
        return codec.vector_response(hits, position=position, generation=start.generation)

    async def FetchChunks(self, request: pb.FetchChunksRequest, context: Call) -> pb.FetchChunksResponse:
        """Read chunks of revisions within reach."""
        _check_limit("the number of keys", len(request.keys))
        within = Within(await self._filter(request, LaneFilter()))
        fetched = await self._reader.fetch(
            request.crate_id, codec.chunk_keys(request.keys), with_terms=request.with_terms
        )
        chunks = tuple(
            chunk for chunk in fetched.chunks if within((chunk.key.document_id, chunk.key.revision), chunk.force)
        )
        reply = codec.fetch_response(replace(fetched, chunks=chunks), request)
        if request.with_states:
            shown = {(chunk.key.document_id, chunk.key.revision) for chunk in chunks}
            as_of = from_instant(codec.as_of(request.moment, self._clock()))
            told = await self._states.reports(
                request.crate_id, as_of, request.moment.at, [document_id for document_id, _ in shown]
            )
            reply.states.extend(told[key] for key in sorted(shown & told.keys()))
        return reply

    async def ListChunks(self, request: pb.ListChunksRequest, context: Call) -> pb.ListChunksResponse:
        """Read one revision page by page."""
        page_size = request.page_size or requests.DEFAULT_PAGE_SIZE
        _check_limit("page_size", page_size)
        revision, first = request.revision, 0
        if request.page_token:
            try:
                revision, first = requests.parse_page_token(request.page_token)
            except ValueError as error:
                raise Rejected(
                    f"page_token {request.page_token[:64]!r} is none of ours: give the last reply's next_page_token"
                ) from error
        page = await self._reader.page(request.crate_id, request.document_id, revision, first, page_size)
        if page is None:
            wanted = f"revision {revision}" if revision else "a searchable revision"
            raise NotFound(
                f"document {request.document_id[:64]!r} of crate {request.crate_id} has no chunks of {wanted}: "
                "see `affidavit documents` for its status"
            )
        return codec.page_response(page)

    async def GetWatermark(self, request: pb.GetWatermarkRequest, context: Call) -> pb.GetWatermarkResponse:
        """Tell how far the log was applied."""
        return pb.GetWatermarkResponse(position=await self._reader.position(), incarnation=self._incarnation)

    async def GetErasure(self, request: pb.GetErasureRequest, context: Call) -> pb.GetErasureResponse:
        """Tell whether an erased document's content is off the disk."""
        found = await self._scrubber.standing(request.crate_id, request.document_id, request.position)
        return pb.GetErasureResponse(gone=found.gone, waiting=found.waiting, problem=found.problem)

    async def ListGenerations(self, request: pb.ListGenerationsRequest, context: Call) -> pb.ListGenerationsResponse:
        """List a crate's generations."""
        found = await self._reader.generations(request.crate_id)
        return codec.generations_response(found, await self._reader.record_counts(request.crate_id))

    async def Rebuild(self, request: pb.RebuildRequest, context: Call) -> pb.RebuildResponse:
        """Refuse: further generations aren't built yet."""
        raise NotAvailableYet("Rebuild is not available yet: a crate keeps its first generation")

    async def _serving(self, crate_id: str) -> Generation:
        self._gate.check()
        found = generations.serving(await self._remembered.generations(crate_id))
        if found is None:
            raise Unavailable(
                f"crate {crate_id} has no generation that serves yet: it starts once its embedding provider answers; "
                "retry, or see `affidavit failures list`"
            )
        return found

    async def _filter(self, request: Reaching, lane_filter: LaneFilter) -> LaneFilter:
        """A filter with the reach and the moment that a request asks for.

        Raises:
            Rejected: When there is no such reach or instant, or the position isn't applied yet.
        """
        try:
            reach = codec.reach(request.reach)
            as_of = codec.as_of(request.moment, self._clock())
        except ValueError as error:
            raise Rejected(str(error)) from error
        at = request.moment.at
        told = replace(lane_filter, reach=reach, as_of=as_of)
        if not at:
            return told
        applied = await self._reader.position()
        if at > applied:
            raise Rejected(
                f"moment.at is {at}, but crate {request.crate_id} is known up to position {applied}: give that or an "
                "earlier one, or wait until the index has applied it"
            )
        if reach is not Reach.IN_FORCE:
            return replace(told, at=at, without=await self._past.unknown(request.crate_id, at=at))
        found = await self._past.differences(request.crate_id, as_of=as_of, at=at)
        return replace(told, at=at, also=found.also, without=found.without)

    async def _confirmed(
        self, crate_id: str, lane_filter: LaneFilter, search: Search, limit: int
    ) -> tuple[list[LaneHit], int]:
        """Search until every hit's revision is within reach by the rows, a few times at most.

        A hit of another revision means that a batch is on its way: the lanes are ahead of the rows, or the rows went
        ahead after the lanes were searched. Looking again finds the document once, in the revision that replaced it.
        """
        within = Within(lane_filter)
        width = limit
        for look in range(1, _LOOKS + 1):
            hits = await _chunks(search, width)
            standing = await self._remembered.standing(crate_id, [_key(hit) for hit in hits])
            kept = [
                hit
                for hit in hits
                if (force := standing.forces.get(_key(hit))) is not None and within(_key(hit), force)
            ]
            ghosts = len(hits) - len(kept)
            if not ghosts or look == _LOOKS:
                break
            if len(kept) >= limit and look > 1:
                break
            width = min(limit + ghosts, _WIDEST)
            await self._gate.settled(_SETTLE_S)
        return kept[:limit], standing.position


async def _chunks(search: Search, limit: int) -> list[LaneHit]:
    """Search until as many chunks as wanted are found, each by its strongest record, or there is nothing more."""
    width = limit
    while True:
        hits = await search(width)
        chunks = strongest(hits)
        if len(chunks) >= limit or len(hits) < width or width == _DEEPEST:
            return chunks[:limit]
        width = min(_DEEPER * width, _DEEPEST)


def _key(hit: LaneHit) -> RevisionKey:
    return hit.document_id, hit.revision


def _check_limit(name: str, value: int) -> None:
    problem = requests.limit_problem(name, value)
    if problem:
        raise Rejected(problem)


def _filter(message: pb.LaneFilter) -> LaneFilter:
    try:
        return codec.lane_filter(message)
    except ValueError as error:
        raise Rejected(str(error)) from error
