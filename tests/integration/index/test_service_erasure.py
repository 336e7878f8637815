"""What an erasure leaves in the index's files, over gRPC and on the real servers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import tantivy
from affidavit.index.v1 import index_service_pb2 as pb

from services.kernel.settings import NodeSettings
from tests.integration.index.service_world import World, axis, document_id

WORD = "zworblax"


async def erasure(world: World, number: int, position: int) -> pb.GetErasureResponse:
    request = pb.GetErasureRequest(crate_id="main", document_id=document_id(number), position=position)
    return await world.index.GetErasure(request)


async def until_gone(world: World, number: int, position: int) -> None:
    async with asyncio.timeout(20):
        while not (await erasure(world, number, position)).gone:  # noqa: ASYNC110  (asks as a caller does)
            await asyncio.sleep(0.02)


def term_is_kept(lanes: Path) -> bool:
    searcher = tantivy.Index.open(str(lanes / "main" / "1" / "keyword" / "chunk")).searcher()
    return bool(searcher.doc_freq("body", WORD))


def id_is_kept(lanes: Path, number: int) -> bool:
    wanted = document_id(number).encode()
    return any(wanted in path.read_bytes() for path in (lanes / "main" / "1").rglob("*") if path.is_file())


async def test_the_lanes_files_forget_an_erased_document(world: World, node_settings: NodeSettings) -> None:
    lanes = node_settings.data_dir / "lanes"
    await world.started()
    await world.put(1, ["the north gate opens"])
    await world.applied(await world.put(2, [f"the phrase is {WORD}", "and more"]))
    assert term_is_kept(lanes)
    assert id_is_kept(lanes, 2)
    assert not (await erasure(world, 2, 10_000)).gone
    position = await world.erase(2)
    await until_gone(world, 2, position)
    assert not term_is_kept(lanes)
    assert not id_is_kept(lanes, 2)
    assert await world.keyword("gate") == [(1, 1, 0)]
    assert await world.vector(axis(1)) == [(1, 1, 0)]
    await world.applied(await world.put(2, ["a new gate"], 2))
    assert sorted(await world.keyword("gate")) == [(1, 1, 0), (2, 2, 0)]
    assert (await erasure(world, 2, position)).gone


async def test_documents_come_and_go_while_lanes_are_written_anew(world: World, node_settings: NodeSettings) -> None:
    await world.started()
    for number in range(1, 31):
        await world.put(number, [f"gate number {number}"])
    last = 0
    for number in range(1, 11):
        last = await world.erase(number)
        await world.put(number + 30, [f"gate number {number + 30}"])
        await asyncio.sleep(0.05)
    for number in range(1, 11):
        await until_gone(world, number, last)
    await world.applied(await world.put(50, ["gate number 50"]))
    found = {number for number, _, _ in await world.keyword("gate", limit=100)}
    assert found == {*range(11, 41), 50}
    nearest = {number for number, _, _ in await world.vector(axis(1), limit=100)}
    assert nearest == found
    assert not any(id_is_kept(node_settings.data_dir / "lanes", number) for number in range(1, 11))


async def test_a_scrub_that_a_stop_cuts_off_is_finished_by_the_next_start(
    world: World, node_settings: NodeSettings
) -> None:
    lanes = node_settings.data_dir / "lanes"
    await world.started()
    for number in range(1, 21):
        await world.put(number, [f"gate {number} {WORD}"])
    position = await world.erase(3)
    await world.applied(position)
    await world.stop()
    await world.start()
    await until_gone(world, 3, position)
    assert not id_is_kept(lanes, 3)
    await world.ready()
    assert len(await world.keyword("gate", limit=100)) == 19
