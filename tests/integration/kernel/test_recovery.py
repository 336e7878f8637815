"""Steps when things go wrong around them: instances, slow handlers, lost and changed consumers, drains."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
from affidavit.chunker.v1 import chunker_events_pb2
from affidavit.ingest.v1 import ingest_events_pb2
from nats.js import api
from nats.js.errors import NotFoundError

from services.kernel import steps, streams
from services.kernel.bus import Appended, Bus
from services.kernel.envelope import Event
from services.kernel.errors import Rejected
from services.kernel.steps import Step, StepRunner

COUNT = 120
CONSUMER = "chunker-chunk-main"


class Instance:
    """One process's part of a step, as a test sees it."""

    def __init__(self, bus: Bus, *, pause_s: float, concurrency: int = 4) -> None:
        self.bus = bus
        self.seen: list[str] = []
        self.finished: list[str] = []
        self.repeated: dict[str, list[bool]] = {}
        self._pause_s = pause_s
        step = Step(name="chunk", events=("DocumentIngested",), handle=self._handle, concurrency=concurrency)
        self.runner = StepRunner(bus=bus, steps=(step,))

    async def _handle(self, event: Event) -> None:
        self.seen.append(event.aggregate)
        self.repeated.setdefault(event.aggregate, []).append(event.repeated)
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
    await idle(ingest)
    await publish(ingest, 5)
    await idle(ingest)
    await ingest.js.delete_consumer("KNOWLEDGE", CONSUMER)
    await publish(ingest, 5, start=5)
    await until(lambda: set(instance.seen) == {f"d{number}" for number in range(10)})
    await idle(ingest)
    await instance.runner.stop(1)
    # Whether the work of the others stands can only be seen in the log.
    assert {name: instance.repeated[name] for name in ("d0", "d4")} == {"d0": [False, True], "d4": [False, True]}


async def test_what_the_broker_may_have_forgotten_is_repeated(
    ingest: Bus, buses: list[Bus], monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = Instance(buses[0], pause_s=0)
    await instance.runner.start()
    await idle(ingest)
    await publish(ingest, 1)
    await idle(ingest)
    monkeypatch.setattr(steps, "_REMEMBERED", timedelta(0))
    await publish(ingest, 1, start=1)
    await idle(ingest)
    await instance.runner.stop(1)
    assert instance.repeated == {"d0": [False], "d1": [True]}


@pytest.mark.parametrize(
    "change",
    [
        {"filter_subjects": ["affidavit.k.main.ingest.*.document_erased"]},
        {"filter_subjects": None, "filter_subject": "affidavit.k.main.ingest.*.document_erased"},
        {"headers_only": True},
        {"max_deliver": 1, "max_ack_pending": 1},
    ],
)
async def test_a_consumer_that_is_changed_while_it_runs_loses_nothing(
    ingest: Bus, buses: list[Bus], monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    monkeypatch.setattr(steps, "_FETCH_TIMEOUT_S", 0.3)
    instance = Instance(buses[0], pause_s=0)
    await instance.runner.start()
    await publish(ingest, 1)
    ours = await idle(ingest)
    await ingest.js.add_consumer("KNOWLEDGE", ours.evolve(**change))
    await publish(ingest, 3, start=1)
    erased = ingest_events_pb2.DocumentErased(document_id="d1", revision=1)
    await ingest.append(crate="main", aggregate="d9", message=erased, key="d9:erased")
    await until(lambda: {"d1", "d2", "d3"} <= set(instance.seen))
    async with asyncio.timeout(20):
        while True:
            found = await idle(ingest)
            if not steps._drift(found, ours):
                break
            await asyncio.sleep(0.05)
    await instance.runner.stop(1)
    assert await ingest.last(crate="main", service="chunker", aggregate="d1") is None


async def test_what_was_given_up_once_is_not_given_up_twice(
    ingest: Bus, buses: list[Bus], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_once = Bus._publish

    async def forgetful(bus: Bus, stream: str, subject: str, headers: dict[str, str], body: bytes) -> Appended:
        kept = {name: value for name, value in headers.items() if name != "Nats-Msg-Id"}
        return await publish_once(bus, stream, subject, kept, body)

    monkeypatch.setattr(Bus, "_publish", forgetful)
    seen: list[str] = []

    async def refuse(event: Event) -> None:
        seen.append(event.aggregate)
        raise Rejected("it can't be cut: send it again")

    runner = StepRunner(bus=buses[0], steps=(Step(name="chunk", events=("DocumentIngested",), handle=refuse),))
    await runner.start()
    await publish(ingest, 2)
    await ingest.js.publish("affidavit.k.main.ingest.bad.document_ingested", b"\xff\xff")
    await idle(ingest)
    position = await ingest.last_position()
    await ingest.js.delete_consumer("KNOWLEDGE", CONSUMER)
    await until(lambda: len(seen) == 4)
    await idle(ingest)
    await runner.stop(1)
    assert await ingest.last_position() == position == 7


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
