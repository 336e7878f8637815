"""Both lanes, the chunks and what is known of documents, asked of the index by gRPC."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import index_service_pb2_grpc as pb_grpc

from services.query.adapters.outcomes_grpc import calling
from services.query.codec import incoming, living, outgoing
from services.query.domain.living import Family, Moment, Reach, Relation, StateReport, View
from services.query.domain.values import LaneAnswer, LaneFilter, RecordKey
from services.query.ports import Fetched, QueryVector, Walk

_INDEX = "the index"


class GrpcIndex:
    """See ports.Index."""

    def __init__(self, *, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self._index = pb_grpc.IndexServiceStub(channel)
        self._timeout_s = timeout_s

    async def search_keyword(
        self, crate_id: str, query: str, lane_filter: LaneFilter, limit: int, view: View
    ) -> LaneAnswer:
        """See Index."""
        request = pb.SearchKeywordRequest(
            crate_id=crate_id,
            query=query,
            filter=outgoing.lane_filter_message(lane_filter),
            limit=limit,
            reach=living.reach_value(view.reach),
            moment=living.moment_message(view.moment),
        )
        with calling(_INDEX):
            return incoming.keyword_answer(await self._index.SearchKeyword(request, timeout=self._timeout_s))

    async def search_vector(
        self, crate_id: str, vector: QueryVector, lane_filter: LaneFilter, limit: int, view: View
    ) -> LaneAnswer:
        """See Index."""
        request = pb.SearchVectorRequest(
            crate_id=crate_id,
            vector=outgoing.vector_bytes(vector.vector),
            model_id=vector.model_id,
            filter=outgoing.lane_filter_message(lane_filter),
            limit=limit,
            reach=living.reach_value(view.reach),
            moment=living.moment_message(view.moment),
        )
        with calling(_INDEX):
            return incoming.vector_answer(await self._index.SearchVector(request, timeout=self._timeout_s))

    async def fetch(self, crate_id: str, keys: Sequence[RecordKey], view: View) -> Fetched:
        """See Index."""
        return await self._fetch(pb.FetchChunksRequest(crate_id=crate_id, with_terms=True), keys, view)

    async def show(self, crate_id: str, keys: Sequence[RecordKey], terms: Sequence[str], view: View) -> Fetched:
        """See Index."""
        request = pb.FetchChunksRequest(crate_id=crate_id, with_terms=bool(terms), only_terms=terms, without_runs=True)
        return await self._fetch(request, keys, view)

    async def position(self, crate_id: str) -> int:
        """See Index."""
        with calling(_INDEX):
            reply = await self._index.GetWatermark(pb.GetWatermarkRequest(crate_id=crate_id), timeout=self._timeout_s)
        return int(reply.position)

    async def neighbours(
        self, crate_id: str, document_ids: Sequence[str], walk: Walk, moment: Moment
    ) -> tuple[Relation, ...]:
        """See Index."""
        request = pb.ListNeighboursRequest(
            crate_id=crate_id,
            document_ids=document_ids,
            depth=walk.depth,
            types=[kind.value for kind in walk.kinds],
            moment=living.moment_message(moment),
            fan_out=walk.fan_out,
        )
        with calling(_INDEX):
            reply = await self._index.ListNeighbours(request, timeout=self._timeout_s)
        return living.relations(reply.relations)

    async def states(self, crate_id: str, document_ids: Sequence[str], moment: Moment) -> tuple[StateReport, ...]:
        """See Index."""
        request = pb.ListStatesRequest(
            crate_id=crate_id, document_ids=document_ids, moment=living.moment_message(moment)
        )
        with calling(_INDEX):
            reply = await self._index.ListStates(request, timeout=self._timeout_s)
        return tuple(living.state_report(item) for item in reply.states)

    async def families(self, crate_id: str, document_ids: Sequence[str], moment: Moment) -> tuple[Family, ...]:
        """See Index."""
        request = pb.ListFamiliesRequest(
            crate_id=crate_id, document_ids=document_ids, moment=living.moment_message(moment)
        )
        with calling(_INDEX):
            reply = await self._index.ListFamilies(request, timeout=self._timeout_s)
        return living.families(reply.families)

    async def _fetch(self, request: pb.FetchChunksRequest, keys: Sequence[RecordKey], view: View) -> Fetched:
        request.keys.extend(outgoing.key_message(key) for key in keys)
        request.reach = living.reach_value(view.reach)
        moment = living.moment_message(view.moment)
        if moment is not None:
            request.moment.CopyFrom(moment)
        request.with_states = view.reach is not Reach.CURRENT or moment is not None
        with calling(_INDEX):
            reply = await self._index.FetchChunks(request, timeout=self._timeout_s)
        return Fetched(
            tuple(incoming.passage(item) for item in reply.chunks),
            reply.position,
            tuple(living.state_report(item) for item in reply.states),
        )
