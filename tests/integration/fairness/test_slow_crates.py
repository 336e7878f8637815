"""A crate that is slow, or has a long queue, holds up itself only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from affidavit.ingest.v1 import ingest_events_pb2, settings_pb2
from affidavit.ingest.v1 import ingest_service_pb2 as pb

from services.kernel.envelope import Event
from services.kernel.steps import Step, StepRunner
from tests.conftest import ContextFactory
from tests.integration.embedder.provider_double import DIMENSION, Answer, Asked, ProviderServer, right
from tests.integration.whole_node import WholeNode, eventually

SLOW, QUICK = "slow", "quick"
DOCUMENTS = 200
CALL_S = 5.0
SEARCHABLE = pb.DOCUMENT_STATUS_SEARCHABLE


class SlowAlways(list[object]):
    """A script that never ends: every call takes its time."""

    def __bool__(self) -> bool:
        return True

    def pop(self, _index: object = -1) -> object:
        def slowly(asked: Asked) -> Answer:
            return replace(right(asked), delay_s=CALL_S)

        return slowly


@pytest.fixture
async def node(tmp_path: Path, postgres_server: str) -> AsyncIterator[WholeNode]:
    async with WholeNode.start(tmp_path, postgres_server) as made:
        yield made


async def test_a_slow_provider_does_not_hold_up_another_crate(node: WholeNode) -> None:
    server = ProviderServer()
    await server.start()
    provider = settings_pb2.Provider(
        role=settings_pb2.PROVIDER_ROLE_EMBEDDING,
        kind=settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE,
        enabled=True,
        base_url=server.url,
        model="unit",
        dimension=DIMENSION,
    )
    await node.ingest.CreateCrate(pb.CreateCrateRequest(crate_id=SLOW, providers=[provider]))
    await node.create(QUICK)
    for crate in (SLOW, QUICK):
        await node.put(crate, "first", "A first document, so that the crate has its generation.")
        await node.until(crate, "first", SEARCHABLE)
    server.script = SlowAlways()  # type: ignore[assignment]  # as far as the server looks at it
    await asyncio.gather(*(node.put(SLOW, f"d{number}", f"Text number {number}.") for number in range(DOCUMENTS)))
    asked = len(server.asked)
    await eventually(lambda: len(server.asked) > asked or asked > 1)

    await node.put(QUICK, "single", "The ferry to Texel leaves at eight.")
    await node.until(QUICK, "single", SEARCHABLE)
    # Most of the slow crate waits still: the quick one's document was not behind it.
    async for counts in node.ingest.WatchProgress(pb.WatchProgressRequest(crate_id=SLOW)):
        assert counts.pending > DOCUMENTS / 2
        break
    assert (await node.found(QUICK, "ferry Texel"))[0] == "single"
    server.script = []
    await server.stop()


async def test_a_long_queue_does_not_hold_up_another_crate(context_for: ContextFactory) -> None:
    ingest, chunker = await context_for("ingest"), await context_for("chunker")
    release, handled = asyncio.Event(), []

    async def handle(event: Event) -> None:
        if event.crate == "busy":
            await release.wait()
        handled.append(event.crate)

    for crate in ("busy", "calm"):
        await ingest.bus.append(
            crate=crate, aggregate="crate", message=ingest_events_pb2.CrateConfigured(revision=1), key="1"
        )
    for number in range(100):
        document = ingest_events_pb2.DocumentIngested(document_id=f"d{number}", revision=1)
        await ingest.bus.append(crate="busy", aggregate=f"d{number}", message=document, key="1")
    step = Step(name="chunk", events=("DocumentIngested",), handle=handle, concurrency=4)
    runners = [StepRunner(bus=chunker.bus, steps=(step,)) for _ in range(2)]
    for runner in runners:
        await runner.start()
    await asyncio.sleep(0.3)
    # Also a crate that comes while the other one is stuck, in every process.
    await ingest.bus.append(
        crate="new", aggregate="crate", message=ingest_events_pb2.CrateConfigured(revision=1), key="1"
    )
    for crate in ("calm", "new"):
        document = ingest_events_pb2.DocumentIngested(document_id="d", revision=1)
        await ingest.bus.append(crate=crate, aggregate="d", message=document, key="1")
    await eventually(lambda: sorted(handled) == ["calm", "new"])
    release.set()
    await eventually(lambda: handled.count("busy") == 100)
    for runner in runners:
        await runner.stop(1)
