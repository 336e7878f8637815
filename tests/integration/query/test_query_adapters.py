"""What the adapters keep and refuse by themselves."""

# ruff: noqa: N802, ARG002  (names and shapes of the contracts)

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.index.v1 import index_service_pb2_grpc as index_grpc
from affidavit.index.v1 import living_pb2
from affidavit.ingest.v1 import ingest_events_pb2

from services.kernel.bus import Bus
from services.kernel.errors import NotFound
from services.query.adapters.crates_log import LogCrateBook
from services.query.adapters.embedder_grpc import GrpcEmbedder
from services.query.adapters.index_grpc import GrpcIndex
from services.query.domain.living import Moment, Reach, RelationType, View
from services.query.domain.modes import AnswerMode
from services.query.domain.values import RecordKey
from services.query.ports import Walk
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


class LivingIndex(index_grpc.IndexServiceServicer):
    """Tells one edge, one state and one series, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.state = living_pb2.StateReport(document_id="new", revision=1, state=living_pb2.LIVING_STATE_ACTIVE)

    async def ListNeighbours(self, request: index_pb.ListNeighboursRequest, context: Any) -> Any:
        self.asked.append(request)
        edge = living_pb2.Relation(source_document_id="new", type="supersedes", target_document_id="old")
        return index_pb.ListNeighboursResponse(document_ids=["old"], relations=[edge])

    async def ListStates(self, request: index_pb.ListStatesRequest, context: Any) -> Any:
        self.asked.append(request)
        return index_pb.ListStatesResponse(states=[self.state])

    async def ListFamilies(self, request: index_pb.ListFamiliesRequest, context: Any) -> Any:
        self.asked.append(request)
        return index_pb.ListFamiliesResponse(families=[index_pb.Family(family="f", members=[self.state])])

    async def FetchChunks(self, request: index_pb.FetchChunksRequest, context: Any) -> Any:
        self.asked.append(request)
        return index_pb.FetchChunksResponse(position=5, states=[self.state])


async def test_moments_and_walks_reach_the_index() -> None:
    server, served = grpc.aio.server(), LivingIndex()  # type: ignore[abstract]  # only what is called
    index_grpc.add_IndexServiceServicer_to_server(served, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        index = GrpcIndex(channel=channel, timeout_s=10.0)
        moment = Moment(datetime(2021, 5, 3, tzinfo=UTC), 7)
        walk = Walk(kinds=(RelationType.SUPERSEDES,), depth=4, fan_out=9)
        (edge,) = await index.neighbours(CRATE, ["new"], walk, moment)
        (state,) = await index.states(CRATE, ["new"], moment)
        (family,) = await index.families(CRATE, ["new"], moment)
        fetched = await index.fetch(CRATE, [RecordKey("new", 1, 0)], View(Reach.IN_FORCE, moment))
        await index.fetch(CRATE, [RecordKey("new", 1, 0)], View())
    await server.stop(None)
    assert (edge.source, edge.kind, edge.target) == ("new", RelationType.SUPERSEDES, "old")
    assert family.members == (state,) == fetched.states
    asked = served.asked
    assert (list(asked[0].types), asked[0].depth, asked[0].fan_out) == (["supersedes"], 4, 9)
    assert {request.moment.at for request in asked[:4]} == {7}
    assert (asked[3].reach, asked[3].with_states) == (living_pb2.REACH_IN_FORCE, True)
    assert (asked[4].reach, asked[4].with_states, asked[4].HasField("moment")) == (0, False, False)
