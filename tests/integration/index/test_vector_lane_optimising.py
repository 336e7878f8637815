"""How a served shard gives way to an optimised copy, with the building of the copy under the test's control."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from services.index.adapters.edge_engine import frames
from services.index.adapters.edge_engine.conditions import Search
from services.index.adapters.edge_engine.frames import Step
from services.index.adapters.edge_engine.served_lane import LaneError, ServedLane
from services.index.adapters.edge_engine.shard import build_index, rewrite
from services.index.domain.force import NEVER

# Below 1 KiB of vectors the engine builds no index.
DIMENSION = 64
EAST = np.eye(1, DIMENSION, dtype=np.float32)[0]


class Builder:
    """Builds when it is let, or fails."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.failure: Exception | None = None

    async def build(self, folder: Path, dimension: int, source: Path | None) -> None:
        self.begun.set()
        await self.may_go_on.wait()
        self.may_go_on.clear()
        self.begun.clear()
        if self.failure is not None:
            raise self.failure
        if source is None:
            build_index(folder, dimension)
        else:
            rewrite(source, folder, dimension)


@pytest.fixture
def builder() -> Builder:
    return Builder()


@pytest.fixture
async def lane(tmp_path: Path, builder: Builder) -> AsyncIterator[ServedLane]:
    lane = opened(tmp_path, builder)
    yield lane
    await lane.close()


def opened(folder: Path, builder: Builder, optimise_at: int = 1000) -> ServedLane:
    return ServedLane(
        folder / "lane",
        dimension=DIMENSION,
        optimise_at=optimise_at,
        build_index=builder.build,
        turn=asyncio.Semaphore(1),
    )


async def put(lane: ServedLane, number: int, edition: int, records: int, *, last: bool = True) -> None:
    rows = np.tile(EAST, (records, 1))
    listed = tuple((edition, i, "chunk", "text", "here", (0, NEVER, 1, 1, 1)) for i in range(records))
    step = Step(f"{number:032x}", 0, edition, ("chunk", "document"), listed, rows, last)
    _, body = frames.encode_steps([step], {})
    header = {"dimension": DIMENSION, "steps": [[step.document_id, 0, edition, step.kinds, listed, last, None]]}
    await lane.apply(header, body)


def editions(lane: ServedLane) -> dict[int, int]:
    """How many records of which edition a search finds."""
    counts: dict[int, int] = {}
    for hit in lane.search(EAST, Search("chunk", (), (), (), 400)):
        counts[hit[1]] = counts.get(hit[1], 0) + 1
    return counts


def shards(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "lane").iterdir() if not path.name.endswith(".json"))


async def test_what_arrives_meanwhile_is_in_the_optimised_shard(
    lane: ServedLane, builder: Builder, tmp_path: Path
) -> None:
    await put(lane, 1, 1, 20)
    await put(lane, 2, 2, 20)
    optimising = asyncio.create_task(lane.optimise())
    await builder.begun.wait()
    await put(lane, 1, 3, 5)
    await put(lane, 3, 4, 7)
    await put(lane, 2, 5, 0)
    await lane.commit(9)
    assert editions(lane) == {3: 5, 4: 7}
    builder.may_go_on.set()
    assert await optimising
    assert editions(lane) == {3: 5, 4: 7}
    assert shards(tmp_path) == ["shard-2"]
    await put(lane, 3, 6, 1)
    await lane.commit(10)
    await lane.close()
    again = opened(tmp_path, builder)
    assert (editions(again), again.position) == ({3: 5, 6: 1}, 10)


async def test_an_unfinished_replacement_stays_out_of_sight_across_the_swap(lane: ServedLane, builder: Builder) -> None:
    await put(lane, 1, 1, 10)
    await put(lane, 1, 2, 10, last=False)
    assert (editions(lane), lane.count(None)) == ({1: 10}, 10)
    optimising = asyncio.create_task(lane.optimise())
    await builder.begun.wait()
    builder.may_go_on.set()
    assert await optimising
    assert editions(lane) == {1: 10}
    await put(lane, 1, 2, 0)
    assert editions(lane) == {2: 10}


async def test_an_abandoned_replacement_is_swept_by_the_next(lane: ServedLane) -> None:
    await put(lane, 1, 1, 3)
    await put(lane, 1, 2, 3, last=False)
    await put(lane, 1, 3, 4)
    assert (editions(lane), lane.count("chunk")) == ({3: 4}, 4)


