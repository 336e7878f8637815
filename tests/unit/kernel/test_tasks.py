"""Ending tasks for sure."""

from __future__ import annotations

import asyncio

import pytest

from services.kernel import tasks


async def test_a_task_that_swallows_a_cancellation_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_ASK_AGAIN_S", 0.01)
    swallowed: list[bool] = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append(True)

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await tasks.cancel([task])
    assert task.cancelled()
    assert swallowed


async def test_what_a_task_raised_is_dropped() -> None:
    async def failing() -> None:
        raise ValueError("lost")

    task = asyncio.create_task(failing())
    await asyncio.sleep(0)
    await tasks.cancel([task])
    assert task.done()
