"""Documents through the index: put, replace, retire, erase, and the signals that follow."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_events_pb2 as events_pb
from affidavit.index.v1 import index_service_pb2 as pb

from tests.integration.index.service_world import DIMENSION, MODEL, World, axis, document_id, packed


async def test_a_new_crate_gets_generation_one_and_it_serves(world: World) -> None:
    await world.create_crate()
    await world.until_active()
    started, activated = [
        event.message for event in await world.events("KNOWLEDGE", 2, "affidavit.k.main.index.generations.*")
    ]
    assert isinstance(started, events_pb.GenerationStarted)
    assert (started.generation, started.model_id, started.dimension) == (1, MODEL, DIMENSION)
    assert started.model_fingerprint == "f" * 8
    assert started.retrieval_strategy == "standard"
    assert isinstance(activated, events_pb.GenerationActivated)
    # A later change of the crate leaves its generation alone.
    position = await world.create_crate(revision=2)
    await world.applied(position)
    reply = await world.index.ListGenerations(pb.ListGenerationsRequest(crate_id="main"))
    assert [(g.generation, g.status, g.model_id) for g in reply.generations] == [(1, "active", MODEL)]


async def test_a_crate_waits_for_its_embedding_model(world: World) -> None:
    world.models.ready = False
    await world.create_crate()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await world.index.SearchKeyword(pb.SearchKeywordRequest(crate_id="main", query="x", limit=1), timeout=5)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "no generation that serves yet" in str(caught.value.details())
    world.models.ready = True
    await world.until_active()


async def test_a_crate_without_a_usable_model_fails_once_and_starts_when_it_is_configured_otherwise(
    world: World,
) -> None:
    world.models.refused = "crate main has no enabled embedding provider"
    await world.create_crate()
    (event,) = await world.events("KNOWLEDGE", 1, "affidavit.k.main.index.crate.task_failed")
    assert isinstance(event.message, event_pb.TaskFailed)
    assert event.message.code == "rejected"
    assert "no enabled embedding provider" in event.message.reason
    world.models.refused = ""
    await world.create_crate(revision=2)
    await world.until_active()


async def test_a_document_is_found_in_both_lanes_and_signalled(world: World) -> None:
    await world.started()
    position = await world.put(1, ["the harbour opens at dawn", "fees apply to every boat"])
    await world.applied(position)
    assert await world.keyword("harbour dawn") == [(1, 1, 0)]
    assert await world.keyword("boat fees") == [(1, 1, 1)]
    assert await world.vector(axis(1)) == [(1, 1, 0), (1, 1, 1)]
    (signal,) = await world.signals(1)
    assert signal == events_pb.RevisionIndexed(
        document_id=document_id(1), revision=1, generation=1, record_count=2, position=position
    )


async def test_the_document_record_holds_title_and_whole_text(world: World) -> None:
    await world.started()
    await world.ingest(1)
    await world.applied(
        await world.embed(1, ["opens at dawn", "fees apply"], title="Harbour", vectors=[axis(0), axis(1)])
    )
    assert await world.keyword("dawn fees harbour", kind=pb.RECORD_KIND_DOCUMENT) == [(1, 1, 0)]
    reply = await world.index.SearchVector(
        pb.SearchVectorRequest(
            crate_id="main",
            vector=packed([1, 1, 0, 0]),
            model_id=MODEL,
            limit=5,
            filter=pb.LaneFilter(kind=pb.RECORD_KIND_DOCUMENT),
        )
    )
    (hit,) = reply.hits
    assert hit.score == pytest.approx(1, abs=0.02)


async def test_a_new_revision_replaces_the_old_one_once_it_is_embedded(world: World) -> None:
    await world.started()
    await world.put(1, ["winter timetable", "second chunk of winter"])
    await world.applied(await world.ingest(1, 2))
    assert await world.keyword("winter timetable") == [(1, 1, 0), (1, 1, 1)]
    await world.applied(await world.embed(1, ["summer timetable"], 2))
    assert await world.keyword("winter") == []
    assert await world.keyword("timetable") == [(1, 2, 0)]
    assert await world.vector(axis(1)) == [(1, 2, 0)]


async def test_a_late_revision_is_not_found_but_its_chunks_are_kept(world: World) -> None:
    await world.started()
    await world.ingest(1, 1)
    await world.ingest(1, 2)
    await world.embed(1, ["second wording"], 2)
    await world.applied(await world.embed(1, ["first wording"], 1))
    assert await world.keyword("wording") == [(1, 2, 0)]
    page = await world.index.ListChunks(pb.ListChunksRequest(crate_id="main", document_id=document_id(1), revision=1))
    assert [chunk.chunk.text for chunk in page.chunks] == ["first wording"]


async def test_a_then_b_then_a_are_three_revisions(world: World) -> None:
    await world.started()
    for revision, text in enumerate(("alpha words", "beta words", "alpha words"), start=1):
        await world.applied(await world.put(1, [text], revision))
    assert await world.keyword("words") == [(1, 3, 0)]
    signals = await world.signals(3)
    assert [signal.revision for signal in signals] == [1, 2, 3]


async def test_other_chunk_settings_replace_the_chunks_of_the_same_revision(world: World) -> None:
    await world.started()
    await world.put(1, ["one two three four"])
    await world.ingest(1, 1, digest="d2")
    await world.applied(await world.embed(1, ["one two", "three four"], 1, digest="d2"))
    assert await world.keyword("three") == [(1, 1, 1)]
    assert await world.keyword("one") == [(1, 1, 0)]
    assert len(await world.signals(2)) == 2


async def test_a_retired_document_is_out_of_both_lanes(world: World) -> None:
    await world.started()
    await world.put(1, ["left behind"])
    await world.put(2, ["left standing"])
    await world.applied(await world.retire(1))
    assert await world.keyword("left") == [(2, 1, 0)]
    assert await world.vector(axis(1)) == [(2, 1, 0)]
    # Vectors of a revision that was on its way don't bring it back.
    await world.applied(await world.embed(1, ["left behind"]))
    assert await world.keyword("behind") == []
    await world.applied(await world.put(1, ["left again"], 2))
    assert set(await world.keyword("left")) == {(1, 2, 0), (2, 1, 0)}


async def test_an_erased_document_leaves_no_row(world: World) -> None:
    await world.started()
    await world.put(1, ["secret recipe"])
    await world.put(1, ["secret recipe, changed"], 2)
    await world.packs.erase(f"main/{document_id(1)}")
    await world.applied(await world.erase(1, 2))
    assert await world.keyword("secret") == []
    assert await world.vector(axis(1)) == []
    for revision in (0, 1, 2):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await world.index.ListChunks(
                pb.ListChunksRequest(crate_id="main", document_id=document_id(1), revision=revision)
            )
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_vectors_of_a_document_that_was_erased_meanwhile_are_no_failure(world: World) -> None:
    await world.started()
    await world.ingest(1)
    await world.stop()
    # Everything below happens before the index comes to read the packs.
    await world.embed(1, ["secret recipe"])
    await world.packs.erase(f"main/{document_id(1)}")
    await world.erase(1)
    last = await world.put(2, ["plain bread"])
    await world.start()
    await world.applied(last)
    assert await world.keyword("recipe bread") == [(2, 1, 0)]
    assert await world.context.bus.last_named(
        crate="main", service="index", aggregate=document_id(1), name="TaskFailed"
    ) is None  # fmt: skip


async def test_a_document_without_chunks_is_signalled_as_well(world: World) -> None:
    await world.started()
    await world.put(1, ["something"])
    await world.ingest(1, 2)
    await world.applied(await world.embed(1, [], 2))
    assert await world.keyword("something") == []
    signals = await world.signals(2)
    assert [(signal.revision, signal.record_count) for signal in signals] == [(1, 1), (2, 0)]
    page = await world.index.ListChunks(pb.ListChunksRequest(crate_id="main", document_id=document_id(1)))
    assert list(page.chunks) == []


async def test_a_damaged_pack_fails_its_document_and_no_other(world: World) -> None:
    await world.started()
    await world.ingest(1)
    await world.ingest(2)
    await world.stop()
    await world.embed(1, ["broken"])
    await world.packs.erase(f"main/{document_id(1)}")
    last = await world.embed(2, ["whole"])
    await world.start()
    await world.applied(last)
    assert await world.keyword("broken whole") == [(2, 1, 0)]
    failed = await world.context.bus.last_named(
        crate="main", service="index", aggregate=document_id(1), name="TaskFailed"
    )
    assert failed is not None
    assert isinstance(failed.message, event_pb.TaskFailed)
    assert failed.message.code == "not_found"


async def test_vectors_of_another_model_fail_with_the_way_out(world: World) -> None:
    await world.started()
    await world.ingest(1)
    await world.embed(1, ["text"], model="other-model")
    await world.applied(await world.put(2, ["neighbour"]))
    failed = await world.context.bus.last_named(
        crate="main", service="index", aggregate=document_id(1), name="TaskFailed"
    )
    assert failed is not None
    assert isinstance(failed.message, event_pb.TaskFailed)
    assert failed.message.code == "rejected"
    assert "other-model" in failed.message.reason
    assert MODEL in failed.message.reason
    assert await world.keyword("neighbour") == [(2, 1, 0)]


async def test_crates_do_not_see_each_other(world: World) -> None:
    await world.started("one")
    await world.started("two")
    await world.put(1, ["shared words"], crate="one")
    await world.applied(await world.put(1, ["shared words here"], crate="two"), "two")
    assert await world.keyword("shared", crate="one") == [(1, 1, 0)]
    await world.applied(await world.retire(1, crate="two"), "two")
    assert await world.keyword("shared", crate="one") == [(1, 1, 0)]
    assert await world.keyword("shared", crate="two") == []


async def test_a_document_is_never_missing_while_it_is_replaced(world: World) -> None:
    await world.started()
    await world.applied(await world.put(1, ["steady word"], 1))
    replacing = True
    missing = []

    async def watch() -> int:
        looks = 0
        while replacing:
            looks += 1
            found = await world.keyword("steady")
            if len(found) != 1:
                missing.append(found)
        return looks

    watcher = asyncio.create_task(watch())
    for revision in range(2, 12):
        await world.applied(await world.put(1, ["steady word"], revision))
    replacing = False
    assert await watcher > 10
    assert missing == []
    assert await world.keyword("steady") == [(1, 11, 0)]
