"""Crashes between lanes and rows, lost and older lane folders, signals that were not sent."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_service_pb2 as pb

from services.index.adapters.outbox_postgres import PostgresOutbox
from services.index.adapters.tables_postgres import PostgresTables
from services.index.handlers import LaneProjection
from services.index.signals import SignalSender
from services.kernel.bus import Bus
from services.kernel.errors import Unavailable
from tests.integration.index.service_world import World, axis, document_id


def lane_folder(world: World, lane: str = "") -> Path:
    return world.settings.data_dir / "lanes" / "main" / "1" / lane


async def both_lanes(world: World, query: str, vector: Sequence[float]) -> list[list[tuple[int, int, int]]]:
    return [sorted(await world.keyword(query)), sorted(await world.vector(vector))]


async def test_everything_is_found_after_a_restart(world: World) -> None:
    await world.started()
    await world.applied(await world.put(1, ["still here"]))
    await world.stop()
    await world.start()
    await world.ready()
    assert await both_lanes(world, "still", axis(1)) == [[(1, 1, 0)], [(1, 1, 0)]]
    await world.applied(await world.put(1, ["still changed"], 2))
    assert await both_lanes(world, "still", axis(1)) == [[(1, 2, 0)], [(1, 2, 0)]]


async def test_a_crash_between_lanes_and_rows_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.started()
    await world.applied(await world.put(1, ["kept words"]))
    crashed = asyncio.Event()
    write_lanes = LaneProjection._write_lanes

    async def crash(projection: LaneProjection, *arguments: Any) -> None:
        await write_lanes(projection, *arguments)
        crashed.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(LaneProjection, "_write_lanes", crash)
    await world.put(1, ["kept words, second wording"], 2)
    await world.put(2, ["ghost words"])
    await world.put(3, ["third words"])
    await crashed.wait()
    await world.stop()
    monkeypatch.setattr(LaneProjection, "_write_lanes", write_lanes)
    last = await world.retire(2)
    await world.start()
    await world.applied(last)
    assert await both_lanes(world, "words", axis(0)) == [[(1, 2, 0), (3, 1, 0)]] * 2


async def test_lanes_ahead_of_the_rows_show_no_ghosts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.started()
    await world.applied(await world.put(1, ["known words"]))
    reached, let_go = asyncio.Event(), asyncio.Event()
    write_lanes = LaneProjection._write_lanes

    async def hold(projection: LaneProjection, *arguments: Any) -> None:
        await write_lanes(projection, *arguments)
        reached.set()
        await let_go.wait()

    monkeypatch.setattr(LaneProjection, "_write_lanes", hold)
    last = await world.put(2, ["early words"])
    await reached.wait()
    assert await both_lanes(world, "words", axis(1)) == [[(1, 1, 0)]] * 2
    let_go.set()
    await world.applied(last)
    assert await both_lanes(world, "words", axis(1)) == [[(1, 1, 0), (2, 1, 0)]] * 2


@pytest.mark.parametrize("lane", ["", "keyword", "vector"])
async def test_a_lost_lane_is_rebuilt_from_rows_and_packs(world: World, lane: str) -> None:
    await world.started()
    for number in range(1, 6):
        last = await world.put(number, [f"words of {number}", f"more words of {number}"])
    await world.retire(5)
    await world.put(4, ["words changed"], 2)
    last = await world.erase(3)
    await world.applied(last)
    before = await both_lanes(world, "words", axis(1))
    assert len(before[0]) == 5
    await world.stop()
    shutil.rmtree(lane_folder(world, lane))
    await world.start()
    await world.ready()
    assert await both_lanes(world, "words", axis(1)) == before
    await world.applied(await world.put(1, ["words of tomorrow"], 2))
    assert (1, 2, 0) in await world.keyword("tomorrow")


async def test_an_older_copy_of_the_lanes_is_rebuilt(world: World, tmp_path: Path) -> None:
    await world.started()
    await world.applied(await world.put(1, ["first words"]))
    await world.stop()
    shutil.copytree(lane_folder(world), tmp_path / "copy")
    await world.start()
    await world.put(2, ["second words"])
    await world.applied(await world.retire(1))
    await world.stop()
    shutil.rmtree(lane_folder(world))
    shutil.copytree(tmp_path / "copy", lane_folder(world))
    await world.start()
    await world.ready()
    assert await both_lanes(world, "words", axis(0)) == [[(2, 1, 0)]] * 2


async def test_a_lane_whose_data_is_gone_but_not_its_position_is_rebuilt(world: World) -> None:
    await world.started()
    await world.applied(await world.put(1, ["found words"]))
    await world.stop()
    shutil.rmtree(lane_folder(world, "keyword/chunk"))
    await world.start()
    await world.ready()
    assert await world.keyword("words") == [(1, 1, 0)]


async def test_a_damaged_vector_pack_costs_a_rebuild_one_document(world: World) -> None:
    await world.started()
    await world.put(1, ["first words"])
    await world.applied(await world.put(2, ["second words"]))
    await world.stop()
    shutil.rmtree(lane_folder(world, "vector"))
    await world.packs.erase(f"main/{document_id(1)}/1/vectors")
    await world.start()
    await world.ready()
    assert sorted(await world.keyword("words")) == [(1, 1, 0), (2, 1, 0)]
    assert await world.vector(axis(1)) == [(2, 1, 0)]
    failed = await world.context.bus.last_named(
        crate="main", service="index", aggregate=document_id(1), name="TaskFailed"
    )
    assert failed is not None
    assert isinstance(failed.message, event_pb.TaskFailed)
    assert failed.message.code == "not_found"


async def test_a_document_erased_meanwhile_costs_a_rebuild_no_failure(world: World) -> None:
    await world.started()
    await world.put(1, ["first words"])
    await world.applied(await world.put(2, ["second words"]))
    await world.stop()
    shutil.rmtree(lane_folder(world, "vector"))
    last = await world.erase(1)
    await world.packs.erase(f"main/{document_id(1)}")
    await world.start()
    await world.applied(last)
    assert await both_lanes(world, "words", axis(1)) == [[(2, 1, 0)]] * 2
    failed = await world.context.bus.last_named(
        crate="main", service="index", aggregate=document_id(1), name="TaskFailed"
    )
    assert failed is None


async def test_searches_are_refused_while_lanes_are_rebuilt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.started()
    await world.applied(await world.put(1, ["some words"]))
    await world.stop()
    shutil.rmtree(lane_folder(world))
    shown = PostgresTables.shown
    let_go = asyncio.Event()

    async def slow(tables: PostgresTables, *arguments: Any) -> Any:
        await let_go.wait()
        return await shown(tables, *arguments)

    monkeypatch.setattr(PostgresTables, "shown", slow)
    await world.start()
    await world.reported("index/lanes", "rebuilding the keyword lane")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await world.index.SearchKeyword(pb.SearchKeywordRequest(crate_id="main", query="words", limit=1))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "rebuilding the keyword lane of crate main" in str(caught.value.details())
    let_go.set()
    await world.ready()
    assert await world.keyword("words") == [(1, 1, 0)]


async def test_a_signal_survives_a_crash_before_it_was_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.started()

    async def never(_: SignalSender) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(SignalSender, "run", never)
    await world.stop()
    await world.start()
    await world.applied(await world.put(1, ["text"]))
    assert await world.context.bus.last_position("SIGNALS") == 0
    await world.stop()
    monkeypatch.undo()
    await world.start()
    (signal,) = await world.signals(1)
    assert signal.document_id == document_id(1)


async def test_a_signal_that_is_sent_again_keeps_its_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.started()
    forget = PostgresOutbox.forget
    sent = asyncio.Event()

    async def crash(*_: Any) -> None:
        sent.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(PostgresOutbox, "forget", crash)
    await world.put(1, ["text"])
    async with asyncio.timeout(10):
        await sent.wait()
    await world.stop()
    monkeypatch.setattr(PostgresOutbox, "forget", forget)
    await world.start()
    await world.applied(await world.put(2, ["text"]))
    first, second = await world.events("SIGNALS", 2)
    assert {first.aggregate, second.aggregate} == {document_id(1), document_id(2)}


async def test_a_crash_between_start_and_activation_is_completed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    append_once = Bus.append_once

    async def crash(bus: Bus, **arguments: Any) -> Any:
        if arguments["key"].endswith("activated"):
            raise Unavailable("the log is away")
        return await append_once(bus, **arguments)

    monkeypatch.setattr(Bus, "append_once", crash)
    await world.create_crate()
    await world.events("KNOWLEDGE", 1, "affidavit.k.main.index.generations.generation_started")
    await world.stop()
    monkeypatch.setattr(Bus, "append_once", append_once)
    await world.start()
    await world.until_active()
    found = await world.events("KNOWLEDGE", 2, "affidavit.k.main.index.generations.*")
    assert [event.name for event in found] == ["GenerationStarted", "GenerationActivated"]
