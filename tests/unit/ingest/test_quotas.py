"""Quotas: what is refused, what is counted, and turns between crates."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from services.ingest.commands.quotas import Limits, Quotas
from services.ingest.domain.values import Usage
from services.ingest.ports import Tables
from services.kernel.errors import Exhausted
from services.kernel.turns import FairTurns

ONE = Usage(1, 10)


class Counted:
    """Tables that count."""

    def __init__(self) -> None:
        self.usage_now = Usage(0, 0)
        self.asked = 0

    async def usage(self, _crate_id: str) -> Usage:
        self.asked += 1
        return self.usage_now


class World:
    """Quotas on a clock of the test's own."""

    def __init__(self, **limits: int) -> None:
        self.now = 100.0
        self.tables = Counted()
        self.quotas = Quotas(tables=cast(Tables, self.tables), limits=Limits(**limits), clock=lambda: self.now)

    async def put(self, wanted: Usage = ONE, *, taken: bool = True) -> None:
        async with self.quotas.room("main", wanted) as room:
            room.taken = taken


async def test_documents_and_bytes_are_bounded_and_the_refusal_says_what_to_do() -> None:
    world = World(documents=2, size_bytes=100)
    await world.put()
    await world.put(taken=False)
    await world.put()
    with pytest.raises(Exhausted, match=r"has 2 documents, its quota is 2 \(crate_documents\): nothing was written"):
        await world.put()
    await world.put(Usage(0, 80))
    with pytest.raises(Exhausted, match=r"holds 100 bytes and this put adds 1, .* \(crate_bytes\)"):
        await world.put(Usage(0, 1))
    await world.put(Usage(0, 0))
    assert world.tables.asked == 1


async def test_what_is_being_written_counts() -> None:
    world = World(documents=1)
    async with world.quotas.room("main", ONE):
        with pytest.raises(Exhausted):
            await world.put()
    await world.put()


async def test_a_refusal_rests_on_a_fresh_count() -> None:
    world = World(documents=1)
    await world.put()
    with pytest.raises(Exhausted):
        await world.put()
    # Erased meanwhile.
    world.tables.usage_now = Usage(0, 0)
    world.now += 1
    await world.put()
    world.tables.usage_now = Usage(5, 0)
    world.now += 31
    with pytest.raises(Exhausted, match="has 5 documents"):
        await world.put()


async def test_no_limit_counts_but_never_refuses() -> None:
    world = World()
    for _ in range(3):
        await world.put(Usage(10**9, 10**15))


async def test_puts_in_flight_are_bounded_by_crate() -> None:
    world = World(puts_in_flight=2, turns=1)
    gate = asyncio.Event()
    done: list[str] = []

    async def put(crate: str) -> None:
        async with world.quotas.turn(crate):
            await gate.wait()
            done.append(crate)

    running = [asyncio.create_task(put("a")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Exhausted, match="has 2 puts in flight"):
        await put("a")
    running.append(asyncio.create_task(put("b")))
    gate.set()
    await asyncio.gather(*running)
    # One turn for all: the other crate isn't behind the whole queue.
    assert done == ["a", "b", "a"]
    await put("a")


async def test_turns_are_forgotten_with_their_last_user() -> None:
    turns = FairTurns(total=2, per_crate=1)
    order: list[int] = []

    async def take(number: int) -> None:
        async with turns.of("a"):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(take(number) for number in range(3)))
    assert order == [0, 1, 2]
    assert not turns._crates._keys
