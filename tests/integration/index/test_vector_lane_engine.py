"""The engine's process: it dies, it is killed, its owner is killed, and nothing is lost or left behind."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from services.index.adapters.edge_engine.frames import Header
from services.index.adapters.vector_engine_process import EngineConnection, VectorEngineProcess
from services.index.adapters.vector_lane_edge import EdgeVectorLane, EdgeVectorLanes
from services.index.domain.records import LaneFilter, VectorChange
from services.kernel.errors import Corrupt, Rejected, Unavailable
from tests.integration.index.lane_records import DIMENSION, direction, document, vectors

EAST = direction(1)
# Enough that building its index takes a while, little enough for a test.
MANY = 2000


def engine_of(folder: Path, *, optimise_at: int = 1_000_000) -> VectorEngineProcess:
    return VectorEngineProcess(root=folder / "lanes", runtime_dir=folder / "run", optimise_at=optimise_at)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[VectorEngineProcess]:
    engine = engine_of(tmp_path)
    yield engine
    await engine.stop()


@pytest.fixture
async def lane(engine: VectorEngineProcess) -> EdgeVectorLane:
    return await EdgeVectorLanes(engine=engine).open("main", 1, DIMENSION)


def many(count: int = MANY, *, revision: int = 1) -> list[VectorChange]:
    rows = np.random.default_rng(revision).standard_normal((count, DIMENSION)).astype(np.float32)
    return [vectors(n, *rows[n * 10 : n * 10 + 10], revision=revision) for n in range(count // 10)]


def kill(engine: VectorEngineProcess) -> int:
    assert engine.pid is not None
    pid = engine.pid
    os.kill(pid, signal.SIGKILL)
    return pid


def running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


async def gone(pid: int, timeout_s: float = 20) -> None:
    async with asyncio.timeout(timeout_s):
        while running(pid):  # noqa: ASYNC110  (a process of another process has no event to wait for)
            await asyncio.sleep(0.05)


async def test_a_killed_engine_is_started_again_with_everything_acknowledged(
    engine: VectorEngineProcess, lane: EdgeVectorLane
) -> None:
    await lane.replace(many(500), 1)
    await lane.replace([vectors(3, EAST, revision=2)], 2)
    before = await lane.search(EAST, LaneFilter(), 20)
    killed = kill(engine)
    assert await lane.search(EAST, LaneFilter(), 20) == before
    assert engine.is_alive()
    assert engine.pid != killed
    assert await lane.count() == 500 - 10 + 1
    kill(engine)
    await lane.replace([vectors(3, EAST, revision=3)], 3)
    assert (await lane.search(EAST, LaneFilter(), 1))[0].revision == 3


async def test_an_engine_that_is_killed_while_it_works_finishes_the_batch(
    engine: VectorEngineProcess, lane: EdgeVectorLane
) -> None:
    draw = random.Random(5)
    for revision in range(1, 4):
        replacing = asyncio.create_task(lane.replace(many(revision=revision), revision))
        await asyncio.sleep(draw.uniform(0, 0.3))
        kill(engine)
        await replacing
        assert await lane.count() == MANY
        assert {hit.revision for hit in await lane.search(EAST, LaneFilter(), 500)} == {revision}
        assert (await lane.status())["position"] == revision


async def test_an_engine_that_dies_again_and_again_makes_the_call_fail_not_hang(
    engine: VectorEngineProcess, lane: EdgeVectorLane
) -> None:
    killed = []

    async def deadly(connection: EngineConnection) -> Header:
        killed.append(kill(engine))
        return await connection.call({"op": "ping"})

    with pytest.raises(Unavailable, match="died twice"):
        await engine.run(deadly)
    assert len(set(killed)) == 2
    await lane.replace(many(100), 1)
    assert await lane.count() == 100


async def test_an_engine_that_hangs_makes_the_call_fail_and_is_ended(
    engine: VectorEngineProcess, lane: EdgeVectorLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lane.replace(many(100), 1)
    pid = engine.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(Unavailable, match="in time"):
        await engine.run(lambda c: c.call({"op": "ping"}, timeout_s=0.2))
    monkeypatch.setattr("services.index.adapters.vector_engine_process._STOP_TIMEOUT_S", 0.2)
    await engine.stop()
    assert not running(pid)
    await engine.start()
    assert await lane.count() == 100


async def test_a_lost_connection_is_opened_again(
    engine: VectorEngineProcess, lane: EdgeVectorLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lane.replace(many(100), 1)
    pid = engine.pid
    monkeypatch.setattr("services.index.adapters.vector_engine_process._DEATH_NOTICE_S", 0.1)
    for connection in engine._idle:
        connection.close()
    assert await lane.count() == 100
    assert engine.pid == pid


@pytest.mark.parametrize("moment", [0.1, 0.7])
async def test_killed_while_optimising_the_lane_is_whole(tmp_path: Path, moment: float) -> None:
    engine = engine_of(tmp_path)
    lane = await EdgeVectorLanes(engine=engine).open("main", 1, DIMENSION)
    await lane.replace(many(), 1)
    optimising = asyncio.create_task(lane.optimise())
    await asyncio.sleep(moment)
    children = _children(engine)
    kill(engine)
    # The call comes again after the death, on the new engine.
    await optimising
    await lane.replace([vectors(1, EAST, revision=2)], 2)
    assert await lane.count() == MANY - 10 + 1
    assert (await lane.search(EAST, LaneFilter(), 1))[0].revision == 2
    for child in children:
        await gone(child)
    await engine.stop()
    left = {path.name for path in (tmp_path / "lanes" / "main" / "1" / "vector").iterdir()}
    assert len(left) == 3
    assert left > {"current.json", "position.json"}


async def test_a_killed_optimiser_costs_nothing_but_the_attempt(
    engine: VectorEngineProcess, lane: EdgeVectorLane
) -> None:
    await lane.replace(many(), 1)
    optimising = asyncio.create_task(lane.optimise())
    async with asyncio.timeout(30):
        while not (children := _children(engine)):  # noqa: ASYNC110  (another process's child)
            await asyncio.sleep(0.01)
    os.kill(children[0], signal.SIGKILL)
    with pytest.raises(Unavailable, match="optimiser"):
        await optimising
    assert await lane.count() == MANY
    assert await lane.optimise()
    assert (await lane.status())["unindexed"] == 0


async def test_it_optimises_by_itself_while_documents_keep_coming(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, optimise_at=1000)
    lane = await EdgeVectorLanes(engine=engine).open("main", 1, DIMENSION)
    position = 1
    await lane.replace(many(), position)
    async with asyncio.timeout(60):
        while (await lane.status())["unindexed"] >= 1000 or position < 5:
            position += 1
            await lane.replace([vectors(n, EAST, revision=position) for n in range(position)], position)
            # The optimiser gets only what time is left.
            await asyncio.sleep(0.2)
    assert await lane.count() == MANY - 10 * position + position
    hits = await lane.search(EAST, LaneFilter(document_ids=(document(0),)), 5)
    assert [hit.revision for hit in hits] == [position]
    await engine.stop()


async def test_the_engine_ends_with_its_owner(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, sys
        from pathlib import Path
        from tests.integration.index.test_vector_lane_engine import EdgeVectorLanes, DIMENSION, engine_of, many

        async def main():
            engine = engine_of(Path(sys.argv[1]), optimise_at=1000)
            lane = await EdgeVectorLanes(engine=engine).open("main", 1, DIMENSION)
            for position in range(1, 1000):
                await lane.replace(many(1000, revision=position), position)
                print(engine.pid, position, flush=True)

        asyncio.run(main())
    """)
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    acknowledged = 0
    for _ in range(3):
        pid, acknowledged = map(int, (await owner.stdout.readline()).split())
    owner.kill()
    # A new owner may come before the old engine has let go.
    engine = engine_of(tmp_path)
    lane = await EdgeVectorLanes(engine=engine).open("main", 1, DIMENSION)
    assert await lane.position() >= acknowledged
    assert not running(pid)
    await owner.wait()
    await lane.replace(many(1000, revision=2000), 2000)
    assert {hit.revision for hit in await lane.search(EAST, LaneFilter(), 500)} == {2000}
    assert await lane.count() == 1000
    await engine.stop()


