"""Propositions as records of their chunks: found by them, told as chunks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import asyncpg
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import living_pb2 as living_pb
from affidavit.proposition.v1 import proposition_events_pb2 as proposition_pb

from tests.integration.index.service_world import MODEL, World, axis, document_id, packed

EVALUATED = proposition_pb.EVALUATION_STATUS_EVALUATED
SKIPPED = proposition_pb.EVALUATION_STATUS_SKIPPED
SOURCE = proposition_pb.EVALUATION_STATUS_SOURCE


def evaluation(
    ordinal: int,
    accepted: Sequence[str] = (),
    rejected: Sequence[str] = (),
    *,
    status: proposition_pb.EvaluationStatus.ValueType = EVALUATED,
) -> proposition_pb.Evaluation:
    """An evaluation; what is rejected comes first, so that ordinals and statements differ."""
    told = [(text, False) for text in rejected] + [(text, True) for text in accepted]
    return proposition_pb.Evaluation(
        chunk_ordinal=ordinal,
        status=status,
        propositions=[
            proposition_pb.EvaluatedProposition(ordinal=number, text=text, accepted=good)
            for number, (text, good) in enumerate(told, start=1)
        ],
    )


DEPOT = "It was rebuilt after the flood, and they store only dry goods there."
FACTS = ("The Aldgate depot was rebuilt in 2011.", "The Aldgate depot stores dry goods.")
EVALUATIONS = (
    evaluation(0, FACTS, ["The Aldgate depot is the largest one."]),
    evaluation(1, status=SKIPPED),
    evaluation(2, status=SOURCE),
)
TEXTS = (DEPOT, "Nobody evaluated this warehouse.", "The bakery stands for itself.")
# Rows of chunks, then of both facts.
VECTORS = [axis(0), axis(0), axis(3), axis(1), axis(2)]


async def put_depot(world: World, revision: int = 1) -> int:
    await world.ingest(1, revision)
    return await world.embed(1, TEXTS, revision, title="Depots", vectors=VECTORS, evaluations=EVALUATIONS)


async def hits(world: World, query: str, *, reach: living_pb.Reach.ValueType = living_pb.REACH_CURRENT) -> list[pb.Hit]:
    request = pb.SearchKeywordRequest(crate_id="main", query=query, limit=10, reach=reach)
    return list((await world.index.SearchKeyword(request)).hits)


async def near(world: World, number: int, limit: int = 10) -> list[tuple[int, int]]:
    request = pb.SearchVectorRequest(crate_id="main", vector=packed(axis(number)), model_id=MODEL, limit=limit)
    return [(hit.ordinal, hit.statement) for hit in (await world.index.SearchVector(request)).hits]


async def fetched(world: World, statement: int, revision: int = 1) -> pb.IndexedChunk:
    key = pb.ChunkKey(document_id=document_id(1), revision=revision, ordinal=0, statement=statement)
    (chunk,) = (await world.index.FetchChunks(pb.FetchChunksRequest(crate_id="main", keys=[key]))).chunks
    return chunk


async def test_a_chunk_is_found_by_its_strongest_proposition_and_told_as_a_whole(world: World) -> None:
    await world.started()
    await world.applied(await put_depot(world))
    (found,) = await hits(world, "aldgate dry goods")
    assert (found.ordinal, found.statement) == (0, 2)
    chunk = await fetched(world, found.statement)
    assert (chunk.chunk.text, chunk.statement, chunk.key.statement) == (DEPOT, FACTS[1], 2)
    assert (await fetched(world, 0)).statement == ""
    assert [(found.ordinal, found.statement) for found in await hits(world, "aldgate rebuilt 2011")] == [(0, 1)]
    assert await near(world, 1) == [(0, 1), (2, 0)]
    assert (await near(world, 2))[0] == (0, 2)


async def test_what_was_rejected_or_skipped_is_no_record_and_what_stands_for_itself_is(world: World) -> None:
    await world.started()
    await world.applied(await put_depot(world))
    assert not await hits(world, "largest")
    assert not await hits(world, "flood"), "words of the chunk that no accepted proposition has"
    assert not await hits(world, "warehouse")
    assert [(found.ordinal, found.statement) for found in await hits(world, "bakery")] == [(2, 0)]
    assert {ordinal for ordinal, _ in await near(world, 0)} == {0, 2}


async def test_the_document_is_found_as_ever(world: World) -> None:
    await world.started()
    await world.applied(await put_depot(world))
    for word in ("flood", "warehouse", "bakery"):
        assert await world.keyword(word, kind=pb.RECORD_KIND_DOCUMENT) == [(1, 1, 0)], word
    assert not await world.keyword("2011", kind=pb.RECORD_KIND_DOCUMENT)
    assert await world.vector(axis(0), kind=pb.RECORD_KIND_DOCUMENT) == [(1, 1, 0)]


async def test_many_propositions_of_a_chunk_leave_room_for_other_chunks(world: World) -> None:
    await world.started()
    many = [f"The quay has berth {number}." for number in range(30)]
    await world.ingest(1)
    await world.embed(1, ["berths"], vectors=[axis(0)] * 31, evaluations=[evaluation(0, many)])
    await world.ingest(2)
    await world.applied(
        await world.embed(2, ["one quay, a berth and much else that makes it longer"], vectors=[axis(0)])
    )
    assert {key[0] for key in await world.keyword("quay berth", limit=2)} == {1, 2}
    assert len(await world.keyword("quay berth", limit=1)) == 1
    assert {key[0] for key in await world.vector(axis(0), limit=2)} == {1, 2}
    assert len(await world.vector(axis(0), limit=10)) == 2


async def test_an_older_revision_is_still_found_by_its_propositions(world: World) -> None:
    await world.started()
    await put_depot(world)
    await world.applied(await world.put(1, ["nothing of the kind"], 2))
    assert not await hits(world, "aldgate")
    (found,) = await hits(world, "aldgate dry goods", reach=living_pb.REACH_EVERY)
    assert (found.revision, found.ordinal, found.statement) == (1, 0, 2)


async def test_lost_lanes_are_rebuilt_with_propositions(world: World) -> None:
    await world.started()
    await world.applied(await put_depot(world))
    before = (await hits(world, "aldgate dry goods bakery"), await near(world, 1))
    await world.stop()
    shutil.rmtree(world.settings.data_dir / "lanes" / "main")
    await world.start()
    await world.ready()
    assert (await hits(world, "aldgate dry goods bakery"), await near(world, 1)) == before


async def test_evaluations_that_do_not_fit_are_refused_and_seen(world: World) -> None:
    await world.started()
    await world.ingest(1)
    await world.embed(1, ["one", "two"], evaluations=[evaluation(0, ["A fact."])])
    await world.applied(await world.put(2, ["a neighbour"]))
    (event,) = await world.events("KNOWLEDGE", 1, "affidavit.k.main.index.*.task_failed")
    assert isinstance(event.message, event_pb.TaskFailed)
    assert event.message.code == "corrupt"
    assert "1 evaluations don't belong to 2 chunks" in event.message.reason
    assert "A fact" not in event.message.reason
    assert await world.keyword("neighbour") == [(2, 1, 0)]


async def test_erasing_takes_propositions_along(world: World) -> None:
    await world.started()
    await world.applied(await put_depot(world))
    await world.applied(await world.erase(1))
    assert not await hits(world, "aldgate", reach=living_pb.REACH_EVERY)
    connection = await asyncpg.connect(world.settings.postgres_dsn)
    assert not await connection.fetchval("select count(*) from index.statements")
    await connection.close()
