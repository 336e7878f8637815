"""The citation controller, by gRPC."""

from __future__ import annotations

import grpc
from affidavit.citation.v1 import citation_service_pb2 as pb
from affidavit.citation.v1 import citation_service_pb2_grpc as pb_grpc

from services.query.adapters.outcomes_grpc import calling
from services.query.codec import incoming
from services.query.ports import Repaired


class GrpcCitations:
    """See ports.Citations."""

    def __init__(self, *, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self._citation = pb_grpc.CitationServiceStub(channel)
        self._timeout_s = timeout_s

    async def repair(self, crate_id: str, answer_id: str, raw_text: str, source_count: int) -> Repaired:
        """See Citations."""
        request = pb.RepairRequest(crate_id=crate_id, answer_id=answer_id, raw_text=raw_text, source_count=source_count)
        with calling("the citation service"):
            return incoming.repaired(await self._citation.Repair(request, timeout=self._timeout_s))
