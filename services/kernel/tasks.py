"""Ending tasks for sure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

_ASK_AGAIN_S = 3.0


async def cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended.

    Asks again until they have: up to Python 3.11 `asyncio.wait_for` swallows a cancellation that arrives together with
    its result (https://github.com/python/cpython/issues/86296), and nats-py waits for messages with it.

    Args:
        tasks: Done or not; what they raise is dropped.
    """
    asked = tuple(tasks)
    pending = {task for task in asked if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_ASK_AGAIN_S)
    await asyncio.gather(*asked, return_exceptions=True)
