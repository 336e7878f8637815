"""All eight roles in this process, on servers of their own, with a model that costs nothing."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import grpc
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import ingest_service_pb2_grpc as pb_grpc
from affidavit.query.v1 import query_service_pb2 as query_pb
from affidavit.query.v1 import query_service_pb2_grpc as query_grpc
from nats.aio.client import Client as Nats

from services import topology
from services.embedded.children import NatsServer, free_port
from services.embedded.folder import DataFolder
from services.embedded.node import wires
from services.kernel import auth, channels
from services.kernel.bus import Bus
from services.kernel.runner import Node
from services.kernel.settings import NodeSettings
from tests.integration.waiting import heard

WAIT_S = 30.0


class WholeNode:
    """A node that runs everything.

    Attributes:
        settings: Of the node.
        channel: To it, as the machine's owner unless a call's metadata say otherwise.
        bus: The log, as ingest writes it.
    """

    def __init__(self, *, settings: NodeSettings, identify: auth.Identify) -> None:
        self.settings = settings
        self._identify = identify
        self.node: Node
        self.channel: grpc.aio.Channel
        self.ingest: pb_grpc.IngestServiceAsyncStub
        self.query: query_grpc.QueryServiceAsyncStub
        self.bus: Bus

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        folder: Path,
        postgres: str,
        *,
        identify: auth.Identify = auth.local_owner,
        settings: Mapping[str, object] | None = None,
    ) -> AsyncIterator[WholeNode]:
        """Start servers and node.

        Args:
            folder: Empty.
            postgres: DSN of the session's Postgres.
            identify: Names the caller.
            settings: For affidavit.toml.
        """
        owner = DataFolder(folder / "nats")
        owner.claim()
        server = NatsServer(owner)
        await server.start()
        admin = await asyncpg.connect(postgres)
        name = f"t{secrets.token_hex(6)}"
        await admin.execute(f"create database {name}")
        data = folder / "data"
        data.mkdir(parents=True)
        lines = {"embedder_model": '"hash-384"', "allow_loopback_providers": "true"} | {
            key: str(value) for key, value in (settings or {}).items()
        }
        (data / "affidavit.toml").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        node_settings = NodeSettings(
            data_dir=data,
            nats_url=server.url,
            postgres_dsn=f"{postgres.rsplit('/', 1)[0]}/{name}",
            listen=f"127.0.0.1:{free_port()}",
        )
        whole = cls(settings=node_settings, identify=identify)
        await whole.open()
        yield whole
        await whole.close()
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()
        server.stop()
        owner.release()

    async def open(self, *, without: Sequence[str] = ()) -> None:
        """Start the node.

        Args:
            without: Roles that are away.
        """
        roles = [role for role in topology.ROLE_NAMES if role not in without]
        self.node = Node(settings=self.settings, wires=wires(roles), identify=self._identify)
        await self.node.start()
        await heard(self.node)
        self.channel = channels.channel(self.settings.listen)
        self.ingest = pb_grpc.IngestServiceStub(self.channel)
        self.query = query_grpc.QueryServiceStub(self.channel)
        self.bus = await Bus.connect(self.settings.nats_url, role="ingest")

    async def close(self) -> None:
        """Stop the node."""
        await self.bus.close()
        await self.channel.close()
        await self.node.stop()

    async def reopen(self, *, without: Sequence[str] = ()) -> None:
        """Stop the node and start it again."""
        await self.close()
        await self.open(without=without)

    @property
    def nats(self) -> Nats:
        """A NATS connection of its own."""
        return self.bus.nats

    async def create(self, crate: str) -> None:
        """Create a crate."""
        await self.ingest.CreateCrate(pb.CreateCrateRequest(crate_id=crate))

    async def put(self, crate: str, source_id: str, text: str, job: str = "") -> pb.PutDocumentResponse:
        """Put a plain text."""
        header = pb.DocumentHeader(source_id=source_id, media_type="text/plain", job_id=job)
        return await self.ingest.PutDocument(pb.PutDocumentRequest(crate_id=crate, header=header, body=text.encode()))

    async def document(self, crate: str, source_id: str) -> pb.Document:
        """Read a document."""
        reply = await self.ingest.GetDocument(pb.GetDocumentRequest(crate_id=crate, source_id=source_id))
        return reply.document

    async def until(
        self, crate: str, source_id: str, status: pb.DocumentStatus.ValueType, wait_s: float = WAIT_S
    ) -> pb.Document:
        """Wait until a document has a status."""
        found: list[pb.Document] = []

        async def has() -> bool:
            found[:] = [await self.document(crate, source_id)]
            return found[0].status == status

        await eventually(has, wait_s)
        return found[0]

    async def found(self, crate: str, words: str) -> list[str]:
        """Source ids that a search returns."""
        reply = await self.query.Search(query_pb.SearchRequest(crate_id=crate, query=words, limit=10))
        return [result.source_id for result in reply.results]

    async def failures(self, crate: str) -> list[pb.Failure]:
        """Failures of a crate, newest first."""
        return list((await self.ingest.ListFailures(pb.ListFailuresRequest(crate_id=crate))).failures)

    def files(self, crate: str, document_id: str, step: str) -> list[Path]:
        """Pack files of one step of a document."""
        return sorted((self.settings.blobs / crate).glob(f"*/{document_id},*,{step},*"))


async def eventually(holds: Callable[[], object], wait_s: float = WAIT_S) -> None:
    """Wait until a condition, plain or awaitable, holds."""
    async with asyncio.timeout(wait_s):
        while True:
            answer = holds()
            if asyncio.iscoroutine(answer):
                answer = await answer
            if answer:
                return
            await asyncio.sleep(0.05)
