"""When lanes may be written anew from the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from services.index.domain.content import ShownRevision
from services.index.domain.generations import Generation, GenerationStart, GenerationStatus
from services.index.domain.records import KeywordChange
from services.index.gate import Gate
from services.index.rebuild import LaneRebuilder
from services.kernel.errors import Unavailable
from services.kernel.scrub import Erasure

GENERATION = Generation(
    start=GenerationStart(
        generation=1,
        model_id="m",
        dimension=4,
        model_fingerprint="f",
        retrieval_strategy="standard",
        prompt_version="",
        started_at=datetime(2024, 5, 1, tzinfo=UTC),
        position=1,
    ),
    status=GenerationStatus.ACTIVE,
    lane_position=1,
)
ERASURES = [Erasure(1, "main", "d", 1), Erasure(2, "main", "e", 1)]


@dataclass
class World:
    """Lanes and rows that know their position and what was asked of them."""

    rows: int
    lane: int
    gate: Gate = field(default_factory=Gate)
    done: list[str] = field(default_factory=list)

    async def position(self) -> int:
        return self.rows

    async def generations(self, _crate_id: str) -> tuple[Generation, ...]:
        return (GENERATION,)

    async def shown(self, *_: object) -> tuple[ShownRevision, ...]:
        return ()


class Lane:
    """Both lanes, and what opens them."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name

    async def open(self, *_: object) -> Lane:
        return self

    async def position(self) -> int:
        return self.world.lane

    async def rewrite(self, pages: AsyncIterator[Sequence[KeywordChange]] | None = None) -> None:
        if pages is not None:
            assert self.world.gate.changing.locked()
            assert [page async for page in pages] == []
        self.world.done.append(self.name)


def rebuilder(world: World) -> LaneRebuilder:
    world.gate.open()
    parts = {
        "bus": None,
        "loader": None,
        "tables": world,
        "keyword_lanes": Lane(world, "keyword"),
        "vector_lanes": Lane(world, "vector"),
    }
    return LaneRebuilder(**cast("dict[str, Any]", parts), gate=world.gate, batch_records=10)


async def test_a_crate_is_written_once_for_all_its_erasures() -> None:
    world = World(rows=8, lane=8)
    await rebuilder(world).scrub(ERASURES)
    assert world.done == ["keyword", "vector"]
    assert not world.gate.changing.locked()


async def test_a_lane_that_is_ahead_of_the_rows_isnt_filled_from_them() -> None:
    world = World(rows=8, lane=9)
    with pytest.raises(Unavailable, match="behind"):
        await rebuilder(world).scrub(ERASURES)
    assert world.done == []
    assert not world.gate.changing.locked()
