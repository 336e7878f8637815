"""What the adapters keep and refuse by themselves."""

from __future__ import annotations

import asyncio

import pytest
from affidavit.ingest.v1 import ingest_events_pb2

from services.kernel.bus import Bus
from services.kernel.errors import NotFound
from services.query.adapters.crates_log import LogCrateBook
from services.query.adapters.embedder_grpc import GrpcEmbedder
from services.query.domain.modes import AnswerMode
from tests.integration.query.query_world import CRATE, MODEL, QueryWorld


def embedder(world: QueryWorld) -> GrpcEmbedder:
    return GrpcEmbedder(channel=world.channel, timeout_s=30.0)


async def test_words_that_are_known_need_no_call(world: QueryWorld) -> None:
    adapter = embedder(world)
    first = await adapter.embed_texts(CRATE, MODEL, ("relay", "port"))
    world.models.asked.clear()
    second = await adapter.embed_texts(CRATE, MODEL, ("port", "relay"))
    assert world.models.asked == []
    assert [row.tolist() for row in second] == [row.tolist() for row in reversed(first)]


async def test_words_unused_for_long_are_forgotten(world: QueryWorld) -> None:
    adapter = embedder(world)
    await adapter.embed_texts(CRATE, MODEL, ("relay",))
    await adapter.embed_texts(CRATE, MODEL, tuple(f"w{number}" for number in range(4_096)))
    world.models.asked.clear()
    await adapter.embed_texts(CRATE, MODEL, ("relay", "w4095"))
    assert world.models.asked == [["relay"]]


async def test_words_pushed_out_while_a_call_waits_are_still_answered(world: QueryWorld) -> None:
    adapter = embedder(world)
    await adapter.embed_texts(CRATE, MODEL, ("relay",))
    flood = adapter.embed_texts(CRATE, MODEL, tuple(f"w{number}" for number in range(4_096)))
    (_, rows) = await asyncio.gather(flood, adapter.embed_texts(CRATE, MODEL, ("relay", "a sentence")))
    assert len(rows) == 2


async def test_a_crate_without_settings_is_not_found(nats_url: str) -> None:
    bus = await Bus.connect(nats_url, role="query")
    ingest = await Bus.connect(nats_url, role="ingest")
    book = LogCrateBook(bus=bus)
    with pytest.raises(NotFound, match="there is no crate nowhere"):
        await book.rules("nowhere")
    event = ingest_events_pb2.CrateConfigured(revision=1)
    await ingest.append(crate="somewhere", aggregate="crate", message=event, key="1")
    assert (await book.rules("somewhere")).mode is AnswerMode.VERIFIED
    await bus.close()
    await ingest.close()
