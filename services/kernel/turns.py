"""Turns that crates share: no crate takes all of them, and whoever waits waits behind few of each other crate."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class FairTurns:
    """A bounded number of turns, of which each crate has only some."""

    def __init__(self, *, total: int, per_crate: int) -> None:
        """Keep the bounds.

        Args:
            total: Turns at once.
            per_crate: Turns of one crate at once, those that wait for one of `total` included. With 1, crates that
                compete take turns one by one, however long the queue of each.
        """
        self._total = asyncio.Semaphore(total)
        self._per_crate = per_crate
        self._crates: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, crate_id: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it while the block runs.

        Args:
            crate_id: Crate.
        """
        own, users = self._crates.get(crate_id, (asyncio.Semaphore(self._per_crate), 0))
        self._crates[crate_id] = (own, users + 1)
        try:
            async with own, self._total:
                yield
        finally:
            own, users = self._crates.pop(crate_id)
            if users > 1:
                self._crates[crate_id] = (own, users - 1)
