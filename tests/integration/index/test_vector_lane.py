"""What every vector lane does. One suite for all adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from services.index.adapters.vector_engine_process import VectorEngineProcess
from services.index.adapters.vector_lane_edge import EdgeVectorLanes
from services.index.domain.records import EVERY_REVISION, Form, Kind, LaneFilter, VectorChange
from services.index.ports import VectorLane, VectorLanes
from services.kernel.errors import Conflict, Rejected, Unavailable
from tests.integration.index.lane_records import DIMENSION, direction, document, record, vectors

Reopen = Callable[[], Awaitable[VectorLanes]]

EAST, NORTH, NORTH_EAST, WEST = direction(1), direction(0, 1), direction(1, 1), direction(-1)


@pytest.fixture(params=["edge"])
async def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reopen]:
    """Opens the same storage again, as after a restart."""
    assert request.param == "edge"
    opened: list[EdgeVectorLanes] = []

    async def again() -> VectorLanes:
        for lanes in opened:
            await lanes.close()
        engine = VectorEngineProcess(root=tmp_path / "lanes", runtime_dir=tmp_path / "run")
        opened.append(EdgeVectorLanes(engine=engine))
        return opened[-1]

    yield again
    for lanes in opened:
        await lanes.close()


@pytest.fixture
async def lanes(reopen: Reopen) -> VectorLanes:
    return await reopen()


@pytest.fixture
async def lane(lanes: VectorLanes) -> VectorLane:
    return await lanes.open("main", 1, DIMENSION)


async def found(
    lane: VectorLane, vector: NDArray[np.float32], lane_filter: LaneFilter | None = None, limit: int = 10
) -> list[str]:
    hits = await lane.search(vector, lane_filter or LaneFilter(), limit)
    return [f"{int(hit.document_id, 16)}.{hit.revision}.{hit.ordinal}" for hit in hits]


async def test_records_come_by_exact_cosine(lane: VectorLane) -> None:
    assert (await lane.position(), await lane.count()) == (0, 0)
    assert await found(lane, EAST) == []
    await lane.replace([vectors(1, EAST * 5, NORTH), vectors(2, NORTH_EAST, WEST)], 7)
    hits = await lane.search(EAST * 9, LaneFilter(), 10)
    assert [hit.document_id for hit in hits] == [document(n) for n in (1, 2, 1, 2)]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.5**0.5, 0, -1], abs=1e-6)
    assert [hit.form for hit in hits] == [Form.TEXT] * 4
    assert (await lane.position(), await lane.count(), await lane.count(Kind.CHUNK)) == (7, 4, 4)


async def test_a_replacement_leaves_nothing_of_the_old_revision(lane: VectorLane) -> None:
    await lane.replace([vectors(1, EAST, NORTH, WEST), vectors(2, NORTH)], 1)
    await lane.replace([vectors(1, NORTH_EAST, revision=2)], 2)
    assert await found(lane, EAST) == ["1.2.0", "2.1.0"]
    assert await lane.count() == 2


async def test_a_deletion_frees_the_only_place(lane: VectorLane) -> None:
    await lane.replace([vectors(1, EAST), vectors(2, NORTH_EAST)], 1)
    assert await found(lane, EAST, limit=1) == ["1.1.0"]
    await lane.replace([vectors(1)], 2)
    assert await found(lane, EAST, limit=1) == ["2.1.0"]
    await lane.replace([vectors(1), vectors(99)], 3)
    assert await lane.count() == 1


async def test_the_same_revision_with_other_chunks_replaces_them(lane: VectorLane) -> None:
    await lane.replace([vectors(1, EAST, NORTH)], 1)
    await lane.replace([vectors(1, WEST)], 2)
    assert await found(lane, WEST) == ["1.1.0"]


async def test_changes_of_one_batch_apply_in_order(lane: VectorLane) -> None:
    changes = [vectors(1, EAST), vectors(1, NORTH, revision=2), vectors(1, EAST, revision=3)]
    await lane.replace(changes, 5)
    assert await found(lane, EAST) == ["1.3.0"]


async def test_the_same_or_an_older_batch_changes_nothing(lane: VectorLane) -> None:
    await lane.replace([vectors(1, EAST)], 3)
    await lane.replace([vectors(1, NORTH, revision=2)], 6)
    await lane.replace([vectors(1, EAST)], 3)
    await lane.replace([vectors(1, WEST)], 6)
    assert await found(lane, EAST) == ["1.2.0"]
    assert await lane.position() == 6


async def test_only_the_named_kinds_are_replaced(lane: VectorLane) -> None:
    whole = record(1, kind=Kind.DOCUMENT)
    await lane.replace([VectorChange(document(1), EVERY_REVISION, (record(1), whole), np.stack([EAST, NORTH]))], 1)
    await lane.replace([vectors(1, WEST, revision=2, kinds=(Kind.CHUNK,))], 2)
    assert await found(lane, EAST) == ["1.2.0"]
    assert await found(lane, EAST, LaneFilter(kind=Kind.DOCUMENT)) == ["1.1.0"]
    assert (await lane.count(Kind.CHUNK), await lane.count(Kind.DOCUMENT), await lane.count()) == (1, 1, 2)


async def test_crates_and_generations_are_apart(lanes: VectorLanes) -> None:
    one = await lanes.open("a", 1, DIMENSION)
    other, next_generation = await lanes.open("b", 1, DIMENSION), await lanes.open("a", 2, 2)
    await one.replace([vectors(1, EAST)], 1)
    await other.replace([vectors(2, EAST)], 1)
    assert await found(other, EAST) == ["2.1.0"]
    assert await found(next_generation, np.array([1, 0], dtype=np.float32)) == []
    assert await lanes.open("a", 1, DIMENSION) is one


FILTERED = [
    (LaneFilter(), ["1.1.0", "2.1.0", "3.1.0", "4.1.0"]),
    (LaneFilter(forms=(Form.INFORMAL,)), ["2.1.0"]),
    (LaneFilter(forms=(Form.INFORMAL, Form.STRUCTURED)), ["2.1.0", "3.1.0"]),
    (LaneFilter(source_domains=("b.example",)), ["3.1.0", "4.1.0"]),
    (LaneFilter(document_ids=(document(1), document(4))), ["1.1.0", "4.1.0"]),
    (LaneFilter(document_ids=(document(1),), source_domains=("b.example",)), []),
    (LaneFilter(document_ids=(document(77),)), []),
    (LaneFilter(source_domains=('quote " AND *',)), []),
]


@pytest.mark.parametrize(("lane_filter", "expected"), FILTERED)
async def test_filters_work_before_the_limit(lane: VectorLane, lane_filter: LaneFilter, expected: list[str]) -> None:
    await lane.replace(
        [
            vectors(1, direction(1, 0.1)),
            vectors(2, direction(1, 0.2), form=Form.INFORMAL),
            vectors(3, direction(1, 0.3), form=Form.STRUCTURED, domain="b.example"),
            vectors(4, direction(1, 0.4), domain="b.example"),
        ],
        1,
    )
    assert await found(lane, EAST, lane_filter) == expected
    assert await found(lane, EAST, lane_filter, limit=1) == expected[:1]


async def test_many_documents_fit_in_a_filter(lane: VectorLane) -> None:
    await lane.replace([vectors(n, direction(1, n / 10)) for n in range(20)], 1)
    allowed = LaneFilter(document_ids=tuple(document(n) for n in range(5, 5000)))
    assert await found(lane, EAST, allowed, limit=3) == ["5.1.0", "6.1.0", "7.1.0"]


async def test_equal_scores_come_by_document_revision_and_ordinal(lane: VectorLane) -> None:
    for position in range(1, 6):
        numbers = range(48 - 8 * position, 56 - 8 * position)
        await lane.replace([vectors(n, EAST, EAST) for n in reversed(numbers)], position)
    assert await found(lane, EAST, limit=5) == ["8.1.0", "8.1.1", "9.1.0", "9.1.1", "10.1.0"]
    assert await found(lane, EAST, limit=1) == ["8.1.0"]


async def test_optimising_changes_no_answer(lane: VectorLane) -> None:
    made = np.random.default_rng(3).standard_normal((1500, DIMENSION)).astype(np.float32)
    await lane.replace([vectors(n, *made[n * 10 : n * 10 + 10]) for n in range(150)], 1)
    before = await lane.search(EAST, LaneFilter(), 20)
    assert await lane.optimise()
    assert not await lane.optimise()
    after = await lane.search(EAST, LaneFilter(), 20)
    assert [(h.document_id, h.ordinal) for h in after] == [(h.document_id, h.ordinal) for h in before]
    assert [h.score for h in after] == pytest.approx([h.score for h in before], abs=1e-6)
    await lane.replace([vectors(3, EAST, revision=2), vectors(4)], 2)
    assert (await found(lane, EAST))[0] == "3.2.0"
    assert await lane.count() == 1500 - 20 + 1
    assert await found(lane, EAST, LaneFilter(document_ids=(document(4),))) == []


async def test_everything_is_there_after_a_restart(reopen: Reopen) -> None:
    lane = await (await reopen()).open("main", 1, DIMENSION)
    await lane.replace([vectors(1, EAST)], 4)
    await lane.replace([], 9)
    again = await (await reopen()).open("main", 1, DIMENSION)
    assert await again.position() == 9
    assert await found(again, EAST) == ["1.1.0"]
    await again.replace([vectors(2, EAST)], 10)
    assert await found(again, EAST) == ["1.1.0", "2.1.0"]


async def test_another_dimension_is_a_conflict(reopen: Reopen) -> None:
    lanes = await reopen()
    await lanes.open("main", 1, DIMENSION)
    with pytest.raises(Conflict, match="8 components, not 9"):
        await lanes.open("main", 1, 9)
    with pytest.raises(Conflict, match="8 components, not 9"):
        await (await reopen()).open("main", 1, 9)


async def test_an_empty_batch_moves_the_position(lane: VectorLane) -> None:
    await lane.replace([], 5)
    assert await lane.position() == 5
    await lane.flush()
    await lane.replace([], 4)
    assert await lane.position() == 5


async def test_a_dropped_lane_is_gone_and_starts_anew(lanes: VectorLanes) -> None:
    lane = await lanes.open("main", 1, DIMENSION)
    await lane.replace([vectors(1, EAST)], 4)
    await lane.drop()
    with pytest.raises(Unavailable, match="main"):
        await found(lane, EAST)
    again = await lanes.open("main", 1, DIMENSION)
    assert (await again.position(), await again.count()) == (0, 0)


async def test_a_closed_lane_says_so_and_opens_again(lanes: VectorLanes) -> None:
    lane = await lanes.open("main", 1, DIMENSION)
    await lane.close()
    await lane.close()
    with pytest.raises(Unavailable):
        await lane.count()
    assert await (await lanes.open("main", 1, DIMENSION)).count() == 0


@pytest.mark.parametrize("bad", [direction(float("nan")), direction(float("inf")), direction(), direction(1)[:-1]])
async def test_a_vector_that_has_no_cosine_is_refused(lane: VectorLane, bad: NDArray[np.float32]) -> None:
    with pytest.raises(Rejected, match="main"):
        await lane.search(bad, LaneFilter(), 5)
    good_neighbour = vectors(2, EAST)
    with pytest.raises(Rejected, match=document(1)):
        await lane.replace([good_neighbour, vectors(1, bad)], 1)
    assert (await lane.position(), await lane.count()) == (0, 0)


async def test_records_and_vectors_belong_together(lane: VectorLane) -> None:
    with pytest.raises(Rejected, match=document(1)):
        await lane.replace([VectorChange(document(1), EVERY_REVISION, (record(1),))], 1)
    with pytest.raises(Rejected, match=document(1)):
        await lane.replace([VectorChange(document(1), EVERY_REVISION, (record(1),), np.stack([EAST, WEST]))], 1)


async def test_searches_see_a_document_before_or_after_its_replacement(lane: VectorLane) -> None:
    # Larger than what the engine takes in one step, so its parts arrive one after the other.
    size = 1300
    rows = np.random.default_rng(1).standard_normal((size, DIMENSION)).astype(np.float32)
    await lane.replace([vectors(1, *rows)], 1)
    writing = asyncio.Event()

    async def write() -> None:
        for position in range(2, 6):
            await lane.replace([vectors(1, *rows, revision=position), vectors(2, EAST)], position)
        writing.set()

    async def read() -> int:
        looks = 0
        while not writing.is_set():
            hits = await lane.search(EAST, LaneFilter(document_ids=(document(1),)), 2000)
            assert len(hits) == size
            assert len({hit.revision for hit in hits}) == 1
            looks += 1
        return looks

    _, looks = await asyncio.gather(write(), read())
    assert looks > 1
    assert await lane.count() == size + 1


@pytest.mark.parametrize(
    ("crate", "generation", "dimension"), [("../up", 1, 8), ("Upper", 1, 8), ("", 1, 8), ("main", 0, 8), ("main", 1, 0)]
)
async def test_a_lane_needs_a_crate_a_generation_and_a_dimension(
    lanes: VectorLanes, crate: str, generation: int, dimension: int
) -> None:
    with pytest.raises(Rejected):
        await lanes.open(crate, generation, dimension)


async def test_a_limit_below_one_is_rejected(lane: VectorLane) -> None:
    with pytest.raises(Rejected, match="at least 1"):
        await lane.search(EAST, LaneFilter(), 0)


async def test_propositions_are_records_of_their_chunk(lane: VectorLane) -> None:
    places = ((0, 1), (0, 1_023), (4_194_303, 2))
    records = tuple(replace(record(1, ordinal=ordinal), statement=number) for ordinal, number in places)
    await lane.replace([VectorChange(document(1), EVERY_REVISION, records, np.stack([EAST, NORTH, WEST]))], 1)
    for place, vector in zip(places, (EAST, NORTH, WEST), strict=True):
        hit = (await lane.search(vector, LaneFilter(), 1))[0]
        assert (hit.ordinal, hit.statement) == place
    await lane.replace([VectorChange(document(1), 1)], 2)
    assert await lane.count() == 0
