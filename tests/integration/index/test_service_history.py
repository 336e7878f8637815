"""Revisions that aren't current: found by reach and moment, and by nothing else."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import living_pb2 as living_pb
from google.protobuf.timestamp_pb2 import Timestamp

from services.index.adapters.tables_postgres import PostgresTables
from tests.integration.index.service_world import MODEL, World, axis, document_id, packed

DAY = timedelta(days=1)
START = datetime(2020, 1, 1, tzinfo=UTC)
IN_FORCE, EVERY = living_pb.REACH_IN_FORCE, living_pb.REACH_EVERY
Found = set[tuple[int, int]]


def moment(day: int | None = None, at: int = 0) -> living_pb.Moment:
    made = living_pb.Moment(at=at)
    if day is not None:
        made.as_of.FromDatetime(START + day * DAY)
    return made


def keys(hits: list[pb.Hit]) -> Found:
    return {(int(hit.document_id, 16), hit.revision) for hit in hits}


async def found(
    world: World, reach: living_pb.Reach.ValueType, when: living_pb.Moment, word: str = "timetable"
) -> Found:
    """What both lanes find; they agree, and the rows give the chunks of the same revisions."""
    keyword = await world.index.SearchKeyword(
        pb.SearchKeywordRequest(crate_id="main", query=word, limit=50, reach=reach, moment=when)
    )
    vector = await world.index.SearchVector(
        pb.SearchVectorRequest(
            crate_id="main", vector=packed(axis(1)), model_id=MODEL, limit=50, reach=reach, moment=when
        )
    )
    assert keys(list(keyword.hits)) == keys(list(vector.hits))
    asked = [
        pb.ChunkKey(document_id=document_id(number), revision=revision, ordinal=0)
        for number in (1, 2)
        for revision in (1, 2, 3)
    ]
    fetched = await world.index.FetchChunks(
        pb.FetchChunksRequest(crate_id="main", keys=asked, reach=reach, moment=when, with_terms=True)
    )
    assert {(int(chunk.key.document_id, 16), chunk.key.revision) for chunk in fetched.chunks} == keys(
        list(keyword.hits)
    )
    assert all(word in chunk.terms or "timet" in " ".join(chunk.terms) for chunk in fetched.chunks)
    return keys(list(keyword.hits))


async def put(world: World, number: int, revision: int, day: int, text: str = "timetable") -> int:
    await world.ingest(number, revision, effective_at=START + day * DAY)
    return await world.embed(number, [text], revision, vectors=[axis(1)])


async def test_each_moment_shows_the_revisions_of_its_time(world: World) -> None:
    await world.started()
    first = await put(world, 1, 1, 0)
    await put(world, 1, 2, 10)
    await put(world, 2, 1, 5)
    # Put later, but effective earlier: from then on it holds, since it was said last.
    last = await put(world, 1, 3, 4)
    await world.applied(last)
    now = living_pb.Moment()
    assert await found(world, living_pb.REACH_UNSPECIFIED, now) == {(1, 3), (2, 1)}
    assert await found(world, living_pb.REACH_CURRENT, moment(0)) == {(1, 3), (2, 1)}
    assert await found(world, IN_FORCE, moment(-1)) == set()
    assert await found(world, IN_FORCE, moment(0)) == {(1, 1)}
    assert await found(world, IN_FORCE, moment(4)) == {(1, 3)}
    assert await found(world, IN_FORCE, moment(10)) == {(1, 3), (2, 1)}
    assert await found(world, IN_FORCE, moment(10, at=last - 2)) == {(1, 2), (2, 1)}
    assert await found(world, IN_FORCE, now) == {(1, 3), (2, 1)}
    assert await found(world, EVERY, moment(5)) == {(1, 1), (1, 3), (2, 1)}
    assert await found(world, EVERY, moment(5, at=first)) == {(1, 1)}
    assert await found(world, EVERY, moment(5, at=first - 1)) == set(), "put, but not known yet"
    assert await found(world, EVERY, moment(50, at=last)) == {(1, 1), (1, 2), (1, 3), (2, 1)}


async def test_a_retired_document_is_found_as_of_an_earlier_instant(world: World) -> None:
    await world.started()
    await put(world, 1, 1, 0)
    await world.applied(await world.retire(1, retired_at=START + 7 * DAY))
    assert await found(world, living_pb.REACH_CURRENT, living_pb.Moment()) == set()
    assert await found(world, IN_FORCE, living_pb.Moment()) == set()
    assert await found(world, IN_FORCE, moment(6)) == {(1, 1)}
    assert await found(world, IN_FORCE, moment(7)) == set()
    assert await found(world, EVERY, moment(6)) == {(1, 1)}
    assert await found(world, EVERY, moment(7)) == set()
    # A later revision doesn't bring the time in between back.
    await world.applied(await put(world, 1, 2, 9))
    assert await found(world, IN_FORCE, moment(8)) == set()
    assert await found(world, IN_FORCE, moment(9)) == {(1, 2)}
    assert await found(world, living_pb.REACH_CURRENT, living_pb.Moment()) == {(1, 2)}


async def test_an_erasure_takes_every_revision(world: World) -> None:
    await world.started()
    await put(world, 1, 1, 0)
    await put(world, 1, 2, 1)
    await world.applied(await world.erase(1, 2))
    assert await found(world, EVERY, living_pb.Moment()) == set()


async def test_other_chunk_settings_of_an_old_revision_change_nothing_else(world: World) -> None:
    await world.started()
    await put(world, 1, 1, 0)
    await world.ingest(1, 2, effective_at=START + DAY)
    await world.embed(1, ["timetable"], 2, vectors=[axis(1)])
    await world.applied(await put(world, 2, 1, 0, "timetable"))
    await world.ingest(2, 1, digest="d2", effective_at=START)
    await world.applied(await world.embed(2, [], 1, digest="d2"))
    assert await found(world, EVERY, living_pb.Moment()) == {(1, 1), (1, 2)}


@pytest.mark.parametrize("lane", ["keyword", "vector"])
async def test_a_lost_lane_gets_its_history_back(world: World, lane: str) -> None:
    await world.started()
    await put(world, 1, 1, 0)
    await put(world, 1, 2, 10)
    await world.applied(await put(world, 2, 1, 5))
    await world.applied(await world.retire(2, retired_at=START + 7 * DAY))
    await world.stop()
    shutil.rmtree(world.settings.data_dir / "lanes" / "main" / "1" / lane)
    await world.start()
    await world.ready()
    assert await found(world, EVERY, living_pb.Moment()) == {(1, 1), (1, 2)}
    assert await found(world, EVERY, moment(6)) == {(1, 1), (2, 1)}
    assert await found(world, IN_FORCE, moment(6)) == {(1, 1), (2, 1)}
    assert await found(world, living_pb.REACH_CURRENT, living_pb.Moment()) == {(1, 2)}


async def test_a_crash_between_lanes_and_rows_leaves_history_in_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.started()
    await world.applied(await put(world, 1, 1, 0))
    commit = PostgresTables.commit
    tripped = False

    async def trip(tables: PostgresTables, *arguments: object) -> None:
        nonlocal tripped
        rows, position, before = arguments

        async def crash() -> None:
            nonlocal tripped
            await before()  # type: ignore[operator]  # a commit's last argument
            if not tripped:
                tripped = True
                raise OSError("the process is gone")

        await commit(tables, rows, position, crash)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(PostgresTables, "commit", trip)
    await put(world, 1, 2, 10)
    await world.applied(await put(world, 1, 3, 20))
    assert tripped
    assert await found(world, IN_FORCE, moment(15)) == {(1, 2)}
    assert await found(world, IN_FORCE, moment(20)) == {(1, 3)}
    assert await found(world, EVERY, living_pb.Moment()) == {(1, 1), (1, 2), (1, 3)}


async def test_terms_are_weighed_over_what_the_reach_can_find(world: World) -> None:
    await world.started()
    await put(world, 1, 1, 0, "winter timetable")
    await world.applied(await put(world, 1, 2, 10, "summer timetable"))
    for reach, expected in ((living_pb.REACH_CURRENT, 0), (IN_FORCE, 1)):
        reply = await world.index.SearchKeyword(
            pb.SearchKeywordRequest(crate_id="main", query="winter", limit=5, reach=reach, moment=moment(3))
        )
        assert [weight.document_frequency for weight in reply.terms] == [expected]


@pytest.mark.parametrize(
    ("reach", "when", "told"),
    [
        (7, living_pb.Moment(), "reach 7 is unknown"),
        (living_pb.REACH_CURRENT, living_pb.Moment(at=10**9), "known up to position"),
        (IN_FORCE, living_pb.Moment(as_of=Timestamp(seconds=2**60)), "between the years 1 and 9999"),
        (EVERY, living_pb.Moment(as_of=Timestamp(nanos=-1)), "between the years 1 and 9999"),
    ],
)
async def test_moments_that_make_no_sense_are_refused(
    world: World, reach: living_pb.Reach.ValueType, when: living_pb.Moment, told: str
) -> None:
    await world.started()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await found(world, reach, when)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert told in str(caught.value.details())
