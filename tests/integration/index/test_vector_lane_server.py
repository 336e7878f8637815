"""What the engine answers to each request, served in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from services.index.adapters.edge_engine import frames
from services.index.adapters.edge_engine.frames import Header, Step
from services.index.adapters.edge_engine.server import EngineServer
from services.index.adapters.vector_engine_process import EngineConnection
from services.index.domain.force import NEVER
from services.kernel.errors import Conflict, Corrupt, Rejected, Unavailable

KEY: Header = {"crate": "main", "generation": 1, "dimension": 64}
ROWS = np.eye(20, 64, dtype=np.float32)
SEARCH: Header = {"op": "search", "kind": "chunk", "forms": (), "document_ids": (), "source_domains": (), "limit": 3}


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[EngineConnection]:
    engine = EngineServer(root=tmp_path / "lanes", optimise_at=1000)
    server = await asyncio.start_unix_server(engine.serve, path=tmp_path / "socket")
    made = EngineConnection(*await asyncio.open_unix_connection(tmp_path / "socket"))
    yield made
    made.close()
    server.close()
    await engine.close()


async def filled(connection: EngineConnection) -> None:
    records = tuple((1, i, "chunk", "text", "here", (0, NEVER, 1, 1, 1)) for i in range(20))
    step = Step("a" * 32, 1, 1, ("chunk", "document"), records, ROWS, last=True)
    await connection.send(frames.encode_steps([step], {"op": "steps", **KEY}))
    await connection.call({"op": "commit", **KEY, "position": 5})


async def test_a_lanes_life(connection: EngineConnection) -> None:
    assert await connection.call({"op": "open", **KEY}) == {"position": 0}
    await filled(connection)
    found = await connection.call({**SEARCH, **KEY}, ROWS[7].tobytes())
    assert [hit[:3] for hit in found["hits"]] == [["a" * 32, 1, ordinal] for ordinal in (7, 0, 1)]
    assert await connection.call({"op": "count", **KEY, "kind": None}) == {"count": 20}
    assert await connection.call({"op": "count", **KEY, "kind": "document"}) == {"count": 0}
    assert await connection.call({"op": "status", **KEY}) == {"unindexed": 20, "optimising": False, "position": 5}
    assert await connection.call({"op": "optimise", **KEY}) == {"optimised": True}
    assert await connection.call({"op": "status", **KEY}) == {"unindexed": 0, "optimising": False, "position": 5}
    for _ in range(2):
        assert await connection.call({"op": "close", **KEY}) == {}
    assert await connection.call({"op": "open", **KEY}) == {"position": 5}
    assert await connection.call({"op": "drop", **KEY}) == {}
    assert await connection.call({"op": "open", **KEY}) == {"position": 0}


@pytest.mark.parametrize(
    ("header", "failure"),
    [
        ({"op": "nothing"}, Rejected),
        ({"op": "open", "crate": "../x", "generation": 1, "dimension": 64}, Rejected),
        ({"op": "open", "crate": "main", "generation": 0, "dimension": 64}, Rejected),
        ({"op": "open", "crate": "main", "generation": 1, "dimension": 65}, Conflict),
        ({"op": "open"}, Unavailable),
        ({**SEARCH, **KEY}, Rejected),
    ],
)
async def test_bad_requests_are_answered(
    connection: EngineConnection, header: Header, failure: type[Exception]
) -> None:
    await filled(connection)
    with pytest.raises(failure, match="vector engine"):
        await connection.call(header)
    assert await connection.call({"op": "count", **KEY, "kind": None}) == {"count": 20}


async def test_vectors_of_another_dimension_are_rejected(connection: EngineConnection) -> None:
    await filled(connection)
    with pytest.raises(Rejected, match="imension"):
        await connection.call({**SEARCH, **KEY}, ROWS[0, :9].tobytes())


async def test_a_damaged_lane_is_corrupt(connection: EngineConnection, tmp_path: Path) -> None:
    await filled(connection)
    await connection.call({"op": "close", **KEY})
    (tmp_path / "lanes" / "main" / "1" / "vector" / "position.json").write_text("[]")
    with pytest.raises(Corrupt, match="layout"):
        await connection.call({"op": "open", **KEY})


async def test_an_optimiser_that_fails_is_reported(
    connection: EngineConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(connection)
    monkeypatch.setattr("services.index.adapters.edge_engine.server._OPTIMISER", "services.no_such_module")
    with pytest.raises(Unavailable, match="optimiser"):
        await connection.call({"op": "optimise", **KEY})
    monkeypatch.undo()
    assert await connection.call({"op": "optimise", **KEY}) == {"optimised": True}


async def test_closing_ends_the_optimisers_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A module that runs until it is ended stands in for a build that takes minutes.
    monkeypatch.setattr("services.index.adapters.edge_engine.server._OPTIMISER", "tests.integration.index.endless")
    engine = EngineServer(root=tmp_path / "lanes", optimise_at=10)
    server = await asyncio.start_unix_server(engine.serve, path=tmp_path / "socket")
    connection = EngineConnection(*await asyncio.open_unix_connection(tmp_path / "socket"))
    await filled(connection)
    assert (await connection.call({"op": "status", **KEY}))["optimising"]
    await asyncio.sleep(0.3)
    await engine.close()
    connection.close()
    server.close()
    left = sorted(path.name for path in (tmp_path / "lanes" / "main" / "1" / "vector").iterdir())
    assert left == ["current.json", "position.json", "shard-1"]
