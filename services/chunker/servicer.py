"""Edge 2: gRPC."""

from __future__ import annotations

import asyncio

from affidavit.chunker.v1 import chunker_service_pb2 as pb
from affidavit.chunker.v1 import chunker_service_pb2_grpc as pb_grpc

from services.chunker import codec
from services.chunker.bounds import embedding_bound
from services.chunker.domain.chunking import chunk
from services.chunker.ports import Log
from services.kernel.errors import Rejected
from services.kernel.rpc import Call

MAX_PREVIEW_CHARS = 2_000_000


class ChunkerServicer(pb_grpc.ChunkerServiceServicer):
    """Cuts without storing anything."""

    def __init__(self, *, log: Log) -> None:
        self._log = log

    async def Preview(self, request: pb.PreviewRequest, context: Call) -> pb.PreviewResponse:
        """See the contract.

        Raises:
            Rejected: When the text is too long, the sizes are out of range or the document contradicts itself.
        """
        if len(request.document.text) > MAX_PREVIEW_CHARS:
            raise Rejected(f"a preview takes at most {MAX_PREVIEW_CHARS} characters: ingest longer documents instead")
        bound = await embedding_bound(self._log, request.crate_id)
        try:
            return await asyncio.to_thread(_preview, request, bound)
        except ValueError as error:
            raise Rejected(f"the document can't be cut: {error}") from error


def _preview(request: pb.PreviewRequest, bound: int) -> pb.PreviewResponse:
    sizes = codec.sizes(request.chunking, max_input_chars=bound)
    document = codec.previewed(request.document)
    chunks = chunk(document, size_chars=sizes.size_chars, overlap_chars=sizes.overlap_chars)
    return codec.preview(chunks, sizes.notices)
