"""The citation controller, by gRPC."""

from __future__ import annotations

import grpc
from affidavit.citation.v1 import citation_service_pb2 as pb
from affidavit.citation.v1 import citation_service_pb2_grpc as pb_grpc

from services.query.adapters.outcomes_grpc import calling
from services.query.codec import incoming
from services.query.domain.claims import RawAnswer, Repaired


class GrpcCitations:
    """See ports.Citations."""

    def __init__(self, *, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self._citation = pb_grpc.CitationServiceStub(channel)
        self._timeout_s = timeout_s

    async def repair(self, draft: RawAnswer) -> Repaired:
        """See Citations."""
        request = pb.RepairRequest(
            crate_id=draft.crate_id,
            answer_id=draft.answer_id,
            raw_text=draft.text,
            source_count=draft.source_count,
            literals=[pb.LiteralSpan(char_start=start, char_end=end) for start, end in draft.literals],
        )
        with calling("the citation service"):
            return incoming.repaired(await self._citation.Repair(request, timeout=self._timeout_s))
