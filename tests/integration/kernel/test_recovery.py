"""Steps when things go wrong around them: instances, slow handlers, lost and changed consumers, drains."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from affidavit.chunker.v1 import chunker_events_pb2
from affidavit.ingest.v1 import ingest_events_pb2
from nats.js import api
from nats.js.errors import NotFoundError

from services.kernel import steps, streams
from services.kernel.bus import Bus
from services.kernel.envelope import Event
from services.kernel.steps import Step, StepRunner

COUNT = 120
CONSUMER = "chunker-chunk-main"


class Instance:
    """One process's part of a step, as a test sees it."""

    def __init__(self, bus: Bus, *, pause_s: float, concurrency: int = 4) -> None:
        self.bus = bus
        self.seen: list[str] = []
        self.finished: list[str] = []
        self._pause_s = pause_s
        step = Step(name="chunk", events=("DocumentIngested",), handle=self._handle, concurrency=concurrency)
        self.runner = StepRunner(bus=bus, steps=(step,))

    async def _handle(self, event: Event) -> None:
        self.seen.append(event.aggregate)
        await asyncio.sleep(self._pause_s)
        self.finished.append(event.aggregate)


@pytest.fixture
async def ingest(nats_url: str) -> AsyncIterator[Bus]:
    bus = await Bus.connect(nats_url, role="ingest")
    await bus.append(
        crate="main", aggregate="crate", message=ingest_events_pb2.CrateConfigured(revision=1), key="crate:1"
    )
    yield bus
    await bus.close()


@pytest.fixture
async def buses(nats_url: str) -> AsyncIterator[list[Bus]]:
    made = [await Bus.connect(nats_url, role="chunker") for _ in range(2)]
    yield made
    for bus in made:
        await bus.close()


async def publish(bus: Bus, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        message = ingest_events_pb2.DocumentIngested(document_id=f"d{number}", revision=1)
        await bus.append(crate="main", aggregate=f"d{number}", message=message, key=f"d{number}:1")


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(400):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("waited too long")


async def idle(bus: Bus, within_s: float = 20) -> api.ConsumerConfig:
    """Wait until the consumer is there and has handed out and settled everything."""
    async with asyncio.timeout(within_s):
        while True:
            with contextlib.suppress(NotFoundError):
                info = await bus.js.consumer_info("KNOWLEDGE", CONSUMER)
                if not info.num_pending and not info.num_ack_pending:
                    config: api.ConsumerConfig = info.config
                    return config
            await asyncio.sleep(0.05)


async def test_two_instances_share_the_load(ingest: Bus, buses: list[Bus]) -> None:
    pair = [Instance(bus, pause_s=0.02) for bus in buses]
    for instance in pair:
        await instance.runner.start()
    await publish(ingest, COUNT)
    await idle(ingest)
    for instance in pair:
        await instance.runner.stop(1)
    assert sorted(pair[0].seen + pair[1].seen) == sorted(f"d{number}" for number in range(COUNT))
    assert min(len(instance.seen) for instance in pair) >= COUNT / 5


async def test_a_handler_slower_than_the_acknowledgement_wait_is_run_once(
    ingest: Bus, buses: list[Bus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "ACK_WAIT_S", 1.0)
    pair = [Instance(bus, pause_s=2.5, concurrency=1) for bus in buses]
    for instance in pair:
        await instance.runner.start()
    # More than run at once: those that wait are kept alive as well.
    await publish(ingest, 4)
    await idle(ingest)
    for instance in pair:
        await instance.runner.stop(1)
    assert sorted(pair[0].seen + pair[1].seen) == [f"d{number}" for number in range(4)]


async def test_a_lost_consumer_is_made_again(ingest: Bus, buses: list[Bus]) -> None:
    instance = Instance(buses[0], pause_s=0)
    await instance.runner.start()
    await publish(ingest, 5)
    await idle(ingest)
    await ingest.js.delete_consumer("KNOWLEDGE", CONSUMER)
    await publish(ingest, 5, start=5)
    await until(lambda: set(instance.seen) == {f"d{number}" for number in range(10)})
    await instance.runner.stop(1)


async def test_a_changed_consumer_is_changed_back(ingest: Bus, buses: list[Bus]) -> None:
    instance = Instance(buses[0], pause_s=0)
    await instance.runner.start()
    ours = await idle(ingest)
    await instance.runner.stop(1)
    await ingest.js.add_consumer("KNOWLEDGE", ours.evolve(max_deliver=3, ack_wait=5.0))
    again = Instance(buses[1], pause_s=0)
    await again.runner.start()
    async with asyncio.timeout(20):
        while True:
            found = await idle(ingest)
            if found.max_deliver != 3:
                break
            await asyncio.sleep(0.05)
    await again.runner.stop(1)
    assert (found.max_deliver, found.ack_wait) == (ours.max_deliver, ours.ack_wait)


async def test_a_drain_finishes_what_runs_and_gives_back_what_waits(ingest: Bus, buses: list[Bus]) -> None:
    leaving, staying = Instance(buses[0], pause_s=1.0, concurrency=2), Instance(buses[1], pause_s=0)
    await leaving.runner.start()
    await publish(ingest, 8)
    await until(lambda: len(leaving.seen) == 2)
    began = asyncio.get_running_loop().time()
    await leaving.runner.stop(8)
    assert asyncio.get_running_loop().time() - began < 8
    assert sorted(leaving.seen) == sorted(leaving.finished)
    assert len(leaving.seen) == 2
    await staying.runner.start()
    await idle(ingest)
    await staying.runner.stop(1)
    assert sorted(leaving.seen + staying.seen) == [f"d{number}" for number in range(8)]


async def test_an_older_fact_is_found_behind_newer_ones(ingest: Bus) -> None:
    await publish(ingest, 2)
    for revision in (2, 3):
        message = ingest_events_pb2.DocumentIngested(document_id="d0", revision=revision)
        await ingest.append(crate="main", aggregate="d0", message=message, key=f"d0:{revision}")
    for revision in (1, 2, 3):
        assert await ingest.stands(crate="main", aggregate="d0", name="DocumentIngested", key=f"d0:{revision}")
    assert not await ingest.stands(crate="main", aggregate="d0", name="DocumentIngested", key="d1:1")
    assert not await ingest.stands(crate="main", aggregate="d9", name="DocumentIngested", key="d9:1")


async def test_a_fact_repeated_after_the_dedup_window_stands_once(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "DEDUP_WINDOW_S", 0.2)
    first = await Bus.connect(nats_url, role="chunker")
    fact = chunker_events_pb2.DocumentChunked(document_id="d1", revision=1)
    stands = await first.append_once(crate="main", aggregate="d1", message=fact, key="d1:1:chunked")
    await asyncio.sleep(1)
    # One instance remembers what it wrote, another doesn't.
    second = await Bus.connect(nats_url, role="chunker")
    for bus in (first, second):
        again = await bus.append_once(crate="main", aggregate="d1", message=fact, key="d1:1:chunked")
        assert (again.position, again.duplicate) == (stands.position, True)
    assert await first.last_position() == 1
    await first.close()
    await second.close()
