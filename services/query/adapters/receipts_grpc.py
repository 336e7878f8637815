"""The signer, by gRPC."""

from __future__ import annotations

import grpc
from affidavit.receipt.v1 import receipt_service_pb2_grpc as pb_grpc

from services.query.adapters.outcomes_grpc import calling
from services.query.codec import outgoing
from services.query.domain.claims import Claim, IssuedReceipt


class GrpcReceipts:
    """See ports.Receipts."""

    def __init__(self, *, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self._receipt = pb_grpc.ReceiptServiceStub(channel)
        self._timeout_s = timeout_s

    async def issue(self, claim: Claim) -> IssuedReceipt:
        """See Receipts."""
        with calling("the receipt service"):
            reply = await self._receipt.IssueReceipt(outgoing.receipt_request(claim), timeout=self._timeout_s)
        return IssuedReceipt(reply.receipt_id, reply.bundle)
