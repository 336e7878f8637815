"""What can't be applied fails alone and says why."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.embedder.v1 import embedder_events_pb2 as embedder_pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_events_pb2 as events_pb
from affidavit.index.v1 import index_service_pb2 as pb

from services.index.adapters.tables_postgres import PostgresTables
from services.kernel.errors import Unavailable
from tests.integration.index.service_world import World, axis, document_id


async def failure(world: World, number: int) -> event_pb.TaskFailed:
    failed = await world.context.bus.last_named(
        crate="main", service="index", aggregate=document_id(number), name="TaskFailed"
    )
    assert failed is not None
    assert isinstance(failed.message, event_pb.TaskFailed)
    return failed.message


CHUNKS = {"chunks": chunker_pb.ChunkSet(chunks=[chunker_pb.Chunk(text="text")]).SerializeToString()}
VECTORS = {
    "vectors": embedder_pb.VectorSet(count=1, dimension=4).SerializeToString(),
    "float32": b"\0\0\x80\x3f" + bytes(12),
}
BROKEN: Mapping[str, tuple[Mapping[str, bytes], Mapping[str, bytes]]] = {
    "part chunks is no ChunkSet": ({"chunks": b"\xff\xff"}, VECTORS),
    "its chunks pack holds 0 chunks": ({}, VECTORS),
    "the event names 1 vectors of length 4": (CHUNKS, {}),
}


async def test_packs_that_do_not_hold_what_the_event_says_fail_their_document(world: World) -> None:
    await world.started()
    for number, (chunks, vectors) in enumerate(BROKEN.values(), start=1):
        await world.ingest(number)
        await world.embed(number, ["text"], chunks_parts=chunks, vectors_parts=vectors)
    await world.applied(await world.put(9, ["sound text"]))
    for number, reason in enumerate(BROKEN, start=1):
        found = await failure(world, number)
        assert found.code == "corrupt"
        assert reason in found.reason
        assert "ingest the document again" in found.reason
    assert await world.keyword("text") == [(9, 1, 0)]


async def test_a_generation_that_does_not_exist_takes_no_records(world: World) -> None:
    await world.started()
    await world.ingest(1)
    await world.embed(1, ["text"], generation=7)
    await world.applied(await world.put(2, ["text"]))
    assert "generation 7, which doesn't exist" in (await failure(world, 1)).reason
    assert await world.keyword("text") == [(2, 1, 0)]


async def test_a_failed_generation_never_serves_again(world: World) -> None:
    await world.started()
    await world.put(1, ["text"])
    bus = world.context.bus
    for number, message in enumerate(
        (events_pb.GenerationFailed(generation=1, reason="r"), events_pb.GenerationActivated(generation=1))
    ):
        await bus.append(crate="main", aggregate="generations", message=message, key=f"test:{number}")
    await world.ingest(2)
    await world.applied(await world.embed(2, ["text"]))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await world.index.SearchKeyword(pb.SearchKeywordRequest(crate_id="main", query="text", limit=1), timeout=5)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    reply = await world.index.ListGenerations(pb.ListGenerationsRequest(crate_id="main"))
    assert [generation.status for generation in reply.generations] == ["failed"]
    await world.stop()
    await world.start()
    await world.ready()


async def test_lanes_are_compared_again_when_the_tables_were_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.started()
    await world.applied(await world.put(1, ["text"]))
    await world.stop()
    crates = PostgresTables.crates
    away = True

    async def flaky(tables: PostgresTables) -> tuple[str, ...]:
        if away:
            raise Unavailable("Postgres is on holiday")
        return await crates(tables)

    monkeypatch.setattr(PostgresTables, "crates", flaky)
    await world.start()
    await world.reported("index/lanes", "on holiday")
    away = False
    await world.ready()
    assert await world.vector(axis(1)) == [(1, 1, 0)]
