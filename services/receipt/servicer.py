"""Edge 2: gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator

from affidavit.receipt.v1 import receipt_service_pb2 as pb
from affidavit.receipt.v1 import receipt_service_pb2_grpc as pb_grpc

from services.kernel.errors import NotAvailableYet
from services.kernel.rpc import Call
from services.receipt.archive import Archive
from services.receipt.codec import messages
from services.receipt.issuing import Issuer

_LATER = "{} needs the Merkle logs, which are not available yet: receipts of version 0 carry no proofs"


class ReceiptServicer(pb_grpc.ReceiptServiceServicer):
    """Receipts over gRPC."""

    def __init__(self, *, issuer: Issuer, archive: Archive) -> None:
        self._issuer = issuer
        self._archive = archive

    async def IssueReceipt(self, request: pb.IssueReceiptRequest, _context: Call) -> pb.IssueReceiptResponse:
        """Sign an answer."""
        receipt_id, bundle = await self._issuer.issue(request.crate_id, messages.draft_from(request))
        return messages.issue_response(receipt_id, bundle)

    async def GetReceipt(self, request: pb.GetReceiptRequest, _context: Call) -> pb.GetReceiptResponse:
        """Hand out a receipt with what is still disclosed."""
        shown = await self._archive.show(request.crate_id, request.receipt_id)
        return messages.get_response(shown.bundle, shown.view_json, disclosed=shown.disclosed)

    async def GetErasure(self, request: pb.GetErasureRequest, _context: Call) -> pb.GetErasureResponse:
        """Tell whether what receipts disclose of an erased document is off the disk."""
        return pb.GetErasureResponse(
            gone=await self._archive.erased(request.crate_id, request.document_id, request.position)
        )

    async def VerifyReceipt(self, request: pb.VerifyReceiptRequest, _context: Call) -> pb.VerifyReceiptResponse:
        """Verify a bundle with the server's own key."""
        ok, verdict_json = await self._archive.verify(request.crate_id, request.bundle)
        return messages.verify_response(ok=ok, verdict_json=verdict_json)

    async def ListKeys(self, _request: pb.ListKeysRequest, _context: Call) -> pb.ListKeysResponse:
        """Hand out the keys file."""
        return messages.keys_response(self._archive.keys_file())

    async def ProveReceipt(self, _request: pb.ProveReceiptRequest, _context: Call) -> pb.ProveReceiptResponse:
        """Not available yet."""
        raise NotAvailableYet(_LATER.format("ProveReceipt"))

    async def GetCheckpoint(self, _request: pb.GetCheckpointRequest, _context: Call) -> pb.GetCheckpointResponse:
        """Not available yet."""
        raise NotAvailableYet(_LATER.format("GetCheckpoint"))

    async def WatchReceipts(
        self, _request: pb.WatchReceiptsRequest, _context: Call
    ) -> AsyncIterator[pb.WatchReceiptsResponse]:
        """Not available yet."""
        raise NotAvailableYet("watching receipts is not available yet: ask for a receipt's state with GetReceipt")
        yield
