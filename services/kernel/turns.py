"""Turns that crates share: no crate takes all of them, and whoever waits waits behind few of each other crate."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class KeyedTurns:
    """A bounded number of turns for each key, remembered only while somebody holds one or waits for one."""

    def __init__(self, per_key: int = 1) -> None:
        """Keep the bound.

        Args:
            per_key: Turns of one key at once.
        """
        self._per_key = per_key
        self._keys: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it while the block runs.

        Args:
            key: What the turn is about.
        """
        own, users = self._keys.get(key, (asyncio.Semaphore(self._per_key), 0))
        self._keys[key] = (own, users + 1)
        try:
            async with own:
                yield
        finally:
            own, users = self._keys.pop(key)
            if users > 1:
                self._keys[key] = (own, users - 1)


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
        self._crates = KeyedTurns(per_crate)

    @contextlib.asynccontextmanager
    async def of(self, crate_id: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it while the block runs.

        Args:
            crate_id: Crate.
        """
        async with self._crates.of(crate_id), self._total:
            yield
