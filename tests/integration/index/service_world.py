"""A node that runs the index alone; ingest, chunker and embedder are played by the test, on the real log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import grpc
import numpy as np
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.embedder.v1 import embedder_events_pb2 as embedder_pb
from affidavit.embedder.v1 import embedder_service_pb2 as models_pb
from affidavit.embedder.v1 import embedder_service_pb2_grpc as models_grpc
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_events_pb2 as events_pb
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import index_service_pb2_grpc as pb_grpc
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.proposition.v1 import proposition_events_pb2 as proposition_pb
from google.protobuf.message import Message

from services.index.main import wire
from services.kernel import channels, rpc
from services.kernel.blobs import FolderBlobs
from services.kernel.bus import Bus, decode_message
from services.kernel.envelope import Event
from services.kernel.errors import NotAvailableYet, Rejected
from services.kernel.packs import PackStore
from services.kernel.runner import Context, Node, Role
from services.kernel.settings import NodeSettings

MODEL = "unit-model"
DIMENSION = 4
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
_PATIENCE_S = 20.0


def document_id(number: int) -> str:
    """A document id."""
    return f"{number:032x}"


def axis(number: int) -> list[float]:
    """A unit vector."""
    return [float(number % DIMENSION == place) for place in range(DIMENSION)]


def packed(vector: Sequence[float]) -> bytes:
    """A query vector as it travels."""
    return np.asarray(vector, dtype="<f4").tobytes()


class Models(models_grpc.EmbedderServiceServicer):
    """Stands in for the model; answers what the index asks of the embedder."""

    def __init__(self) -> None:
        self.ready = True
        self.refused = ""

    async def ListModels(  # noqa: N802  (name of the contract)
        self,
        request: models_pb.ListModelsRequest,  # noqa: ARG002  (shape of the contract)
        context: object,  # noqa: ARG002  (shape of the contract)
    ) -> models_pb.ListModelsResponse:
        if self.refused:
            raise Rejected(self.refused)
        if not self.ready:
            return models_pb.ListModelsResponse()
        model = models_pb.Model(model_id=MODEL, role="embedding", dimension=DIMENSION, fingerprint="f" * 8, ready=True)
        return models_pb.ListModelsResponse(models=[models_pb.Model(model_id="r", role="rerank"), model])

    async def Embed(self, request: models_pb.EmbedRequest, context: object) -> models_pb.EmbedResponse:  # noqa: N802, ARG002  (contract)
        raise NotAvailableYet("no test embeds")

    async def Rerank(self, request: models_pb.RerankRequest, context: object) -> models_pb.RerankResponse:  # noqa: N802, ARG002  (contract)
        raise NotAvailableYet("no test reranks")


class World:
    """The log with the index on it."""

    def __init__(self, *, settings: NodeSettings) -> None:
        self.settings = settings
        self.models = Models()
        self.node: Node
        self.index: pb_grpc.IndexServiceAsyncStub
        self.context: Context
        self._blobs = FolderBlobs(root=settings.blobs)
        self.packs = PackStore(blobs=self._blobs)
        self._ingest: Bus
        self._embedder: Bus
        self._channel: grpc.aio.Channel
        self._appended = 0

    async def open(self) -> None:
        self._ingest = await Bus.connect(self.settings.nats_url, role="ingest")
        self._embedder = await Bus.connect(self.settings.nats_url, role="embedder")
        await self.start()

    async def start(self) -> None:
        async def embedder(_: Context) -> Role:
            add = models_grpc.add_EmbedderServiceServicer_to_server
            return Role(
                name="embedder",
                servicers=(rpc.Servicer("affidavit.embedder.v1.EmbedderService", add, self.models),),
            )

        async def index(context: Context) -> Role:
            self.context = context
            return await wire(context)

        self.node = Node(settings=self.settings, wires={"embedder": embedder, "index": index})
        await self.node.start()
        self._channel = channels.channel(self.node.server.address)
        self.index = pb_grpc.IndexServiceStub(self._channel)

    async def stop(self) -> None:
        await self._channel.close()
        await self.node.stop()

    async def close(self) -> None:
        await self._ingest.close()
        await self._embedder.close()
        self._blobs.close()

    # ---- What the rest of the pipeline would do ----

    async def create_crate(self, crate: str = "main", revision: int = 1) -> int:
        message = ingest_pb.CrateConfigured(revision=revision)
        return await self._append(self._ingest, crate, "crate", message)

    async def started(self, crate: str = "main") -> None:
        """Create a crate and wait until its generation serves."""
        await self.create_crate(crate)
        await self.until_active(crate)

    async def until_active(self, crate: str = "main") -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            reply = await self.index.ListGenerations(pb.ListGenerationsRequest(crate_id=crate))
            if [generation.status for generation in reply.generations] == ["active"]:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"no generation of {crate} became active: {await self.node.problems()}")

    async def ingest(
        self,
        number: int,
        revision: int = 1,
        *,
        crate: str = "main",
        digest: str = "d1",
        form: event_pb.Form.ValueType = event_pb.FORM_TEXT,
        effective_at: datetime = NOON,
    ) -> int:
        message = ingest_pb.DocumentIngested(
            document_id=document_id(number), revision=revision, settings_digest=digest, form=form
        )
        message.effective_at.FromDatetime(effective_at)
        return await self._append(self._ingest, crate, document_id(number), message)

    async def embed(
        self,
        number: int,
        texts: Sequence[str],
        revision: int = 1,
        *,
        crate: str = "main",
        digest: str = "d1",
        form: event_pb.Form.ValueType = event_pb.FORM_TEXT,
        title: str = "",
        source_domain: str = "example.org",
        vectors: Sequence[Sequence[float]] | None = None,
        model: str = MODEL,
        generation: int = 1,
        chunks_parts: Mapping[str, bytes] | None = None,
        vectors_parts: Mapping[str, bytes] | None = None,
        evaluations: Sequence[proposition_pb.Evaluation] | None = None,
    ) -> int:
        """Say that a revision is embedded.

        With evaluations, those of its chunks in order, the vectors of their accepted propositions follow the chunks'.
        """
        message = embedder_pb.RecordsEmbedded(
            document_id=document_id(number),
            revision=revision,
            settings_digest=digest,
            generation=generation,
            record_count=len(texts),
            form=form,
        )
        if evaluations is not None:
            await self._evaluated(message, f"{crate}/{document_id(number)}/{revision}", len(texts), evaluations)
        if texts:
            prefix = f"{crate}/{document_id(number)}/{revision}"
            rows = np.asarray([axis(number)] * message.record_count if vectors is None else vectors, dtype="<f4")
            header = embedder_pb.VectorSet(model_id=model, dimension=rows.shape[1], count=len(rows))
            written = {"chunks": _chunk_set(number, texts, title, source_domain)}
            floats = {"vectors": header.SerializeToString(), "float32": rows.tobytes()}
            chunks = await self.packs.write(f"{prefix}/chunks", written if chunks_parts is None else chunks_parts)
            stored = await self.packs.write(f"{prefix}/vectors", floats if vectors_parts is None else vectors_parts)
            message.chunks.id, message.chunks.size_bytes = chunks.id, chunks.size_bytes
            message.vectors.id, message.vectors.size_bytes = stored.id, stored.size_bytes
            message.model_id, message.dimension = model, rows.shape[1]
        return await self._append(self._embedder, crate, document_id(number), message)

    async def _evaluated(
        self,
        message: embedder_pb.RecordsEmbedded,
        prefix: str,
        chunks: int,
        evaluations: Sequence[proposition_pb.Evaluation],
    ) -> None:
        told = proposition_pb.EvaluationSet(evaluations=evaluations).SerializeToString()
        pack = await self.packs.write(f"{prefix}/propositions", {"evaluations": told})
        message.evaluations.id, message.evaluations.size_bytes = pack.id, pack.size_bytes
        accepted = sum(each.accepted for one in evaluations for each in one.propositions)
        message.chunk_count, message.record_count = chunks, chunks + accepted

    async def put(self, number: int, texts: Sequence[str], revision: int = 1, *, crate: str = "main") -> int:
        """Ingest and embed in one go."""
        await self.ingest(number, revision, crate=crate)
        return await self.embed(number, texts, revision, crate=crate)

    async def retire(self, number: int, revision: int = 1, *, crate: str = "main", retired_at: datetime = NOON) -> int:
        message = ingest_pb.DocumentRetired(document_id=document_id(number), revision=revision)
        message.retired_at.FromDatetime(retired_at)
        return await self._append(self._ingest, crate, document_id(number), message)

    async def erase(self, number: int, revision: int = 1, *, crate: str = "main") -> int:
        message = ingest_pb.DocumentErased(document_id=document_id(number), revision=revision)
        return await self._append(self._ingest, crate, document_id(number), message)

    async def _append(self, bus: Bus, crate: str, aggregate: str, message: Message) -> int:
        self._appended += 1
        key = f"{aggregate}:{self._appended}"
        return (await bus.append(crate=crate, aggregate=aggregate, message=message, key=key)).position

    # ---- What a client sees ----

    async def ready(self) -> None:
        """Wait until the node is ready."""
        await self._until(lambda problems: not problems)

    async def reported(self, dependency: str, text: str) -> None:
        """Wait until readiness names a problem."""
        await self._until(lambda problems: text in problems.get(dependency, ""))

    async def _until(self, holds: Callable[[dict[str, str]], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            problems = await self.node.problems()
            if holds(problems):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"readiness stays at {problems}")

    async def applied(self, position: int, crate: str = "main") -> None:
        """Wait until the index has applied a position."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            reply = await self.index.GetWatermark(pb.GetWatermarkRequest(crate_id=crate))
            if reply.position >= position:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"the index stands before {position}: {await self.node.problems()}")

    async def keyword(
        self, query: str, *, crate: str = "main", limit: int = 10, kind: pb.RecordKind.ValueType = pb.RECORD_KIND_CHUNK
    ) -> list[tuple[int, int, int]]:
        """Search the keyword lane; (document number, revision, ordinal) by rank."""
        request = pb.SearchKeywordRequest(crate_id=crate, query=query, limit=limit, filter=pb.LaneFilter(kind=kind))
        return _keys((await self.index.SearchKeyword(request)).hits)

    async def vector(
        self,
        vector: Sequence[float],
        *,
        crate: str = "main",
        limit: int = 10,
        kind: pb.RecordKind.ValueType = pb.RECORD_KIND_CHUNK,
    ) -> list[tuple[int, int, int]]:
        """Search the vector lane; (document number, revision, ordinal) by rank."""
        request = pb.SearchVectorRequest(
            crate_id=crate,
            vector=packed(vector),
            model_id=MODEL,
            limit=limit,
            filter=pb.LaneFilter(kind=kind),
        )
        return _keys((await self.index.SearchVector(request)).hits)

    async def signals(self, count: int) -> list[events_pb.RevisionIndexed]:
        """The first RevisionIndexed signals, in the order of the log."""
        found = [
            event.message for event in await self.events("SIGNALS", count, "affidavit.s.*.index.*.revision_indexed")
        ]
        return [message for message in found if isinstance(message, events_pb.RevisionIndexed)]

    async def events(self, stream: str, count: int, subject: str = ">") -> list[Event]:
        """Read a stream from its beginning until enough events were seen."""
        subscription = await self._ingest.js.subscribe(subject, stream=stream, ordered_consumer=True)
        found: list[Event] = []
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while len(found) < count:
                    event = decode_message(await subscription.next_msg(timeout=_PATIENCE_S))
                    assert isinstance(event, Event)
                    found.append(event)
        finally:
            await subscription.unsubscribe()
        return found


def _chunk_set(number: int, texts: Sequence[str], title: str, source_domain: str) -> bytes:
    chunks = [chunker_pb.Chunk(ordinal=ordinal, text=text, heading_path=["Part"]) for ordinal, text in enumerate(texts)]
    return chunker_pb.ChunkSet(
        chunks=chunks,
        title=title,
        source_id=f"doc-{number}.txt",
        source_domain=source_domain,
        media_type="text/plain",
        charset="utf-8",
        headings=["Part"],
    ).SerializeToString()


def _keys(hits: Sequence[pb.Hit]) -> list[tuple[int, int, int]]:
    return [(int(hit.document_id, 16), hit.revision, hit.ordinal) for hit in hits]
