"""The proposition handlers on the real log and real packs; ingest, chunker, index and provider are played by the test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_events_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.proposition.v1 import proposition_events_pb2 as pb
from google.protobuf.message import Message

from services.kernel.blobs import FolderBlobs, blob_names
from services.kernel.bus import Bus
from services.kernel.envelope import Event
from services.kernel.packs import PackStore
from services.proposition.adapters.evaluations_packs import PackEvaluations
from services.proposition.bindings import CrateBindings
from services.proposition.handlers import Evaluating
from tests.integration.proposition.chat_double import KEY_NAME, Chat

CRATE = "main"
DOCUMENT = "d" * 32
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
FAIL = settings_pb2.PROPOSITION_FAILURE_POLICY_FAIL_INDEXING
SKIP = settings_pb2.PROPOSITION_FAILURE_POLICY_SKIP_CHUNK
EMBED = settings_pb2.PROPOSITION_FAILURE_POLICY_EMBED_SOURCE_CHUNK
Policy: TypeAlias = "settings_pb2.PropositionFailurePolicy.ValueType"


def answer_provider(*, model: str = "gpt-x", base_url: str = "https://api.example.com/v1") -> settings_pb2.Provider:
    return settings_pb2.Provider(
        role=settings_pb2.PROVIDER_ROLE_ANSWER,
        kind=settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE,
        enabled=True,
        base_url=base_url,
        model=model,
        credential=f"env:{KEY_NAME}",
    )


class World:
    """Log, packs and one handler.

    Attributes:
        chat: The provider.
        now_s: What the role's clock says.
        evaluating: What is tested.
    """

    def __init__(self, *, nats_url: str, folder: Path) -> None:
        self._nats_url = nats_url
        self.folder = folder
        self.blobs = FolderBlobs(root=folder)
        self.packs = PackStore(blobs=self.blobs)
        self.evaluations = PackEvaluations(packs=self.packs)
        self.buses: dict[str, Bus] = {}
        self.chat = Chat()
        self.now_s = 0.0
        self.bindings: CrateBindings
        self.evaluating: Evaluating
        self._revision = 0

    async def open(self) -> None:
        for role in ("ingest", "chunker", "index", "proposition"):
            self.buses[role] = await Bus.connect(self._nats_url, role=role)
        self.restart()

    def restart(self) -> None:
        """A new process: same log, same packs, nothing in memory."""
        bus = self.buses["proposition"]
        self.bindings = CrateBindings(log=bus, connect=self.chat.model, clock=lambda: self.now_s)
        self.evaluating = Evaluating(bus=bus, evaluations=self.evaluations, bindings=self.bindings, clock=lambda: NOW)

    async def close(self) -> None:
        for bus in self.buses.values():
            await bus.close()
        self.blobs.close()

    async def configure(self, *providers: settings_pb2.Provider, policy: Policy = FAIL) -> None:
        self._revision += 1
        message = ingest_pb.CrateConfigured(revision=self._revision, providers=providers)
        message.settings.proposition_failure_policy = policy
        await self.append("ingest", "crate", message, key=f"{self._revision}")

    async def start_generation(self, strategy: str = "proposition") -> None:
        started = index_pb.GenerationStarted(
            generation=1, model_id="hash-384", dimension=384, retrieval_strategy=strategy, prompt_version="1"
        )
        await self.append("index", "generations", started, key="1:started")
        await self.append("index", "generations", index_pb.GenerationActivated(generation=1), key="1:activated")

    async def chunked(
        self, texts: Sequence[str], *, document: str = DOCUMENT, revision: int = 1, title: str = "", digest: str = ""
    ) -> Event:
        """What the chunker does with a revision."""
        message = chunker_pb.DocumentChunked(
            document_id=document,
            revision=revision,
            settings_digest=digest or f"s{revision}",
            chunk_count=len(texts),
            form=event_pb.FORM_TEXT,
        )
        if texts:
            chunks = [chunker_pb.Chunk(ordinal=ordinal, text=text) for ordinal, text in enumerate(texts)]
            body = chunker_pb.ChunkSet(chunks=chunks, title=title).SerializeToString()
            ref = await self.packs.write(f"{CRATE}/{document}/{revision}/chunks", {"chunks": body})
            message.chunks.id, message.chunks.size_bytes = ref.id, ref.size_bytes
        return await self.append("chunker", document, message, key=f"{revision}:{digest}")

    async def erased(self, *, document: str = DOCUMENT, revision: int = 1, chunks: bool = True) -> Event:
        """What ingest says and, unless told otherwise, the chunker does when a document is erased."""
        if chunks:
            await self.packs.erase(f"{CRATE}/{document}/{revision}/chunks")
        message = ingest_pb.DocumentErased(document_id=document, revision=revision)
        return await self.append("ingest", document, message, key=f"{revision}:erased")

    async def append(self, role: str, aggregate: str, message: Message, *, key: str) -> Event:
        await self.buses[role].append(crate=CRATE, aggregate=aggregate, message=message, key=key)
        event = await self.buses[role].last(crate=CRATE, service=role, aggregate=aggregate)
        assert event is not None
        return event

    async def evaluated(self, document: str = DOCUMENT) -> pb.PropositionsEvaluated | None:
        """The last PropositionsEvaluated of a document."""
        event = await self.buses["ingest"].last_named(
            crate=CRATE, service="proposition", aggregate=document, name="PropositionsEvaluated"
        )
        if event is None:
            return None
        assert isinstance(event.message, pb.PropositionsEvaluated)
        return event.message

    async def run(
        self, texts: Sequence[str], *, document: str = DOCUMENT, revision: int = 1, title: str = ""
    ) -> pb.PropositionsEvaluated:
        """Chunk and evaluate a revision."""
        await self.evaluating.handle(await self.chunked(texts, document=document, revision=revision, title=title))
        found = await self.evaluated(document)
        assert found is not None
        assert (found.document_id, found.revision) == (document, revision)
        return found

    async def stored(self, message: pb.PropositionsEvaluated) -> list[pb.Evaluation]:
        """Evaluations that an event names."""
        prefix = f"{CRATE}/{message.document_id}/{message.revision}/propositions"
        parts = await self.packs.read(prefix, message.evaluations.id)
        return list(pb.EvaluationSet.FromString(parts["evaluations"]).evaluations)

    def calls(self) -> int:
        """Requests since the last time."""
        count = len(self.chat.calls)
        self.chat.calls.clear()
        return count

    def names(self, step: str) -> list[str]:
        """Packs of a step."""
        return sorted(name for name in blob_names(self.folder) if f"/{step}/" in name)
