"""Original bytes of revisions, read from ingest by gRPC."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import ingest_service_pb2_grpc as pb_grpc

from services.kernel.errors import Corrupt
from services.query.adapters.outcomes_grpc import calling
from services.query.domain.values import RecordKey


class GrpcOriginals:
    """See ports.Originals. Of a large document only the pieces up to the last span are read, one at a time."""

    def __init__(self, *, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self._ingest = pb_grpc.IngestServiceStub(channel)
        self._timeout_s = timeout_s

    async def read(self, crate_id: str, key: RecordKey, spans: Sequence[tuple[int, int]]) -> tuple[bytes, ...]:
        """See Originals."""
        request = pb.ReadDocumentRequest(crate_id=crate_id, document_id=key.document_id, revision=key.revision)
        wanted = max(end for _, end in spans)
        found = [bytearray() for _ in spans]
        position = 0
        with calling("ingest"):
            stream = self._ingest.ReadDocument(request, timeout=self._timeout_s)
            async for piece in stream:
                for at, (start, end) in enumerate(spans):
                    found[at] += piece.body[max(start - position, 0) : max(end - position, 0)]
                position += len(piece.body)
                if position >= wanted:
                    stream.cancel()
                    break
        if position < wanted:
            raise Corrupt(
                f"document {key.document_id} revision {key.revision} has {position} bytes, but a citation ends at "
                f"{wanted}: run `affidavit doctor`"
            )
        return tuple(bytes(held) for held in found)
