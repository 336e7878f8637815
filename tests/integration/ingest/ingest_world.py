"""What the integration tests of ingest stand on: a client in few words, and the rest of the pipeline by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from affidavit.chunker.v1.chunker_events_pb2 import DocumentChunked
from affidavit.embedder.v1.embedder_events_pb2 import RecordsEmbedded
from affidavit.event.v1.envelope_pb2 import TaskFailed
from affidavit.index.v1.index_events_pb2 import RevisionIndexed
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import ingest_service_pb2_grpc as pb_grpc
from affidavit.ingest.v1.ingest_events_pb2 import DocumentIngested
from affidavit.ingest.v1.settings_pb2 import ChunkSettings

from services.kernel.bus import Bus
from services.kernel.envelope import Event

WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Client:
    """Calls in few words; everything else goes through `stub`."""

    stub: pb_grpc.IngestServiceAsyncStub

    @classmethod
    @asynccontextmanager
    async def connect(cls, address: str) -> AsyncIterator[Client]:
        """Open a client."""
        async with grpc.aio.insecure_channel(address) as channel:
            yield cls(pb_grpc.IngestServiceStub(channel))

    async def create_crate(self, crate_id: str) -> pb.CreateCrateResponse:
        """Create a crate with defaults."""
        return await self.stub.CreateCrate(pb.CreateCrateRequest(crate_id=crate_id))

    async def put(
        self, source_id: str, body: bytes, *, crate: str = "main", job: str = "", **header: object
    ) -> pb.PutDocumentResponse:
        """Put a plain text."""
        fields = {"media_type": "text/plain", **header}
        message = pb.DocumentHeader(source_id=source_id, job_id=job, **fields)  # type: ignore[arg-type]  # header fields
        return await self.stub.PutDocument(pb.PutDocumentRequest(crate_id=crate, header=message, body=body))

    async def job(self, job_id: str, *, size: int | None = None, overlap: int | None = None) -> pb.PutJobResponse:
        """Put a job."""
        chunking = ChunkSettings(size_chars=size, overlap_chars=overlap)
        return await self.stub.PutJob(pb.PutJobRequest(crate_id="main", job=pb.Job(job_id=job_id, chunking=chunking)))

    async def get(self, source_id: str, *, crate: str = "main") -> pb.Document:
        """Read a document."""
        reply = await self.stub.GetDocument(pb.GetDocumentRequest(crate_id=crate, source_id=source_id))
        return reply.document

    async def until(self, source_id: str, status: pb.DocumentStatus.ValueType) -> pb.Document:
        """Wait until a document has a status."""
        async with asyncio.timeout(WAIT_S):
            while True:
                document = await self.get(source_id)
                if document.status == status:
                    return document
                await asyncio.sleep(0.02)

    async def retire(self, source_id: str) -> pb.RetireDocumentResponse:
        """Retire a document."""
        return await self.stub.RetireDocument(pb.RetireDocumentRequest(crate_id="main", source_id=source_id))

    async def erase(self, source_id: str) -> pb.EraseDocumentResponse:
        """Erase a document."""
        return await self.stub.EraseDocument(pb.EraseDocumentRequest(crate_id="main", source_id=source_id))

    async def watch(self, **selection: object) -> list[pb.WatchProgressResponse]:
        """All messages of a progress stream."""
        request = pb.WatchProgressRequest(crate_id="main", **selection)  # type: ignore[arg-type]  # request fields
        return [reply async for reply in self.stub.WatchProgress(request)]


class Pipeline:
    """Chunker, embedder and index, played by hand."""

    def __init__(self, *, buses: Mapping[str, Bus], crate: str = "main") -> None:
        self.buses = buses
        self.crate = crate

    async def ingested(self, document_id: str) -> DocumentIngested:
        """The last DocumentIngested of a document."""
        event = await self.event(document_id)
        assert isinstance(event.message, DocumentIngested)
        return event.message

    async def event(self, document_id: str) -> Event:
        """The last DocumentIngested of a document, as it stands in the log."""
        event = await self.buses["ingest"].last_named(
            crate=self.crate, service="ingest", aggregate=document_id, name="DocumentIngested"
        )
        assert event is not None
        return event

    async def chunk(self, document_id: str, chunks: int, *, digest: str = "") -> int:
        """Append DocumentChunked for what was ingested last."""
        fact = await self.ingested(document_id)
        message = DocumentChunked(
            document_id=document_id,
            revision=fact.revision,
            settings_digest=digest or fact.settings_digest,
            chunk_count=chunks,
        )
        return await self._append("chunker", document_id, message, f"c{fact.revision}{message.settings_digest}")

    async def embed(self, document_id: str, records: int) -> int:
        """Append RecordsEmbedded for what was ingested last."""
        fact = await self.ingested(document_id)
        message = RecordsEmbedded(
            document_id=document_id,
            revision=fact.revision,
            settings_digest=fact.settings_digest,
            record_count=records,
        )
        return await self._append("embedder", document_id, message, f"e{fact.revision}{fact.settings_digest}")

    async def index(self, document_id: str, position: int) -> int:
        """Append the signal RevisionIndexed."""
        revision = (await self.ingested(document_id)).revision
        message = RevisionIndexed(document_id=document_id, revision=revision, generation=1, position=position)
        return await self._append("index", document_id, message, f"i{revision}:{position}")

    async def finish(self, document_id: str, chunks: int = 1) -> None:
        """Play the whole pipeline."""
        await self.chunk(document_id, chunks)
        await self.index(document_id, await self.embed(document_id, chunks))

    async def fail(self, document_id: str, reason: str, *, position: int) -> int:
        """Append the chunker's TaskFailed."""
        fact = await self.ingested(document_id)
        message = TaskFailed(
            service="chunker",
            stream="KNOWLEDGE",
            position=position,
            document_id=document_id,
            revision=fact.revision,
            code="corrupt",
            reason=reason,
            attempts=2,
        )
        message.failed_at.GetCurrentTime()
        return await self._append("chunker", document_id, message, f"f{position}")

    async def _append(self, role: str, aggregate: str, message: object, key: str) -> int:
        bus = self.buses[role]
        appended = await bus.append(crate=self.crate, aggregate=aggregate, message=message, key=key)  # type: ignore[arg-type]  # any event
        return appended.position
