"""Small batches that follow each other at once rest; others never do."""

from __future__ import annotations

import pytest

from services.ingest.handlers import Pace


class Time:
    """A clock that moves only when told."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


async def run(pace: Pace, time: Time, size: int, work_s: float) -> None:
    async with pace.batch(size):
        time.now += work_s


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def pace(time: Time) -> Pace:
    return Pace(clock=time.clock, sleep=time.sleep)


async def test_a_small_batch_right_after_another_rests_twice_as_long_as_that_took(pace: Pace, time: Time) -> None:
    await run(pace, time, 1, 0.01)
    assert time.slept == []
    await run(pace, time, 1, 0.01)
    assert time.slept == [0.02]


async def test_a_rest_is_at_most_50_ms(pace: Pace, time: Time) -> None:
    await run(pace, time, 500, 3.0)
    await run(pace, time, 99, 0.0)
    assert time.slept == [0.05]


async def test_a_large_batch_never_waits(pace: Pace, time: Time) -> None:
    await run(pace, time, 1, 0.01)
    await run(pace, time, 100, 0.01)
    assert time.slept == []


async def test_who_writes_now_and_then_never_waits(pace: Pace, time: Time) -> None:
    await run(pace, time, 1, 0.01)
    time.now += 0.021
    await run(pace, time, 1, 0.01)
    assert time.slept == []


async def test_time_that_already_passed_counts_as_rest(pace: Pace, time: Time) -> None:
    await run(pace, time, 1, 0.01)
    time.now += 0.015
    await run(pace, time, 1, 0.01)
    assert time.slept == [0.005]


async def test_a_batch_that_fails_leaves_no_rest_behind(pace: Pace, time: Time) -> None:
    with pytest.raises(ValueError, match="broken"):
        async with pace.batch(1):
            raise ValueError("broken")
    await run(pace, time, 1, 0.01)
    assert time.slept == []
