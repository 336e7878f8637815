"""What a past position knew otherwise, beside what the lanes hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from services.index.adapters.schema_postgres import MIGRATIONS
from services.index.codec.living import decode_spans
from services.index.domain.force import Force, instant
from services.index.domain.living.changes import Tick, counts
from services.index.domain.living.values import Fact
from services.index.domain.records import LaneFilter, Reach, Within
from services.kernel.runner import Context
from tests.integration.index.test_living_states import HISTORY, ONE, THREE, TWO, World, at, put, states


class Past(World):
    """Compares what the lanes count with what was known."""

    async def counting(self, days: int, position: int) -> set[str]:
        """Documents with a revision that the lanes count then, with the differences that they are told."""
        also, without = await self.differences(days, position)
        rows = await self.database.pool.fetch("select * from living_timelines where known_until is null")
        asked = LaneFilter(reach=Reach.IN_FORCE, as_of=instant(at(days)), at=position)
        within = Within(replace(asked, also=tuple(also), without=tuple(without)))
        return {
            row["document_id"]
            for row in rows
            if within(
                (row["document_id"], row["revision"]),
                Force(
                    effective_from=instant(row["effective_at"]),
                    in_force_until=row["in_force_until"],
                    until_known_from=row["until_known_from"],
                    position=row["position"],
                ),
            )
        }

    async def in_force(self, days: int, position: int) -> set[str]:
        """Documents of which a revision was in force, as known then."""
        found = await self.database.pool.fetch(
            "select * from living_timelines where known_from <= $1 and (known_until is null or known_until > $1)",
            position,
        )
        return {row["document_id"] for row in found if counts(decode_spans(row["spans"]), at(days))}


@pytest.fixture
async def world(context_for: Callable[[str], Awaitable[Context]]) -> Past:
    context = await context_for("index")
    return Past(await context.database(MIGRATIONS))


async def test_what_was_superseded_once_since_needs_no_mention(world: Past) -> None:
    await world.tell(*HISTORY[:3])
    for position in (1, 2, 3):
        assert await world.differences(50, position) == (set(), set())
    assert [await world.counting(50, position) for position in (1, 2, 3)] == [{ONE}, {ONE, TWO}, {TWO}]
    await world.tell((4, put("d" * 32, 4, 0)), (5, states(ONE, "supersedes", "d" * 32, 5)))
    assert await world.counting(50, 4) == {TWO, "d" * 32}
    assert await world.counting(-1, 4) == set()


async def test_the_lanes_with_the_differences_say_what_was_known(world: Past) -> None:
    """Documents that were superseded, came back, were superseded at another time, and retired, at every position."""
    history: tuple[tuple[int, Fact | Tick], ...] = (
        *HISTORY,
        (10, states(THREE, "supersedes", TWO, 10)),
        (11, states(TWO, "supersedes", ONE, 11, days=45)),
        (12, states(TWO, "supersedes", ONE, 12, days=55)),
        (13, states(TWO, "supersedes", ONE, 13, withdrawn=True)),
        (14, states(ONE, "supersedes", TWO, 14, days=5)),
        (15, states(ONE, "supersedes", TWO, 15, withdrawn=True)),
    )
    for fact in history:
        await world.tell(fact)
    listed = 0
    for position in range(1, 16):
        for days in (-1, 0, 9, 10, 25, 40, 44, 45, 50, 55, 59, 60, 100):
            listed += sum(map(len, await world.differences(days, position)))
            assert await world.counting(days, position) == await world.in_force(days, position), (days, position)
    assert listed