async def test_it_starts_by_itself_and_waits_longer_after_a_failure(
    tmp_path: Path, builder: Builder, caplog: pytest.LogCaptureFixture
) -> None:
    lane = opened(tmp_path, builder, optimise_at=30)
    builder.failure = OSError("no room")
    await put(lane, 1, 1, 29)
    await lane.commit(1)
    assert not lane.optimising
    await put(lane, 2, 2, 1)
    await lane.commit(2)
    await builder.begun.wait()
    waiting = asyncio.create_task(lane.optimise())
    builder.may_go_on.set()
    with pytest.raises(OSError, match="no room"):
        await waiting
    assert "no room" in caplog.text
    assert shards(tmp_path) == ["shard-1"]
    await put(lane, 3, 3, 5)
    await lane.commit(3)
    assert not lane.optimising
    assert editions(lane) == {1: 29, 2: 1, 3: 5}
    builder.failure = None
    builder.may_go_on.set()
    assert await lane.optimise()
    assert lane.unindexed() == 0
    await lane.close()


async def test_enough_new_records_start_the_next_round_at_once(tmp_path: Path, builder: Builder) -> None:
    lane = opened(tmp_path, builder, optimise_at=30)
    await put(lane, 1, 1, 30)
    await lane.commit(1)
    await builder.begun.wait()
    await put(lane, 2, 2, 30)
    await lane.commit(2)
    builder.may_go_on.set()
    assert await lane.optimise()
    # The next one is on its way already.
    await builder.begun.wait()
    builder.may_go_on.set()
    assert await lane.optimise()
    assert (lane.unindexed(), shards(tmp_path)) == (0, ["shard-3"])
    await lane.close()


async def test_deletions_count_as_work(lane: ServedLane, builder: Builder) -> None:
    await put(lane, 1, 1, 20)
    builder.may_go_on.set()
    assert await lane.optimise()
    assert not await lane.optimise()
    await put(lane, 1, 2, 0)
    builder.may_go_on.set()
    assert await lane.optimise()


async def test_closing_ends_an_optimisation(lane: ServedLane, builder: Builder, tmp_path: Path) -> None:
    await put(lane, 1, 1, 20)
    optimising = asyncio.create_task(lane.optimise())
    await builder.begun.wait()
    await lane.close()
    assert not await optimising
    assert shards(tmp_path) == ["shard-1"]
    assert editions(opened(tmp_path, builder)) == {1: 20}


