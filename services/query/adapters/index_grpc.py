"""Both lanes and the chunks, asked of the index by gRPC."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import index_service_pb2_grpc as pb_grpc

from services.query.adapters.outcomes_grpc import calling
from services.query.codec import incoming, outgoing
from services.query.domain.values import LaneAnswer, LaneFilter, RecordKey
from services.query.ports import Fetched, QueryVector

_INDEX = "the index"


class GrpcIndex:
    """See ports.Index."""

    def __init__(self, *, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self._index = pb_grpc.IndexServiceStub(channel)
        self._timeout_s = timeout_s

    async def search_keyword(self, crate_id: str, query: str, lane_filter: LaneFilter, limit: int) -> LaneAnswer:
        """See Index."""
        request = pb.SearchKeywordRequest(
            crate_id=crate_id, query=query, filter=outgoing.lane_filter_message(lane_filter), limit=limit
        )
        with calling(_INDEX):
            return incoming.keyword_answer(await self._index.SearchKeyword(request, timeout=self._timeout_s))

    async def search_vector(
        self, crate_id: str, vector: QueryVector, lane_filter: LaneFilter, limit: int
    ) -> LaneAnswer:
        """See Index."""
        request = pb.SearchVectorRequest(
            crate_id=crate_id,
            vector=outgoing.vector_bytes(vector.vector),
            model_id=vector.model_id,
            filter=outgoing.lane_filter_message(lane_filter),
            limit=limit,
        )
        with calling(_INDEX):
            return incoming.vector_answer(await self._index.SearchVector(request, timeout=self._timeout_s))

    async def fetch(self, crate_id: str, keys: Sequence[RecordKey]) -> Fetched:
        """See Index."""
        return await self._fetch(
            pb.FetchChunksRequest(crate_id=crate_id, keys=[outgoing.key_message(key) for key in keys], with_terms=True)
        )

    async def show(self, crate_id: str, keys: Sequence[RecordKey], terms: Sequence[str]) -> Fetched:
        """See Index."""
        return await self._fetch(
            pb.FetchChunksRequest(
                crate_id=crate_id,
                keys=[outgoing.key_message(key) for key in keys],
                with_terms=bool(terms),
                only_terms=terms,
                without_runs=True,
            )
        )

    async def position(self, crate_id: str) -> int:
        """See Index."""
        with calling(_INDEX):
            reply = await self._index.GetWatermark(pb.GetWatermarkRequest(crate_id=crate_id), timeout=self._timeout_s)
        return int(reply.position)

    async def _fetch(self, request: pb.FetchChunksRequest) -> Fetched:
        with calling(_INDEX):
            reply = await self._index.FetchChunks(request, timeout=self._timeout_s)
        return Fetched(tuple(incoming.passage(item) for item in reply.chunks), reply.position)