async def test_damaged_files_are_reported_as_corrupt(engine: VectorEngineProcess, tmp_path: Path) -> None:
    lanes = EdgeVectorLanes(engine=engine)
    await (await lanes.open("main", 1, DIMENSION)).replace([vectors(1, EAST)], 1)
    await lanes.close()
    folder = tmp_path / "lanes" / "main" / "1" / "vector"
    for damaged in (folder / "shard-1" / "edge_config.json", folder / "position.json"):
        kept = damaged.read_bytes()
        damaged.write_text("{")
        await engine.start()
        with pytest.raises(Corrupt, match="vector engine"):
            await lanes.open("main", 1, DIMENSION)
        await engine.stop()
        damaged.write_bytes(kept)
    await engine.start()
    assert await (await lanes.open("main", 1, DIMENSION)).count() == 1


async def test_a_second_engine_on_a_folder_is_refused(
    lane: EdgeVectorLane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lane.replace([vectors(1, EAST)], 1)
    monkeypatch.setattr("services.index.adapters.vector_engine_process._START_TIMEOUT_S", 3)
    second = VectorEngineProcess(root=tmp_path / "lanes", runtime_dir=tmp_path / "run2")
    with pytest.raises(Unavailable, match="didn't start"):
        await second.start()
    await second.stop()
    assert await lane.count() == 1


async def test_a_deep_data_folder_needs_a_short_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    engine = engine_of(deep)
    lane = await EdgeVectorLanes(engine=engine).open("main", 1, DIMENSION)
    await lane.replace([vectors(1, EAST)], 1)
    socket = engine._socket
    assert socket is not None
    assert socket.exists()
    await engine.stop()
    assert not socket.parent.exists()


async def test_closing_does_not_start_a_dead_engine(engine: VectorEngineProcess, lane: EdgeVectorLane) -> None:
    await lane.replace(many(100), 1)
    pid = kill(engine)
    await gone(pid)
    async with asyncio.timeout(10):
        while engine.is_alive():  # noqa: ASYNC110  (what the process object knows has no event)
            await asyncio.sleep(0.01)
    await lane.close()
    assert not engine.is_alive()


async def test_a_stopped_engine_says_so_and_starts_again(engine: VectorEngineProcess, lane: EdgeVectorLane) -> None:
    await lane.replace([vectors(1, EAST)], 1)
    pid = engine.pid
    assert pid is not None
    await engine.stop()
    await engine.stop()
    assert not running(pid)
    with pytest.raises(Unavailable, match="stopped"):
        await lane.count()
    await engine.start()
    assert await lane.count() == 1


async def test_strangers_on_the_socket_do_no_harm(engine: VectorEngineProcess, lane: EdgeVectorLane) -> None:
    await lane.replace([vectors(1, EAST)], 1)
    assert engine._socket is not None
    assert engine._socket.stat().st_mode & 0o077 == 0
    for content in (b"", b"GET / HTTP/1.1\r\n\r\n" * 3, b"\x00" * 12, b"\xff" * 4096):
        _, writer = await asyncio.open_unix_connection(engine._socket)
        writer.write(content)
        writer.close()
    assert await engine.run(lambda c: c.call({"op": "ping"})) == {"pid": engine.pid}
    with pytest.raises(Rejected, match="no operation"):
        await engine.run(lambda c: c.call({"op": "eval"}))
    assert await lane.count() == 1


async def test_a_cancelled_call_does_not_mix_up_answers(lane: EdgeVectorLane) -> None:
    await lane.replace(many(1000), 1)
    for _ in range(5):
        searching = asyncio.create_task(lane.search(EAST, LaneFilter(), 500))
        await asyncio.sleep(0.002)
        searching.cancel()
        assert await lane.count() == 1000


def _children(engine: VectorEngineProcess) -> list[int]:
    pid = engine.pid
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []
