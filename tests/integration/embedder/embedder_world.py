"""The embedder's handlers on the real log and real packs; ingest, chunker and index are played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.embedder.v1 import embedder_events_pb2 as pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_events_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2 as settings_pb
from affidavit.proposition.v1 import proposition_events_pb2 as proposition_pb
from google.protobuf.message import Message
from numpy.typing import NDArray

from services.embedder.adapters.model_constant import HashModel
from services.embedder.domain.batches import BatchLimits
from services.embedder.domain.models import Provider, Purpose
from services.embedder.handlers import DocumentEmbedder
from services.embedder.models import CrateModels
from services.embedder.ports import EmbeddingModel, VectorCache
from services.kernel.blobs import FolderBlobs, blob_names
from services.kernel.bus import Bus
from services.kernel.envelope import Event
from services.kernel.errors import Unavailable
from services.kernel.packs import PackStore

CRATE = "main"
LOCAL = settings_pb.Provider(
    role=settings_pb.PROVIDER_ROLE_EMBEDDING, kind=settings_pb.PROVIDER_KIND_LOCAL_ONNX, enabled=True
)


class CountingModel(HashModel):
    """Counts texts, can be held back, and can fail after some.

    Attributes:
        texts: Every text that it was given.
        fail_after: Texts after which it doesn't answer; None for never.
        working: Set when a call has begun.
        gate: Calls wait for it.
    """

    limits = BatchLimits(texts=2, size_bytes=10_000)

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.fail_after: int | None = None
        self.working = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.floating]:
        self.working.set()
        await self.gate.wait()
        if self.fail_after is not None and len(self.texts) >= self.fail_after:
            raise Unavailable("the model is away")
        self.texts.extend(texts)
        return await super().embed(texts, purpose)

    def fits(self, texts: Sequence[str]) -> Sequence[bool]:
        return [len(text) <= 40 for text in texts]


def no_remote(provider: Provider) -> EmbeddingModel:
    """For tests in which no crate names a provider elsewhere."""
    raise AssertionError(provider)


class World:
    """Log, packs and one embedder.

    Attributes:
        model: The local model.
        now_s: What the embedder's clock says.
        embedder: What is tested.
    """

    def __init__(self, *, nats_url: str, folder: Path) -> None:
        self._nats_url = nats_url
        self.folder = folder
        self.blobs = FolderBlobs(root=folder)
        self.packs = PackStore(blobs=self.blobs)
        self.buses: dict[str, Bus] = {}
        self.model = CountingModel()
        self.now_s = 0.0
        self.embedder: DocumentEmbedder
        self.models: CrateModels

    async def open(self) -> None:
        for role in ("ingest", "chunker", "proposition", "index", "embedder"):
            self.buses[role] = await Bus.connect(self._nats_url, role=role)
        self.restart()

    def restart(self, *, cache: VectorCache | None = None, partial_texts: int = 1_000) -> None:
        """A new process: same log, same packs, nothing in memory."""
        self.models = CrateModels(
            bus=self.buses["embedder"], local=self.model, remote=no_remote, clock=lambda: self.now_s
        )
        self.embedder = DocumentEmbedder(
            bus=self.buses["embedder"],
            packs=self.packs,
            models=self.models,
            cache=cache,
            partial_texts=partial_texts,
        )

    async def close(self) -> None:
        for bus in self.buses.values():
            await bus.close()
        self.blobs.close()

    async def configure(self, *providers: settings_pb.Provider, crate: str = CRATE, revision: int = 1) -> None:
        message = ingest_pb.CrateConfigured(revision=revision, providers=providers or [LOCAL])
        await self.append("ingest", "crate", message, key=f"{revision}", crate=crate)

    def later(self) -> None:
        """Let more time pass than settings are remembered for."""
        self.now_s += 2

    async def start_generation(
        self, *, model_id: str = "hash-384", dimension: int = 384, strategy: str = "standard", fingerprint: str = ""
    ) -> None:
        started = index_pb.GenerationStarted(
            generation=1,
            model_id=model_id,
            dimension=dimension,
            retrieval_strategy=strategy,
            model_fingerprint=fingerprint,
        )
        await self.append("index", "generations", started, key="1:started")
        activated = index_pb.GenerationActivated(generation=1)
        await self.append("index", "generations", activated, key="1:activated")

    async def chunked(
        self, texts: Sequence[str], *, document: str = "d1", revision: int = 1, title: str = "", crate: str = CRATE
    ) -> Event:
        """What the chunker does with a revision."""
        message = chunker_pb.DocumentChunked(
            document_id=document,
            revision=revision,
            settings_digest=f"s{revision}",
            chunk_count=len(texts),
            form=event_pb.FORM_TEXT,
        )
        if texts:
            chunks = [chunker_pb.Chunk(ordinal=ordinal, text=text) for ordinal, text in enumerate(texts)]
            body = chunker_pb.ChunkSet(chunks=chunks, title=title).SerializeToString()
            ref = await self.packs.write(f"{crate}/{document}/{revision}/chunks", {"chunks": body})
            message.chunks.id, message.chunks.size_bytes = ref.id, ref.size_bytes
        return await self.append("chunker", document, message, key=f"{revision}", crate=crate)

    async def evaluated(
        self, chunked: Event, accepted: Sequence[Sequence[str]], *, generation: int = 1, announced: int | None = None
    ) -> Event:
        """What the proposition role does with a chunked revision; one rejected statement is in every chunk."""
        about = chunked.message
        assert isinstance(about, chunker_pb.DocumentChunked)
        evaluations = [
            proposition_pb.Evaluation(
                chunk_ordinal=ordinal,
                status=proposition_pb.EVALUATION_STATUS_EVALUATED,
                propositions=[
                    proposition_pb.EvaluatedProposition(ordinal=1, text="rejected"),
                    *(
                        proposition_pb.EvaluatedProposition(ordinal=number, text=text, accepted=True)
                        for number, text in enumerate(texts, start=2)
                    ),
                ],
            )
            for ordinal, texts in enumerate(accepted)
        ]
        message = proposition_pb.PropositionsEvaluated(
            document_id=about.document_id,
            revision=about.revision,
            settings_digest=about.settings_digest,
            generation=generation,
            accepted_count=sum(map(len, accepted)) if announced is None else announced,
            chunk_count=about.chunk_count,
            form=about.form,
        )
        if evaluations:
            message.chunks.CopyFrom(about.chunks)
            body = proposition_pb.EvaluationSet(evaluations=evaluations).SerializeToString()
            prefix = f"{chunked.crate}/{about.document_id}/{about.revision}/propositions"
            ref = await self.packs.write(prefix, {"evaluations": body})
            message.evaluations.id, message.evaluations.size_bytes = ref.id, ref.size_bytes
        return await self.append("proposition", about.document_id, message, key=f"{about.revision}:{generation}")

    async def erased(self, *, document: str = "d1", revision: int = 1, chunks: bool = True) -> Event:
        """What ingest says and, unless told otherwise, the chunker does when a document is erased."""
        if chunks:
            await self.packs.erase(f"{CRATE}/{document}/{revision}/chunks")
        message = ingest_pb.DocumentErased(document_id=document, revision=revision)
        return await self.append("ingest", document, message, key=f"{revision}:erased")

    async def append(self, role: str, aggregate: str, message: Message, *, key: str, crate: str = CRATE) -> Event:
        await self.buses[role].append(crate=crate, aggregate=aggregate, message=message, key=key)
        event = await self.buses[role].last(crate=crate, service=role, aggregate=aggregate)
        assert event is not None
        return event

    async def embedded(self, document: str = "d1", crate: str = CRATE) -> pb.RecordsEmbedded | None:
        """The last RecordsEmbedded of a document."""
        event = await self.buses["ingest"].last(crate=crate, service="embedder", aggregate=document)
        if event is None:
            return None
        assert isinstance(event.message, pb.RecordsEmbedded)
        return event.message

    async def run(self, texts: Sequence[str], *, document: str = "d1", revision: int = 1) -> pb.RecordsEmbedded:
        """Chunk and embed a revision."""
        await self.embedder.handle(await self.chunked(texts, document=document, revision=revision))
        found = await self.embedded(document)
        assert found is not None
        assert (found.document_id, found.revision) == (document, revision)
        return found

    async def vectors(self, message: pb.RecordsEmbedded, crate: str = CRATE) -> NDArray[np.float32]:
        """Vectors that an event names."""
        prefix = f"{crate}/{message.document_id}/{message.revision}/vectors"
        parts = await self.packs.read(prefix, message.vectors.id)
        header = pb.VectorSet.FromString(parts["vectors"])
        assert (header.model_id, header.count) == (message.model_id, message.record_count)
        assert len(header.text_keys) == header.count
        return np.frombuffer(parts["float32"], dtype="<f4").reshape(header.count, header.dimension)

    def names(self, step: str) -> list[str]:
        """Packs of a step, below the crate."""
        return sorted(name for name in blob_names(self.folder) if f"/{step}/" in name)