async def test_a_copy_whose_journal_failed_never_takes_over(
    lane: ServedLane, builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(lane, 1, 1, 20)
    optimising = asyncio.create_task(lane.optimise())
    await builder.begun.wait()
    assert lane._journal is not None
    lane._journal.close()
    monkeypatch.setattr(lane, "_journal", _FullDisk())
    await put(lane, 2, 2, 5)
    assert not await optimising
    assert editions(lane) == {1: 20, 2: 5}
    assert shards(tmp_path) == ["shard-1"]


class _FullDisk:
    def write(self, _: bytes) -> int:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        raise OSError(28, "No space left on device")


async def test_a_copy_that_cannot_take_over_is_removed(
    lane: ServedLane, builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(lane, 1, 1, 20)
    optimising = asyncio.create_task(lane.optimise())
    await builder.begun.wait()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("services.index.adapters.edge_engine.served_lane._write_current", full)
        builder.may_go_on.set()
        with pytest.raises(OSError, match="No space"):
            await optimising
    assert (editions(lane), shards(tmp_path)) == ({1: 20}, ["shard-1"])
    builder.may_go_on.set()
    assert await lane.optimise()
    assert (editions(lane), shards(tmp_path)) == ({1: 20}, ["shard-2"])


async def test_a_dropped_lane_leaves_nothing(lane: ServedLane, builder: Builder, tmp_path: Path) -> None:
    await put(lane, 1, 1, 20)
    await lane.commit(3)
    optimising = asyncio.create_task(lane.optimise())
    await builder.begun.wait()
    await lane.drop()
    assert not await optimising
    assert not (tmp_path / "lane").exists()
    again = opened(tmp_path, builder)
    assert (again.dimension, again.position, editions(again)) == (DIMENSION, 0, {})
    await again.close()


async def test_leftovers_of_a_crash_are_removed_and_count_for_nothing(tmp_path: Path, builder: Builder) -> None:
    lane = opened(tmp_path, builder)
    await put(lane, 1, 1, 3)
    await lane.commit(4)
    await lane.close()
    folder = tmp_path / "lane"
    shutil.copytree(folder / "shard-1", folder / "shard-2")
    (folder / "shard-2" / "edge_config.json").unlink()
    (folder / "journal").write_bytes(b"half a fra")
    (folder / "current.new").write_text("{")
    again = opened(tmp_path, builder)
    assert (editions(again), again.position) == ({1: 3}, 4)
    assert shards(tmp_path) == ["current.new", "shard-1"]
    await again.close()


async def test_without_a_shard_that_counts_everything_comes_again(tmp_path: Path, builder: Builder) -> None:
    lane = opened(tmp_path, builder)
    await put(lane, 1, 1, 3)
    await lane.commit(4)
    await lane.close()
    (tmp_path / "lane" / "current.json").unlink()
    again = opened(tmp_path, builder)
    assert (editions(again), again.position) == ({}, 0)
    await again.close()


@pytest.mark.parametrize("part", ["segments", "wal"])
async def test_a_shard_without_its_data_is_corrupt_not_empty(tmp_path: Path, builder: Builder, part: str) -> None:
    lane = opened(tmp_path, builder)
    await put(lane, 1, 1, 3)
    await lane.close()
    shutil.rmtree(tmp_path / "lane" / "shard-1" / part)
    with pytest.raises(LaneError, match=part) as refused:
        opened(tmp_path, builder)
    assert refused.value.code == "corrupt"


async def test_another_layout_is_corrupt(tmp_path: Path, builder: Builder) -> None:
    (tmp_path / "lane").mkdir()
    (tmp_path / "lane" / "current.json").write_text('{"layout": "vector-0"}')
    with pytest.raises(LaneError, match="layout") as refused:
        opened(tmp_path, builder)
    assert refused.value.code == "corrupt"


async def test_the_log_is_flushed_before_it_grows_large(
    lane: ServedLane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, builder: Builder
) -> None:
    monkeypatch.setattr("services.index.adapters.edge_engine.served_lane._FLUSH_AFTER", 10)
    await put(lane, 1, 1, 20)
    await lane.commit(1)
    assert lane._unflushed == 0
    await put(lane, 2, 2, 2)
    await lane.commit(2)
    assert lane._unflushed == 3
    await lane.close()
    assert editions(opened(tmp_path, builder)) == {1: 20, 2: 2}


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_rewrite_leaves_nothing_of_what_was_deleted(lane: ServedLane, builder: Builder, tmp_path: Path) -> None:
    gone = f"{1:032x}".encode()
    await put(lane, 1, 1, 20)
    await put(lane, 2, 2, 20)
    await put(lane, 1, 3, 0)
    await lane.commit(3)
    builder.may_go_on.set()
    assert await lane.optimise()
    # The log's files keep what an optimised shard has lost long ago.
    assert gone in bytes_of(tmp_path)
    rewriting = asyncio.create_task(lane.rewrite())
    await builder.begun.wait()
    await put(lane, 3, 4, 7)
    await lane.commit(4)
    builder.may_go_on.set()
    await rewriting
    assert gone not in bytes_of(tmp_path)
    assert shards(tmp_path) == ["shard-3"]
    assert editions(lane) == {2: 20, 4: 7}
    await put(lane, 2, 5, 1)
    await lane.commit(5)
    await lane.close()
    again = opened(tmp_path, builder)
    assert (editions(again), again.position) == ({4: 7, 5: 1}, 5)
    await again.close()


async def test_a_rewrite_that_fails_or_is_cut_off_says_so(lane: ServedLane, builder: Builder, tmp_path: Path) -> None:
    await put(lane, 1, 1, 3)
    builder.failure = RuntimeError("no room")
    builder.may_go_on.set()
    with pytest.raises(RuntimeError, match="no room"):
        await lane.rewrite()
    assert (shards(tmp_path), editions(lane)) == (["shard-1"], {1: 3})
    builder.failure = None
    rewriting = asyncio.create_task(lane.rewrite())
    await builder.begun.wait()
    await lane.close()
    with pytest.raises(LaneError, match="closed"):
        await rewriting
    assert shards(tmp_path) == ["shard-1"]
