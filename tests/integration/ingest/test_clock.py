"""The clock: time as a fact, once in an interval for each crate that knows states."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import settings_pb2 as cfg
from affidavit.ingest.v1.ingest_events_pb2 import ClockAdvanced

from services.ingest.commands.clock import Clock
from services.ingest.ports import Log, Tables
from services.kernel.envelope import Event
from services.kernel.errors import Unavailable
from tests.integration.ingest.ingest_world import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOON = datetime(2030, 1, 2, 12, tzinfo=UTC)


class Crates:
    """Tables that know some crates."""

    def __init__(self, *crates: tuple[str, str]) -> None:
        self.crates_by_id = crates

    async def crates(self) -> Sequence[Any]:
        """Crates with their profiles."""
        return [
            SimpleNamespace(crate=SimpleNamespace(crate_id=name, settings=SimpleNamespace(profile=profile)))
            for name, profile in self.crates_by_id
        ]


def clock(world: World, *crates: tuple[str, str], now: datetime, log: object = None) -> Clock:
    """A clock that stands still, on the world's log."""
    return Clock(
        log=cast(Log, log or world.buses["ingest"]),
        tables=cast(Tables, Crates(*crates)),
        interval_s=60,
        clock=lambda: now,
    )


async def told(world: World, crate: str) -> Event | None:
    """The crate's last tick."""
    return await world.buses["ingest"].last(crate=crate, service="ingest", aggregate="clock")


async def time_of(world: World, crate: str) -> datetime:
    """What the crate's last tick says."""
    event = await told(world, crate)
    assert event is not None
    assert isinstance(event.message, ClockAdvanced)
    return event.message.now.ToDatetime(tzinfo=UTC)


async def test_it_ticks_once_in_an_interval_and_never_backwards(world: World, client: Client) -> None:
    crate = client.crate
    for offset, ticks in ((0, 1), (59, 0), (60, 1), (-3600, 0), (61, 0), (180, 1)):
        assert await clock(world, (crate, "v3.1"), now=NOON + timedelta(seconds=offset)).tick() == ticks
    assert await time_of(world, crate) == NOON + timedelta(seconds=180)


async def test_profile_v1_has_no_clock(world: World, client: Client) -> None:
    assert await clock(world, (client.crate, "v1"), now=NOON).tick() == 0
    assert await told(world, client.crate) is None


async def test_of_several_instances_one_ticks(world: World, client: Client) -> None:
    for minute in range(3):
        now = NOON + timedelta(minutes=minute)
        clocks = [clock(world, (client.crate, "v3.1"), now=now + timedelta(milliseconds=n)) for n in range(4)]
        assert sum(await asyncio.gather(*(one.tick() for one in clocks))) == 1


async def test_a_log_that_is_away_is_asked_again(world: World, client: Client) -> None:
    class Away:
        asked = 0

        async def last(self, **wanted: Any) -> Event | None:
            self.asked += 1
            if self.asked < 3:
                raise Unavailable("the log doesn't answer: retry")
            return await world.buses["ingest"].last(**wanted)

        async def append(self, **wanted: Any) -> object:
            return await world.buses["ingest"].append(**wanted)

    away = Away()
    slow = Clock(
        log=cast(Log, away),
        tables=cast(Tables, Crates((client.crate, "v3.1"))),
        interval_s=0.2,
        clock=lambda: datetime.now(UTC),
    )
    running = asyncio.create_task(slow.run())
    async with asyncio.timeout(10):
        event = None
        while event is None:
            event = await told(world, client.crate)
            await asyncio.sleep(0.02)
    running.cancel()
    assert away.asked >= 3


async def test_the_role_ticks_by_itself_once_the_profile_knows_states(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFFIDAVIT_CLOCK_INTERVAL_S", "0.3")
    await world.node.stop()
    await world.restart_stopped()
    settings = cfg.CrateSettings(profile="v3.1")
    async with Client.connect(world.address, crate=client.crate) as again:
        await again.stub.ConfigureCrate(pb.ConfigureCrateRequest(crate_id=client.crate, settings=settings))
    seen: set[int] = set()
    async with asyncio.timeout(15):
        while len(seen) < 3:
            event = await told(world, client.crate)
            seen |= {event.position} if event else set()
            await asyncio.sleep(0.02)
    assert datetime.now(UTC) - await time_of(world, client.crate) < timedelta(seconds=10)
