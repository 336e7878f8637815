"""A node with the real query and citation services; their neighbours are played over real gRPC, on the real log."""

# ruff: noqa: N802, ARG002  (names and shapes of the contracts)

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import numpy as np
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.embedder.v1 import embedder_service_pb2 as models_pb
from affidavit.embedder.v1 import embedder_service_pb2_grpc as models_grpc
from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.index.v1 import index_service_pb2_grpc as index_grpc
from affidavit.ingest.v1 import ingest_events_pb2 as facts_pb
from affidavit.ingest.v1 import ingest_service_pb2 as ingest_pb
from affidavit.ingest.v1 import ingest_service_pb2_grpc as ingest_grpc
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2_grpc as pb_grpc
from affidavit.receipt.v1 import receipt_service_pb2 as receipt_pb
from affidavit.receipt.v1 import receipt_service_pb2_grpc as receipt_grpc

from services.citation.main import wire as wire_citation
from services.index.domain.analysis import analyse_query, analyse_text
from services.kernel import channels, rpc
from services.kernel.bus import Bus
from services.kernel.errors import Failure
from services.kernel.runner import Context, Node, Role, Wire
from services.kernel.settings import NodeSettings
from services.query.main import wire

CRATE = "main"
MODEL = "unit-model"


class Document:
    """One document of one chunk."""

    def __init__(self, document_id: str, original: bytes, text: str, *, verbatim: bool = True) -> None:
        self.document_id = document_id
        self.original = original
        self.chunk = chunker_pb.Chunk(
            text=text,
            heading_path=["Manual"],
            runs=[
                facts_pb.TextRun(text_end=len(text), char_end=len(original), byte_end=len(original), verbatim=verbatim)
            ],
        )
        self.terms = sorted(set(analyse_text(f"Manual {text}")))

    def indexed(self, key: index_pb.ChunkKey) -> index_pb.IndexedChunk:
        return index_pb.IndexedChunk(
            key=key,
            chunk=self.chunk,
            title="Manual",
            source_id=f"{self.document_id}.txt",
            charset="utf-8",
            media_type="text/plain",
            form=envelope_pb2.FORM_TEXT,
            ingested_position=1,
            terms=self.terms,
        )


class Failing:
    """Raises a failure when it has one."""

    def __init__(self) -> None:
        self.failure: Failure | None = None

    def check(self) -> None:
        if self.failure:
            raise self.failure


class Index(Failing, index_grpc.IndexServiceServicer):
    """Lanes over the documents."""

    def __init__(self, documents: dict[str, Document]) -> None:
        super().__init__()
        self.documents = documents

    async def SearchKeyword(self, request: index_pb.SearchKeywordRequest, context: Any) -> Any:
        self.check()
        terms = dict.fromkeys(analyse_query(request.query))
        hits = [
            index_pb.Hit(document_id=name, revision=1, score=1.0, form=envelope_pb2.FORM_TEXT)
            for name, document in self.documents.items()
            if set(terms) & set(document.terms)
        ]
        weights = [index_pb.TermWeight(term=term, idf=1.0, document_frequency=1) for term in terms]
        return index_pb.SearchKeywordResponse(hits=hits[: request.limit], position=20, terms=weights, generation=1)

    async def SearchVector(self, request: index_pb.SearchVectorRequest, context: Any) -> Any:
        self.check()
        assert (request.model_id, np.frombuffer(request.vector, "<f4").tolist()) == (MODEL, [1.0, 0.0])
        hits = [index_pb.Hit(document_id=name, revision=1, score=0.5) for name in self.documents]
        return index_pb.SearchVectorResponse(hits=hits, position=19, generation=1)

    async def FetchChunks(self, request: index_pb.FetchChunksRequest, context: Any) -> Any:
        assert request.with_terms or request.without_runs
        chunks = [self.documents[key.document_id].indexed(key) for key in request.keys]
        return index_pb.FetchChunksResponse(chunks=chunks, position=21)

    async def GetWatermark(self, request: index_pb.GetWatermarkRequest, context: Any) -> Any:
        return index_pb.GetWatermarkResponse(position=22)


