"""A document of several parts: its progress is told while the model works."""

from __future__ import annotations

import asyncio
from typing import Literal

from services.kernel.progress import Listener, Progress
from tests.integration.embedder.embedder_world import CRATE, World

TEXTS = [f"text {number}" for number in range(200)]


class Turnstile(asyncio.Event):
    """Lets as many calls of the model through as the test allows."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = asyncio.Semaphore(0)

    async def wait(self) -> Literal[True]:
        await self._turns.acquire()
        return True

    def let(self, calls: int) -> None:
        for _ in range(calls):
            self._turns.release()


async def until(listener: Listener, done: int) -> Progress:
    """What is told once so many texts are done."""
    async with asyncio.timeout(30):
        while True:
            now = listener.of(CRATE).get("d1")
            if now is not None and now.done == done:
                return now
            await asyncio.sleep(0.01)


async def test_numbers_grow_before_a_document_is_done(world: World) -> None:
    world.restart(partial_texts=80)
    turnstile = world.model.gate = Turnstile()
    listener = Listener("embedder")
    listening = asyncio.create_task(listener.run(world.buses["ingest"]))
    await asyncio.sleep(0.1)
    embedding = asyncio.create_task(world.embedder.handle(await world.chunked(TEXTS)))
    # Each call takes two texts; the second part begins after the first forty.
    for calls, done in ((0, 0), (10, 20), (35, 90)):
        turnstile.let(calls)
        assert (await until(listener, done)).task == "1:s1"
        assert not embedding.done()
    assert await world.embedded() is None
    turnstile.let(100)
    await embedding
    message = await world.embedded()
    assert message is not None
    assert message.record_count == len(TEXTS)
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
