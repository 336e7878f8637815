"""The step on the real log: what it emits, and that it emits it once whatever happens."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as pb
from affidavit.event.v1 import envelope_pb2 as event_pb

from services.chunker.adapters.contents_packs import PackContents
from services.chunker.adapters.cutter_process import ProcessCutter
from services.chunker.domain.document import RevisionAddress
from services.chunker.handlers import Chunking
from services.kernel.bus import Appended, Bus
from services.kernel.envelope import Event
from services.kernel.errors import Unavailable
from tests.integration.chunker.small_world import DOCUMENT, World

PUBLISH = Bus._publish
TEXT = "The west gate opens at 06:00. " * 10


async def chunk_set(world: World, event: Event) -> pb.ChunkSet:
    message = event.message
    assert isinstance(message, pb.DocumentChunked)
    parts = await world.packs.read(f"main/{event.aggregate}/{message.revision}/chunks", message.chunks.id)
    return pb.ChunkSet.FromString(parts["chunks"])


def stored(world: World, document: str = DOCUMENT) -> list[Path]:
    return sorted(world.settings.blobs.rglob(f"{document},*,chunks,*"))


def failures(events: list[Event]) -> list[event_pb.TaskFailed]:
    return [event.message for event in events if isinstance(event.message, event_pb.TaskFailed)]


async def test_an_ingested_revision_is_cut(world: World) -> None:
    await world.configure()
    await world.ingest(TEXT, size=100, overlap=20)
    (event,) = await world.named("DocumentChunked")
    message = event.message
    assert isinstance(message, pb.DocumentChunked)
    assert (message.document_id, message.revision, message.settings_digest) == (DOCUMENT, 1, "s1")
    assert message.form == event_pb.FORM_TEXT
    found = await chunk_set(world, event)
    assert message.chunk_count == len(found.chunks) > 3
    assert "".join(chunk.text[chunk.overlap_chars :] for chunk in found.chunks) == TEXT
    assert all(TEXT.encode()[chunk.byte_start : chunk.byte_end].decode() == chunk.text for chunk in found.chunks)
    assert (found.source_id, found.media_type, found.charset) == ("a.txt", "text/plain", "utf-8")
    assert list(found.notices) == []


async def test_an_empty_document_has_no_chunks_and_no_pack(world: World) -> None:
    await world.ingest(" \n")
    (event,) = await world.named("DocumentChunked")
    message = event.message
    assert isinstance(message, pb.DocumentChunked)
    assert (message.chunk_count, message.HasField("chunks")) == (0, False)
    assert stored(world) == []


async def test_the_embedding_provider_lowers_the_size_with_a_notice(world: World) -> None:
    await world.configure(max_input_chars=60)
    await world.ingest(TEXT, size=100, overlap=50)
    found = await chunk_set(world, (await world.named("DocumentChunked"))[0])
    assert max(len(chunk.text) for chunk in found.chunks) <= 60
    assert list(found.notices) == [
        "chunk_size 100 was lowered to 60: the embedding provider takes at most 60 characters",
        "chunk_overlap 50 was lowered to 30: it can't exceed half of chunk_size 60",
    ]


async def test_chunking_again_with_other_settings_is_a_fact_of_its_own(world: World) -> None:
    for digest, size in (("s1", 100), ("s2", 50), ("s3", 100)):
        await world.ingest(TEXT, digest=digest, size=size, overlap=0)
    events = await world.named("DocumentChunked", 3)
    assert [getattr(event.message, "settings_digest", "") for event in events] == ["s1", "s2", "s3"]


async def test_a_redelivered_event_changes_nothing(world: World) -> None:
    await world.ingest(TEXT)
    await world.named("DocumentChunked")
    await world.settled("chunker", "cut")
    before = stored(world)
    ingested = (await world.events())[0]
    step = chunking(world, PackContents(packs=world.packs))
    await step.handle(replace(ingested, deliveries=2))
    assert stored(world) == before
    await step.handle(ingested)
    assert [event.name for event in await world.events()] == ["DocumentIngested", "DocumentChunked"]


async def forgotten(bus: Bus, stream: str, subject: str, headers: dict[str, str], body: bytes) -> Appended:
    """Append to a broker that remembers no message id any more."""
    kept = {name: value for name, value in headers.items() if name != "Nats-Msg-Id"}
    return await PUBLISH(bus, stream, subject, kept, body)


async def test_a_lost_consumer_doubles_neither_facts_nor_packs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bus, "_publish", forgotten)
    for revision in (1, 2, 3):
        await world.ingest(TEXT, revision=revision, digest=f"s{revision}")
    await world.named("DocumentChunked", 3)
    await world.settled("chunker", "cut")
    before, packs = await world.events(), stored(world)
    # Mended long ago: what it was cut from is gone, and nobody needs it any more.
    await world.packs.erase(f"main/{DOCUMENT}/1/source")
    await world.buses["ingest"].js.delete_consumer("KNOWLEDGE", "chunker-cut-main")
    await world.settled("chunker", "cut")
    assert (await world.events(), stored(world)) == (before, packs)


async def test_a_pack_whose_fact_stands_already_is_removed_again(world: World) -> None:
    for revision in (1, 2):
        await world.ingest(TEXT, revision=revision, digest=f"s{revision}")
    await world.named("DocumentChunked", 2)
    await world.settled("chunker", "cut")
    before, packs = await world.events(), stored(world)
    other = await Bus.connect(world.settings.nats_url, role="chunker")
    step = chunking(world, PackContents(packs=world.packs), other)
    for event in before[:1]:
        await step.handle(event)
    await other.close()
    assert (await world.events(), stored(world)) == (before, packs)


async def test_a_revision_that_was_ingested_anew_is_nobody_s_failure(world: World) -> None:
    await world.stop()
    await world.ingest(TEXT)
    await world.packs.erase(f"main/{DOCUMENT}")
    await world.ingest(TEXT, digest="s2")
    await world.ingest(TEXT, revision=2, digest="s3")
    await world.start()
    await world.named("DocumentChunked", 2)
    await world.settled("chunker", "cut")
    assert failures(await world.events()) == []


def chunking(world: World, contents: PackContents, log: Bus | None = None) -> Chunking:
    cutter = ProcessCutter(thread_above_bytes=0, process_above_bytes=10_000_000)
    return Chunking(log=log or world.buses["chunker"], contents=contents, cutter=cutter)


class CrashAfterWriting(PackContents):
    """Stops the step once between its pack and its event."""

    crashed = False

    async def write_chunks(self, at: RevisionAddress, chunks: bytes) -> tuple[bytes, int]:
        ref = await super().write_chunks(at, chunks)
        if not self.crashed:
            self.crashed = True
            raise Unavailable("stopped on purpose")
        return ref


async def test_a_crash_between_pack_and_event_leaves_one_event_and_an_orphan_that_erasing_removes(world: World) -> None:
    await world.stop()
    await world.ingest(TEXT)
    ingested = (await world.events())[0]
    step = chunking(world, CrashAfterWriting(packs=world.packs))
    try:
        await step.handle(ingested)
    except Unavailable:
        await step.handle(replace(ingested, deliveries=2))
    assert len(stored(world)) == 2
    await world.start()
    await world.erase()
    await world.until(lambda _: not stored(world))
    await world.settled("chunker", "cut")
    assert [event.name for event in await world.events()].count("DocumentChunked") == 1


async def test_erasing_deletes_the_chunks_of_every_revision_and_no_later_one(world: World) -> None:
    for revision in (1, 2, 3):
        await world.ingest(TEXT, revision=revision, digest=f"s{revision}")
    await world.named("DocumentChunked", 3)
    await world.erase(revision=2)
    await world.settled("chunker", "cut")
    assert {path.name.split(",")[1] for path in stored(world)} == {"3"}


async def test_a_document_erased_before_its_turn_is_passed_over(world: World) -> None:
    await world.stop()
    await world.ingest(TEXT)
    await world.packs.erase(f"main/{DOCUMENT}")
    await world.erase()
    await world.start()
    await world.settled("chunker", "cut")
    assert [event.name for event in await world.events()] == ["DocumentIngested", "DocumentErased"]


async def test_a_revision_erased_before_its_turn_is_passed_over_when_the_document_came_again(world: World) -> None:
    await world.stop()
    await world.ingest(TEXT)
    await world.packs.erase(f"main/{DOCUMENT}")
    await world.erase()
    await world.ingest(TEXT, revision=2)
    await world.start()
    (chunked,) = await world.named("DocumentChunked")
    await world.settled("chunker", "cut")
    assert isinstance(chunked.message, pb.DocumentChunked)
    assert chunked.message.revision == 2
    assert failures(await world.events()) == []


async def test_an_erasure_that_was_handled_before_the_document_leaves_no_chunks(world: World) -> None:
    await world.stop()
    await world.ingest(TEXT)
    await world.erase()
    ingested, erased = await world.events()
    step = chunking(world, PackContents(packs=world.packs))
    await step.handle(erased)
    await step.handle(ingested)
    assert stored(world) == []
    assert [event.name for event in await world.events()] == ["DocumentIngested", "DocumentErased"]


async def test_a_lost_source_pack_is_a_failure_with_a_name(world: World) -> None:
    await world.stop()
    position = await world.ingest(TEXT)
    await world.packs.erase(f"main/{DOCUMENT}")
    await world.ingest("A neighbour.", document="e" * 32)
    await world.start()
    (failed,) = failures(await world.until(lambda events: bool(failures(events))))
    assert (failed.service, failed.position, failed.document_id, failed.code) == (
        "chunker",
        position,
        DOCUMENT,
        "not_found",
    )
    assert len(await world.named("DocumentChunked")) == 1


async def test_a_damaged_source_pack_is_a_failure_with_a_reason(world: World) -> None:
    await world.ingest({"normalized": b"\xff", "manifest": b""})
    (failed,) = failures(await world.until(lambda events: bool(failures(events))))
    assert failed.code == "corrupt"
    assert "no message of its kind" in failed.reason
    assert failed.reason.endswith("ingest the document again")


async def test_sizes_out_of_range_are_a_failure_with_a_reason(world: World) -> None:
    await world.ingest(TEXT, size=10)
    (failed,) = failures(await world.until(lambda events: bool(failures(events))))
    assert failed.code == "rejected"
    assert "chunk_size 10 is out of range" in failed.reason


async def test_a_large_document_holds_up_no_neighbour(world: World) -> None:
    text = "x" * 10 + " " + "a b" * 1_200_000
    await world.ingest(text, document="e" * 32)
    started = time.monotonic()
    await asyncio.sleep(0.2)
    await world.ingest(TEXT)
    events = await world.named("DocumentChunked", 2)
    assert [event.aggregate for event in events] == [DOCUMENT, "e" * 32]
    assert time.monotonic() - started < 25
    found = await chunk_set(world, events[1])
    assert "".join(chunk.text[chunk.overlap_chars :] for chunk in found.chunks) == text
