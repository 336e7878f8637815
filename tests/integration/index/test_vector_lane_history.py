"""What every vector lane keeps of revisions that aren't current. One suite for all adapters."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.index.adapters.vector_engine_process import VectorEngineProcess
from services.index.adapters.vector_lane_edge import EdgeVectorLanes
from services.index.domain.force import Force
from services.index.domain.records import EVERY_REVISION, ForceChange, Form, Kind, LaneFilter, Reach, VectorChange
from services.index.ports import VectorLane
from tests.integration.index.lane_histories import FOUND, HISTORY
from tests.integration.index.lane_records import DIMENSION, direction, document, vectors

EAST, NORTH = direction(1), direction(0, 1)
EVERY = LaneFilter(reach=Reach.EVERY, as_of=1000)
NOW = HISTORY[1, 3]
PAST = Force(effective_from=0, in_force_until=9, position=1, current=False)


class Storage:
    """Opens the same lane again, as after a restart."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lanes: EdgeVectorLanes | None = None
        self.engine: VectorEngineProcess

    async def open(self) -> VectorLane:
        await self.close()
        self.engine = VectorEngineProcess(root=self._root / "lanes", runtime_dir=self._root / "run")
        self._lanes = EdgeVectorLanes(engine=self.engine)
        return await self._lanes.open("main", 1, DIMENSION)

    async def close(self) -> None:
        if self._lanes is not None:
            await self._lanes.close()


@pytest.fixture(params=["edge"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    assert request.param == "edge"
    storage = Storage(tmp_path)
    yield storage
    await storage.close()


@pytest.fixture
async def lane(storage: Storage) -> VectorLane:
    return await storage.open()


def change(number: int, revision: int, force: Force, form: Form = Form.TEXT) -> VectorChange:
    return vectors(number, EAST, revision=revision, force=force, form=form, of=revision)


async def found(lane: VectorLane, lane_filter: LaneFilter, limit: int = 10) -> set[str]:
    return {f"{int(h.document_id, 16)}.{h.revision}" for h in await lane.search(EAST, lane_filter, limit)}


async def filled(lane: VectorLane) -> None:
    await lane.replace([change(n, r, force) for (n, r), force in HISTORY.items()], 12)


async def test_reach_and_moment_choose_the_revisions(lane: VectorLane) -> None:
    await filled(lane)
    for _ in range(2):
        for lane_filter, expected in FOUND:
            assert await found(lane, lane_filter) == expected, lane_filter
            assert len(await found(lane, lane_filter, limit=1)) == min(1, len(expected))
        await lane.optimise()


async def test_a_revision_is_replaced_alone(lane: VectorLane) -> None:
    await lane.replace([change(1, 1, PAST), change(1, 2, NOW)], 1)
    await lane.replace([vectors(1, NORTH, NORTH, revision=1, force=PAST, of=1)], 2)
    assert await lane.count() == 3
    assert len(await lane.search(NORTH, EVERY, 5)) == 3
    await lane.replace([VectorChange(document(1), 1)], 3)
    assert await found(lane, EVERY) == {"1.2"}


async def test_an_erased_document_leaves_no_revision(lane: VectorLane) -> None:
    await filled(lane)
    await lane.replace([VectorChange(document(1), EVERY_REVISION)], 20)
    assert await found(lane, EVERY) == {"2.1", "3.1"}


@pytest.mark.parametrize("form", list(Form))
async def test_a_revision_counts_at_other_times_without_new_vectors(lane: VectorLane, form: Form) -> None:
    await lane.replace([change(1, 1, NOW, form)], 1)
    await lane.replace([ForceChange(document(1), 1, form, PAST), change(1, 2, NOW, form)], 2)
    for lane_filter in (LaneFilter(), LaneFilter(forms=(form,))):
        assert await found(lane, lane_filter) == {"1.2"}
    in_force = LaneFilter(reach=Reach.IN_FORCE, as_of=5, forms=(form,))
    assert await found(lane, in_force) == {"1.1"}
    await lane.replace([ForceChange(document(1), 1, form, NOW), ForceChange(document(1), 2, form, PAST)], 3)
    assert (await found(lane, LaneFilter()), await found(lane, in_force)) == ({"1.1"}, {"1.2"})
    assert (await lane.count(), await lane.count(Kind.CHUNK)) == (2, 2)
    await lane.replace([ForceChange(document(8), 1, form, NOW)], 4)
    assert await lane.count() == 2


async def test_the_order_of_changes_counts_within_a_batch(lane: VectorLane) -> None:
    await lane.replace([change(1, 1, NOW), ForceChange(document(1), 1, Form.TEXT, PAST)], 1)
    assert await found(lane, LaneFilter()) == set()
    await lane.replace([ForceChange(document(1), 1, Form.TEXT, NOW), change(1, 1, PAST)], 2)
    assert await found(lane, LaneFilter()) == set()
    assert await found(lane, EVERY) == {"1.1"}


@pytest.mark.parametrize("killed", [False, True])
async def test_other_times_are_there_after_a_restart(storage: Storage, *, killed: bool) -> None:
    lane = await storage.open()
    await lane.replace([change(1, 1, NOW), change(1, 2, NOW)], 1)
    await lane.replace([ForceChange(document(1), 1, Form.TEXT, PAST)], 2)
    if killed:
        assert storage.engine.pid is not None
        os.kill(storage.engine.pid, signal.SIGKILL)
    else:
        lane = await storage.open()
    assert await found(lane, LaneFilter()) == {"1.2"}
    assert await found(lane, LaneFilter(reach=Reach.IN_FORCE, as_of=5)) == {"1.1"}
    # The same batch after a crash before the rows.
    await lane.replace([ForceChange(document(1), 1, Form.TEXT, NOW)], 2)
    assert await found(lane, LaneFilter()) == {"1.2"}


async def test_other_times_that_come_while_a_lane_is_written_anew_are_kept(lane: VectorLane) -> None:
    await lane.replace([change(n, 1, NOW) for n in range(200)], 1)
    rewriting = asyncio.create_task(lane.rewrite())
    await asyncio.sleep(0.05)
    await lane.replace([ForceChange(document(n), 1, Form.TEXT, PAST) for n in range(150)], 2)
    await rewriting
    await lane.optimise()
    assert await found(lane, LaneFilter(), 300) == {f"{n}.1" for n in range(150, 200)}
    assert await lane.count() == 200


async def test_a_lane_of_an_older_layout_starts_anew(tmp_path: Path, storage: Storage) -> None:
    folder = tmp_path / "lanes" / "main" / "1" / "vector"
    (folder / "shard-1").mkdir(parents=True)
    (folder / "position.json").write_text(json.dumps({"layout": "vector-1", "position": 40}))
    (folder / "current.json").write_text(json.dumps({"layout": "vector-1", "number": 1, "dimension": DIMENSION}))
    lane = await storage.open()
    assert (await lane.position(), await lane.count()) == (0, 0)
