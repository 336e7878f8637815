"""The bus, steps and projections against a real nats-server and Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from affidavit.chunker.v1 import chunker_events_pb2
from affidavit.event.v1 import envelope_pb2
from affidavit.ingest.v1 import ingest_events_pb2

from services.kernel import db
from services.kernel.bus import Bus
from services.kernel.envelope import Event
from services.kernel.errors import Conflict, NotFound, Rejected, Unavailable
from services.kernel.projections import Projection, ProjectionRunner
from services.kernel.runner import Context
from services.kernel.steps import Step, StepRunner
from tests.conftest import ContextFactory


def ingested(document: str, revision: int = 1) -> ingest_events_pb2.DocumentIngested:
    return ingest_events_pb2.DocumentIngested(document_id=document, revision=revision)


async def test_append_checks_the_expected_position(nats_url: str) -> None:
    bus = await Bus.connect(nats_url, role="ingest")
    first = await bus.append(crate="main", aggregate="d1", message=ingested("d1"), key="k1", expected=0)
    await bus.append(crate="main", aggregate="d2", message=ingested("d2"), key="k2", expected=0)
    with pytest.raises(Conflict):
        await bus.append(crate="main", aggregate="d1", message=ingested("d1", 2), key="k3", expected=0)
    again = await bus.append(crate="main", aggregate="d1", message=ingested("d1", 2), key="k3", expected=first.position)
    assert again.position == 3
    last = await bus.last(crate="main", service="ingest", aggregate="d1")
    assert last is not None
    assert (last.position, last.key, last.name) == (3, "k3", "DocumentIngested")
    assert await bus.last(crate="main", service="ingest", aggregate="d9") is None
    assert await bus.last_position() == 3
    await bus.close()


async def test_repeated_append_stands_once(nats_url: str) -> None:
    bus = await Bus.connect(nats_url, role="chunker")
    fact = chunker_events_pb2.DocumentChunked(document_id="d1", revision=1)
    first = await bus.append_once(crate="main", aggregate="d1", message=fact, key="1:chunked")
    second = await bus.append_once(crate="main", aggregate="d1", message=fact, key="1:chunked")
    assert (second.position, second.duplicate) == (first.position, True)
    assert await bus.last_position() == 1
    await bus.close()


async def test_repeated_append_stands_once_when_the_dedup_window_is_over(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = await Bus.connect(nats_url, role="chunker")
    publish = bus.js.publish

    async def without_id(subject: str, body: bytes, *, headers: dict[str, str], stream: str) -> Any:
        kept = {name: value for name, value in headers.items() if name != "Nats-Msg-Id"}
        return await publish(subject, body, headers=kept, stream=stream)

    monkeypatch.setattr(bus.js, "publish", without_id)
    fact = chunker_events_pb2.DocumentChunked(document_id="d1", revision=1)
    positions = [
        (await bus.append_once(crate="main", aggregate="d1", message=fact, key=key)).position
        for key in ("1:chunked", "1:chunked", "2:chunked", "2:chunked", "2:chunked")
    ]
    assert positions == [1, 1, 2, 2, 2]
    assert await bus.last_position() == 2
    await bus.close()


async def test_reverting_content_is_a_fact_of_its_own(nats_url: str) -> None:
    bus = await Bus.connect(nats_url, role="ingest")
    for revision in (1, 2, 3):
        await bus.append(crate="main", aggregate="d1", message=ingested("d1", revision), key=f"{revision}:ingested")
    assert await bus.last_position() == 3
    await bus.close()


async def test_incarnation_survives_reconnecting(nats_url: str) -> None:
    first = await Bus.connect(nats_url, role="ingest")
    second = await Bus.connect(nats_url, role="index")
    assert first.incarnation() == second.incarnation()
    assert len(first.incarnation()) == 16
    await first.close()
    await second.close()


async def test_roles_that_start_at_once_agree_on_the_streams(nats_url: str) -> None:
    roles = ("ingest", "chunker", "embedder", "index")
    buses = await asyncio.gather(*(Bus.connect(nats_url, role=role) for role in roles))
    assert len({bus.incarnation() for bus in buses}) == 1
    for bus in buses:
        await bus.close()


async def configured(ingest: Context) -> None:
    """Steps serve the crates that the log knows."""
    message = ingest_events_pb2.CrateConfigured(revision=1)
    await ingest.bus.append(crate="main", aggregate="crate", message=message, key="crate:1")


async def until(condition: asyncio.Event) -> None:
    await asyncio.wait_for(condition.wait(), 20)


async def test_step_retries_what_may_pass_and_gives_up_what_cannot(context_for: ContextFactory) -> None:
    ingest, chunker = await context_for("ingest"), await context_for("chunker")
    seen: list[str] = []
    done = asyncio.Event()

    async def handle(event: Event) -> None:
        seen.append(event.aggregate)
        if event.aggregate == "wrong":
            raise Rejected("document wrong can't be chunked: send it again")
        if event.aggregate == "later" and seen.count("later") < 3:
            raise Unavailable("not yet")
        if set(seen) == {"wrong", "later", "fine"} and seen.count("later") == 3:
            done.set()

    await configured(ingest)
    runner = StepRunner(bus=chunker.bus, steps=(Step(name="chunk", events=("DocumentIngested",), handle=handle),))
    await runner.start()
    for name in ("wrong", "later", "fine"):
        await ingest.bus.append(crate="main", aggregate=name, message=ingested(name), key=f"{name}:1")
    await until(done)
    await asyncio.sleep(0.3)
    await runner.stop(1)
    failed = await ingest.bus.last(crate="main", service="chunker", aggregate="wrong")
    assert failed is not None
    assert isinstance(failed.message, envelope_pb2.TaskFailed)
    assert failed.message.reason == "document wrong can't be chunked: send it again"
    assert failed.message.position == 2
    assert seen.count("wrong") == 1
    info = await chunker.bus.js.consumer_info("KNOWLEDGE", "chunker-chunk-main")
    assert (info.num_ack_pending, info.num_pending) == (0, 0)


async def test_step_records_poison_and_goes_on(context_for: ContextFactory) -> None:
    ingest, chunker = await context_for("ingest"), await context_for("chunker")
    done = asyncio.Event()

    async def handle(event: Event) -> None:
        assert event.aggregate == "fine"
        done.set()

    await configured(ingest)
    runner = StepRunner(bus=chunker.bus, steps=(Step(name="chunk", events=("DocumentIngested",), handle=handle),))
    await runner.start()
    await ingest.bus.js.publish("affidavit.k.main.ingest.bad.document_ingested", b"\xff\xff")
    await ingest.bus.append(crate="main", aggregate="fine", message=ingested("fine"), key="1")
    await until(done)
    await asyncio.sleep(0.3)
    await runner.stop(1)
    failed = await ingest.bus.last(crate="main", service="chunker", aggregate="bad")
    assert failed is not None
    assert failed.message.code == "poison"  # type: ignore[attr-defined]  # the generic Message has no fields


async def test_step_handles_one_aggregate_at_a_time(context_for: ContextFactory) -> None:
    ingest, chunker = await context_for("ingest"), await context_for("chunker")
    running: set[str] = set()
    order: list[tuple[str, int]] = []
    done = asyncio.Event()

    async def handle(event: Event) -> None:
        assert event.aggregate not in running
        running.add(event.aggregate)
        await asyncio.sleep(0.01)
        running.discard(event.aggregate)
        order.append((event.aggregate, event.position))
        if len(order) == 20:
            done.set()

    for index in range(20):
        name = "even" if index % 2 == 0 else "odd"
        await ingest.bus.append(crate="main", aggregate=name, message=ingested(name, index), key=str(index))
    await configured(ingest)
    runner = StepRunner(bus=chunker.bus, steps=(Step(name="chunk", events=("DocumentIngested",), handle=handle),))
    await runner.start()
    await until(done)
    await runner.stop(1)
    for name in ("even", "odd"):
        positions = [position for aggregate, position in order if aggregate == name]
        assert positions == sorted(positions)


TABLE = "create table seen (position bigint primary key, aggregate text)"


async def test_projection_follows_in_order_and_resumes(context_for: ContextFactory) -> None:
    ingest, index = await context_for("ingest"), await context_for("index")
    database = await index.database((TABLE,))
    batches: list[int] = []

    async def apply(events: Sequence[Event]) -> None:
        batches.append(len(events))
        async with database.pool.acquire() as connection, connection.transaction():
            for event in events:
                await connection.execute("insert into seen values ($1, $2)", event.position, event.aggregate)
            await db.advance(connection, "seen", events[-1].position, index.bus.incarnation())

    projection = Projection(
        name="seen",
        events=("DocumentIngested",),
        apply=apply,
        position=lambda: database.position("seen", index.bus.incarnation()),
    )
    for number in range(700):
        await ingest.bus.append(crate="main", aggregate=f"d{number}", message=ingested(f"d{number}"), key="1")
    runner = ProjectionRunner(bus=index.bus, projection=projection)
    await runner.start()
    assert await runner.wait_for(700, 20)
    await runner.stop()
    last = await ingest.bus.append(crate="main", aggregate="late", message=ingested("late"), key="1")
    again = ProjectionRunner(bus=index.bus, projection=projection)
    await again.start()
    assert await again.wait_for(last.position, 20)
    await again.stop()
    rows = await database.pool.fetch("select position, aggregate from seen order by position")
    assert [row["position"] for row in rows] == list(range(1, 702))
    assert max(batches) > 100


async def test_projection_skips_only_what_can_never_be_applied(context_for: ContextFactory) -> None:
    ingest, index = await context_for("ingest"), await context_for("index")
    database = await index.database((TABLE,))

    async def apply(events: Sequence[Event]) -> None:
        if any(event.aggregate == "wrong" for event in events):
            raise Rejected("document wrong can't be indexed: ingest it again")
        async with database.pool.acquire() as connection, connection.transaction():
            for event in events:
                await connection.execute("insert into seen values ($1, $2)", event.position, event.aggregate)
            await db.advance(connection, "seen", events[-1].position, index.bus.incarnation())

    projection = Projection(
        name="seen",
        events=("DocumentIngested",),
        apply=apply,
        position=lambda: database.position("seen", index.bus.incarnation()),
    )
    for name in ("a", "wrong", "b"):
        await ingest.bus.append(crate="main", aggregate=name, message=ingested(name), key="1")
    runner = ProjectionRunner(bus=index.bus, projection=projection)
    await runner.start()
    assert await runner.wait_for(3, 20)
    await runner.stop()
    rows = await database.pool.fetch("select aggregate from seen order by position")
    assert [row["aggregate"] for row in rows] == ["a", "b"]
    failed = await ingest.bus.last(crate="main", service="index", aggregate="wrong")
    assert failed is not None
    assert failed.name == "TaskFailed"


@pytest.mark.parametrize("put_again", [False, True])
async def test_what_was_erased_meanwhile_is_nobody_s_failure(context_for: ContextFactory, *, put_again: bool) -> None:
    ingest, chunker = await context_for("ingest"), await context_for("chunker")
    working, erased, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handle(event: Event) -> None:
        if isinstance(event.message, ingest_events_pb2.DocumentErased) or event.key == "d1:2":
            return
        if event.aggregate == "last":
            done.set()
        working.set()
        await erased.wait()
        raise NotFound(f"blob of {event.aggregate} isn't there")

    step = Step(name="chunk", events=("DocumentIngested", "DocumentErased"), handle=handle)
    runner = StepRunner(bus=chunker.bus, steps=(step,))
    await runner.start()
    configured = ingest_events_pb2.CrateConfigured(revision=1)
    await ingest.bus.append(crate="main", aggregate="crate", message=configured, key="crate:1")
    await ingest.bus.append(crate="main", aggregate="d1", message=ingested("d1"), key="d1:1")
    await until(working)
    gone = ingest_events_pb2.DocumentErased(document_id="d1", revision=1)
    await ingest.bus.append(crate="main", aggregate="d1", message=gone, key="d1:erased")
    if put_again:
        await ingest.bus.append(crate="main", aggregate="d1", message=ingested("d1", 2), key="d1:2")
    erased.set()
    await ingest.bus.append(crate="main", aggregate="last", message=ingested("last"), key="last:1")
    await until(done)
    await runner.stop(5)
    assert await chunker.bus.last(crate="main", service="chunker", aggregate="d1") is None
    # A loss that nobody asked for is still told.
    lost = await chunker.bus.last(crate="main", service="chunker", aggregate="last")
    assert lost is not None
    assert lost.name == "TaskFailed"
