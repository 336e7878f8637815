"""A document of several parts: its progress is told while the model works."""

from __future__ import annotations

import asyncio

from services.kernel.progress import Listener, Progress
from tests.integration.embedder.embedder_world import CRATE, World

TEXTS = [f"text {number}" for number in range(200)]


async def heard(listener: Listener) -> Progress:
    """The next thing that is told."""
    before = listener.of(CRATE).get("d1")
    while True:
        now = listener.of(CRATE).get("d1")
        if now is not None and now is not before:
            return now
        await asyncio.sleep(0.01)


async def test_numbers_grow_before_a_document_is_done(world: World) -> None:
    world.restart(partial_texts=80)
    listener = Listener("embedder")
    listening = asyncio.create_task(listener.run(world.buses["ingest"]))
    await asyncio.sleep(0.1)
    slow = asyncio.Event()

    async def hold_now_and_then() -> None:
        while not slow.is_set():
            world.model.gate.clear()
            await asyncio.sleep(0.04)
            world.model.gate.set()
            await asyncio.sleep(0.001)

    holding = asyncio.create_task(hold_now_and_then())
    embedding = asyncio.create_task(world.embedder.handle(await world.chunked(TEXTS)))
    async with asyncio.timeout(60):
        numbers: list[int] = []
        while len(numbers) < 3 or numbers[-1] <= 80:
            told = await heard(listener)
            assert told.task == "1:s1"
            numbers.append(told.done)
        slow.set()
        assert not embedding.done()
        assert numbers == sorted(numbers)
        assert await world.embedded() is None
        await embedding
    message = await world.embedded()
    assert message is not None
    assert message.record_count == len(TEXTS)
    holding.cancel()
    listening.cancel()


async def test_a_short_document_tells_nothing(world: World) -> None:
    listener = Listener("embedder")
    listening = asyncio.create_task(listener.run(world.buses["ingest"]))
    await asyncio.sleep(0.1)
    await world.run(["alpha", "beta"])
    await world.buses["embedder"].nats.flush()
    await asyncio.sleep(0.1)
    assert listener.of(CRATE) == {}
    listening.cancel()
