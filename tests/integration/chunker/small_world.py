"""A node that runs some small roles; ingest is played by the test, on the real log and the real pack store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

import grpc
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2
from google.protobuf.message import Message
from nats.js.errors import NotFoundError

from services.kernel import channels
from services.kernel.blobs import FolderBlobs
from services.kernel.bus import Bus, decode_message
from services.kernel.envelope import Event
from services.kernel.packs import PackStore
from services.kernel.runner import Node, Wire
from services.kernel.settings import NodeSettings

PATIENCE_S = 30.0
DOCUMENT = "d" * 32
# Key of the event that makes the crate known; tests don't count it.
FIRST = "first"


def normalized(text: str) -> bytes:
    """A text without structure, as ingest writes it."""
    message = ingest_pb.NormalizedDocument(text=text, charset="utf-8")
    if text:
        size_bytes = len(text.encode())
        message.runs.add(text_end=len(text), char_end=len(text), byte_end=size_bytes, verbatim=True)
        message.blocks.add(kind=ingest_pb.BLOCK_KIND_PARAGRAPH, text_end=len(text))
    return message.SerializeToString()


class World:
    """The log with some roles on it.

    Attributes:
        channel: To the node.
        packs: The node's pack store.
        buses: By role that the test plays.
    """

    def __init__(self, *, settings: NodeSettings, wires: Mapping[str, Wire]) -> None:
        self.settings = settings
        self._wires = wires
        self._blobs = FolderBlobs(root=settings.blobs)
        self.packs = PackStore(blobs=self._blobs)
        self.buses: dict[str, Bus] = {}
        self.node: Node
        self.channel: grpc.aio.Channel
        self._appended = 0

    async def open(self) -> None:
        for role in ("ingest", "chunker"):
            self.buses[role] = await Bus.connect(self.settings.nats_url, role=role)
        # Steps serve the crates that the log knows.
        await self.buses["ingest"].append(
            crate="main", aggregate="crate", message=ingest_pb.CrateConfigured(revision=1), key=FIRST
        )
        await self.start()

    async def start(self) -> None:
        self.node = Node(settings=self.settings, wires=self._wires)
        await self.node.start()
        self.channel = channels.channel(self.node.server.address)

    async def stop(self) -> None:
        await self.channel.close()
        await self.node.stop()

    async def close(self) -> None:
        for bus in self.buses.values():
            await bus.close()
        self._blobs.close()

    async def configure(
        self,
        *,
        max_input_chars: int = 0,
        strategy: settings_pb2.RetrievalStrategy.ValueType = settings_pb2.RETRIEVAL_STRATEGY_STANDARD,
    ) -> None:
        """Create the crate, or change it."""
        message = ingest_pb.CrateConfigured(revision=1)
        message.settings.retrieval_strategy = strategy
        message.providers.add(role=settings_pb2.PROVIDER_ROLE_EMBEDDING, enabled=True, max_input_chars=max_input_chars)
        await self.append(message, aggregate="crate")

    async def ingest(
        self,
        text: str | Mapping[str, bytes],
        *,
        document: str = DOCUMENT,
        revision: int = 1,
        digest: str = "s1",
        size: int | None = None,
        overlap: int | None = None,
    ) -> int:
        """Store a source pack and tell of it; returns the event's position."""
        manifest = ingest_pb.SourceManifest(source_id="a.txt", media_type="text/plain", charset="utf-8")
        parts = (
            text
            if isinstance(text, Mapping)
            else {"normalized": normalized(text), "manifest": manifest.SerializeToString(), "raw": text.encode()}
        )
        ref = await self.packs.write(f"main/{document}/{revision}/source", parts)
        message = ingest_pb.DocumentIngested(
            document_id=document,
            revision=revision,
            source=event_pb.PackRef(id=ref.id, size_bytes=ref.size_bytes),
            chunking=settings_pb2.ChunkSettings(size_chars=size, overlap_chars=overlap),
            settings_digest=digest,
            form=event_pb.FORM_TEXT,
        )
        return await self.append(message, aggregate=document)

    async def erase(self, document: str = DOCUMENT, revision: int = 1) -> int:
        return await self.append(ingest_pb.DocumentErased(document_id=document, revision=revision), aggregate=document)

    async def append(self, message: Message, *, aggregate: str, role: str = "ingest") -> int:
        self._appended += 1
        done = await self.buses[role].append(
            crate="main", aggregate=aggregate, message=message, key=f"k{self._appended}"
        )
        return done.position

    async def until(self, condition: Callable[[list[Event]], bool]) -> list[Event]:
        """Wait until the knowledge log looks as wanted."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            events = await self.events()
            if condition(events):
                return events
            await asyncio.sleep(0.05)
        raise AssertionError(f"the log never looked as wanted: {[event.name for event in await self.events()]}")

    async def named(self, name: str, count: int = 1) -> list[Event]:
        """Wait until the knowledge log holds this many events of a name, and return them."""
        events = await self.until(lambda events: sum(event.name == name for event in events) >= count)
        return [event for event in events if event.name == name]

    async def settled(self, role: str, step: str, crate: str = "main") -> None:
        """Wait until a step has handled all that is in the log of a crate."""
        deadline = time.monotonic() + PATIENCE_S
        quiet = 0
        while time.monotonic() < deadline:
            try:
                info = await self.buses["ingest"].js.consumer_info("KNOWLEDGE", f"{role}-{step}-{crate}")
            except NotFoundError:
                await asyncio.sleep(0.05)
                continue
            # Twice: the server tells a consumer of a new event a moment after it was appended.
            quiet = 0 if info.num_pending or info.num_ack_pending else quiet + 1
            if quiet > 1:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{role} never settled")

    async def events(self, stream: str = "KNOWLEDGE") -> list[Event]:
        """Every event of a stream, in order, but the one that makes the crate known."""
        js = self.buses["ingest"].js
        last = (await js.stream_info(stream)).state.last_seq
        if not last:
            return []
        subscription = await js.subscribe(">", stream=stream, ordered_consumer=True)
        events = [decode_message(await subscription.next_msg(5)) for _ in range(last)]
        await subscription.unsubscribe()
        return [event for event in events if isinstance(event, Event) and event.key != FIRST]
