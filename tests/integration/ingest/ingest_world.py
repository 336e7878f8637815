"""What the integration tests of ingest stand on: a client in few words, and the rest of the pipeline by hand."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import grpc
from affidavit.chunker.v1.chunker_events_pb2 import DocumentChunked
from affidavit.embedder.v1.embedder_events_pb2 import RecordsEmbedded
from affidavit.event.v1.envelope_pb2 import TaskFailed
from affidavit.index.v1.index_events_pb2 import RevisionIndexed
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import ingest_service_pb2_grpc as pb_grpc
from affidavit.ingest.v1.ingest_events_pb2 import DocumentIngested
from affidavit.ingest.v1.settings_pb2 import ChunkSettings

from services.embedded.children import NatsServer, free_port
from services.embedded.folder import DataFolder
from services.ingest.main import wire
from services.kernel.bus import Bus
from services.kernel.envelope import Event
from services.kernel.runner import Node
from services.kernel.settings import NodeSettings
from tests.integration.waiting import heard

WAIT_S = 10.0
ROLES = ("ingest", "chunker", "embedder", "index")


@dataclass(frozen=True, slots=True)
class Client:
    """Calls in few words; everything else goes through `stub`."""

    stub: pb_grpc.IngestServiceAsyncStub
    crate: str

    @classmethod
    @asynccontextmanager
    async def connect(cls, address: str, *, crate: str) -> AsyncIterator[Client]:
        """Open a client for a crate."""
        async with grpc.aio.insecure_channel(address) as channel:
            yield cls(pb_grpc.IngestServiceStub(channel), crate)

    async def create_crate(self, crate_id: str) -> pb.CreateCrateResponse:
        """Create a crate with defaults."""
        return await self.stub.CreateCrate(pb.CreateCrateRequest(crate_id=crate_id))

    async def put(
        self, source_id: str, body: bytes, *, crate: str | None = None, job: str = "", **header: object
    ) -> pb.PutDocumentResponse:
        """Put a plain text."""
        fields = {"media_type": "text/plain", **header}
        message = pb.DocumentHeader(source_id=source_id, job_id=job, **fields)  # type: ignore[arg-type]  # header fields
        return await self.stub.PutDocument(
            pb.PutDocumentRequest(crate_id=self.crate if crate is None else crate, header=message, body=body)
        )

    async def job(self, job_id: str, *, size: int | None = None, overlap: int | None = None) -> pb.PutJobResponse:
        """Put a job."""
        chunking = ChunkSettings(size_chars=size, overlap_chars=overlap)
        return await self.stub.PutJob(
            pb.PutJobRequest(crate_id=self.crate, job=pb.Job(job_id=job_id, chunking=chunking))
        )

    async def get(self, source_id: str) -> pb.Document:
        """Read a document."""
        reply = await self.stub.GetDocument(pb.GetDocumentRequest(crate_id=self.crate, source_id=source_id))
        return reply.document

    async def until_there(self, source_id: str) -> pb.Document:
        """Wait until a document exists."""
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    return await self.get(source_id)
                except grpc.aio.AioRpcError as error:
                    if error.code() is not grpc.StatusCode.NOT_FOUND:
                        raise
                await asyncio.sleep(0.02)

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
        return await self.stub.RetireDocument(pb.RetireDocumentRequest(crate_id=self.crate, source_id=source_id))

    async def erase(self, source_id: str) -> pb.EraseDocumentResponse:
        """Erase a document."""
        return await self.stub.EraseDocument(pb.EraseDocumentRequest(crate_id=self.crate, source_id=source_id))

    async def watch(self, **selection: object) -> list[pb.WatchProgressResponse]:
        """All messages of a progress stream."""
        request = pb.WatchProgressRequest(crate_id=self.crate, **selection)  # type: ignore[arg-type]  # request fields
        return [reply async for reply in self.stub.WatchProgress(request)]


class World:
    """A node that runs ingest alone, on servers of its own.

    Attributes:
        settings: Of the node.
        node: Running.
        buses: Connections as the pipeline's roles.
    """

    def __init__(self, *, settings: NodeSettings, buses: Mapping[str, Bus]) -> None:
        self.settings = settings
        self.buses = buses
        self.node = Node(settings=settings, wires={"ingest": wire})

    @property
    def address(self) -> str:
        """Where the node serves."""
        return self.node.server.address

    @classmethod
    @asynccontextmanager
    async def start(cls, folder: Path, postgres: str) -> AsyncIterator[World]:
        """Start a log, a database and a node.

        Args:
            folder: Empty folder.
            postgres: DSN of the session's Postgres.
        """
        data = DataFolder(folder / "nats")
        data.claim()
        nats_server = NatsServer(data)
        await nats_server.start()
        admin = await asyncpg.connect(postgres)
        name = f"t{secrets.token_hex(6)}"
        await admin.execute(f"create database {name}")
        settings = NodeSettings(
            data_dir=folder / "data",
            nats_url=nats_server.url,
            postgres_dsn=f"{postgres.rsplit('/', 1)[0]}/{name}",
            listen=f"127.0.0.1:{free_port()}",
        )
        buses = {role: await Bus.connect(settings.nats_url, role=role) for role in ROLES}
        world = cls(settings=settings, buses=buses)
        await world.node.start()
        await heard(world.node)
        yield world
        await world.node.stop()
        for bus in buses.values():
            await bus.close()
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()
        nats_server.stop()
        data.release()

    async def restart_stopped(self) -> None:
        """Start the node again after `node.stop()`."""
        self.node = Node(settings=self.settings, wires={"ingest": wire})
        await self.node.start()
        await heard(self.node)


class Pipeline:
    """Chunker, embedder and index, played by hand."""

    def __init__(self, *, buses: Mapping[str, Bus], crate: str) -> None:
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
