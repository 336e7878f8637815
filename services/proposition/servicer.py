"""Edge 2: gRPC."""

from __future__ import annotations

from affidavit.proposition.v1 import proposition_service_pb2 as pb
from affidavit.proposition.v1 import proposition_service_pb2_grpc as pb_grpc

from services.kernel.errors import NotAvailableYet
from services.kernel.rpc import Call


class PropositionServicer(pb_grpc.PropositionServiceServicer):
    """Lists propositions, once there are any."""

    async def ListPropositions(self, request: pb.ListPropositionsRequest, context: Call) -> pb.ListPropositionsResponse:
        """See the contract.

        Raises:
            NotAvailableYet: Always.
        """
        raise NotAvailableYet(
            "propositions are not available yet: this version indexes chunks as they are (retrieval_strategy standard)"
        )