class Models(Failing, models_grpc.EmbedderServiceServicer):
    """Every sentence has the same vector, single words have none."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.model = MODEL
        self.cut = False

    async def Embed(self, request: models_pb.EmbedRequest, context: Any) -> Any:
        self.check()
        self.asked.append(list(request.texts))
        used = MODEL if request.purpose == models_pb.EMBED_PURPOSE_QUERY else self.model
        rows = np.asarray([[float(" " in text), 0.0] for text in request.texts], dtype="<f4").tobytes()
        return models_pb.EmbedResponse(model_id=used, dimension=2, vectors=rows[:-1] if self.cut else rows)

    async def ListModels(self, request: models_pb.ListModelsRequest, context: Any) -> Any:
        return models_pb.ListModelsResponse(
            models=[models_pb.Model(model_id=MODEL, role="embedding", dimension=2, fingerprint="f")]
        )


class Ingest(Failing, ingest_grpc.IngestServiceServicer):
    """Original bytes in pieces."""

    def __init__(self, documents: dict[str, Document]) -> None:
        super().__init__()
        self.documents = documents
        self.piece_bytes = 3
        self.sent = 0

    async def ReadDocument(self, request: ingest_pb.ReadDocumentRequest, context: Any) -> AsyncIterator[Any]:
        self.check()
        body = self.documents[request.document_id].original
        for start in range(0, len(body), self.piece_bytes):
            self.sent += 1
            yield ingest_pb.ReadDocumentResponse(body=body[start : start + self.piece_bytes])


class Receipts(Failing, receipt_grpc.ReceiptServiceServicer):
    """Signs everything."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[receipt_pb.IssueReceiptRequest] = []

    async def IssueReceipt(self, request: receipt_pb.IssueReceiptRequest, context: Any) -> Any:
        self.check()
        self.requests.append(request)
        return receipt_pb.IssueReceiptResponse(receipt_id="ab" * 32, bundle=b"bundle")


def playing(role: str, name: str, add: Callable[[Any, Any], None], servicer: Any) -> Wire:
    """A role that serves a double."""

    async def wire_double(_: Context) -> Role:
        return Role(name=role, servicers=(rpc.Servicer(f"affidavit.{role}.v1.{name}", add, servicer),))

    return wire_double


class QueryWorld:
    """The node and its neighbours."""

    def __init__(self, *, settings: NodeSettings) -> None:
        self.documents: dict[str, Document] = {}
        self.index = Index(self.documents)  # type: ignore[abstract]  # only what query calls
        self.models = Models()  # type: ignore[abstract]  # only what query calls
        self.ingest = Ingest(self.documents)  # type: ignore[abstract]  # only what query calls
        self.receipts = Receipts()  # type: ignore[abstract]  # only what query calls
        self.settings = settings
        self.query: pb_grpc.QueryServiceAsyncStub
        self.bus: Bus
        self._node: Node
        self.channel: grpc.aio.Channel

    async def open(self) -> None:
        self.bus = await Bus.connect(self.settings.nats_url, role="ingest")
        await self.configure()
        add_index = index_grpc.add_IndexServiceServicer_to_server
        add_models = models_grpc.add_EmbedderServiceServicer_to_server
        add_ingest = ingest_grpc.add_IngestServiceServicer_to_server
        add_receipt = receipt_grpc.add_ReceiptServiceServicer_to_server
        wires: dict[str, Wire] = {
            "index": playing("index", "IndexService", add_index, self.index),
            "embedder": playing("embedder", "EmbedderService", add_models, self.models),
            "ingest": playing("ingest", "IngestService", add_ingest, self.ingest),
            "receipt": playing("receipt", "ReceiptService", add_receipt, self.receipts),
            "citation": wire_citation,
            "query": wire,
        }
        self._node = Node(settings=self.settings, wires=wires)
        await self._node.start()
        self.channel = channels.channel(self._node.server.address)
        self.query = pb_grpc.QueryServiceStub(self.channel)

    async def configure(self, crate: str = CRATE, **settings: Any) -> None:
        """Set a crate's settings."""
        given = settings_pb2.CrateSettings(mode=settings_pb2.ANSWER_MODE_LIGHT, **settings)
        event = facts_pb.CrateConfigured(revision=1, settings=given)
        await self.bus.append(crate=crate, aggregate="crate", message=event, key=repr(settings))

    def add(self, document_id: str, text: str) -> None:
        """Add a document that is verbatim."""
        self.documents[document_id] = Document(document_id, text.encode(), text)

    async def close(self) -> None:
        await self.channel.close()
        await self._node.stop()
        await self.bus.close()
