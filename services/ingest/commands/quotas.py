"""Quotas of a crate: documents, bytes, puts in flight. Checked before anything is written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from services.ingest.domain.values import Usage
from services.ingest.ports import Tables
from services.kernel.errors import Exhausted
from services.kernel.turns import FairTurns

# What other processes add is noticed so much later; a refusal never rests on an older count than the second of these.
_COUNTED_FOR_S: Final = 30.0
_REFUSED_FOR_S: Final = 0.5
_NOTHING: Final = Usage(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of every crate; 0 stands for none.

    Attributes:
        documents: Documents that are not erased.
        size_bytes: Source packs of all revisions that are kept: the originals and their text.
        puts_in_flight: Puts accepted at once, those that wait for their turn included.
        turns: Puts of all crates in work at once.
    """

    documents: int = 0
    size_bytes: int = 0
    puts_in_flight: int = 0
    turns: int = 64


@dataclass(slots=True)
class _Count:
    """What is known of a crate's usage: the last count, what was added since, and what is being written."""

    counted: Usage
    at_s: float
    added: Usage = _NOTHING
    reserved: Usage = _NOTHING

    @property
    def total(self) -> Usage:
        return self.counted + self.added + self.reserved


class Room:
    """Room that was set aside for one put.

    Attributes:
        taken: True once the put stands in the log.
    """

    def __init__(self) -> None:
        self.taken = False


class Quotas:
    """Lets puts in while their crate has room."""

    def __init__(self, *, tables: Tables, limits: Limits, clock: Callable[[], float]) -> None:
        """Keep what the checks need.

        Args:
            tables: Count documents and bytes.
            limits: Of every crate.
            clock: Seconds that only grow.
        """
        self._tables = tables
        self._limits = limits
        self._clock = clock
        self._counts: dict[str, _Count] = {}
        self._in_flight: dict[str, int] = {}
        self._turns = FairTurns(total=limits.turns, per_crate=max(1, limits.turns * 3 // 4))

    @asynccontextmanager
    async def turn(self, crate_id: str) -> AsyncIterator[None]:
        """Wait for the turn of a put.

        Args:
            crate_id: Crate.

        Raises:
            Exhausted: When the crate has too many puts in flight already.
        """
        running = self._in_flight.get(crate_id, 0)
        if 0 < self._limits.puts_in_flight <= running:
            raise Exhausted(
                f"crate {crate_id} has {running} puts in flight, its quota (crate_puts_in_flight): nothing was written; "
                "send fewer at once, and this one again when others have returned"
            )
        self._in_flight[crate_id] = running + 1
        try:
            async with self._turns.of(crate_id):
                yield
        finally:
            left = self._in_flight.pop(crate_id) - 1
            if left:
                self._in_flight[crate_id] = left

    @asynccontextmanager
    async def room(self, crate_id: str, wanted: Usage) -> AsyncIterator[Room]:
        """Set room aside for what a put is about to write.

        Args:
            crate_id: Crate.
            wanted: What it adds.

        Yields:
            The room; say that it was taken once the put stands in the log.

        Raises:
            Exhausted: When the crate hasn't that much left.
            Unavailable: When the tables don't answer.
        """
        count = await self._checked(crate_id, wanted)
        count.reserved += wanted
        room = Room()
        try:
            yield room
        finally:
            count.reserved -= wanted
            if room.taken:
                count.added += wanted

    async def _checked(self, crate_id: str, wanted: Usage) -> _Count:
        count = self._counts.get(crate_id)
        if count is None or self._clock() - count.at_s > _COUNTED_FOR_S:
            count = await self._recount(crate_id)
        problem = self._problem(crate_id, count.total, wanted)
        if problem and self._clock() - count.at_s > _REFUSED_FOR_S:
            count = await self._recount(crate_id)
            problem = self._problem(crate_id, count.total, wanted)
        if problem:
            raise Exhausted(problem)
        return count

    async def _recount(self, crate_id: str) -> _Count:
        held = self._counts.get(crate_id)
        before = held.added if held else _NOTHING
        counted = await self._tables.usage(crate_id)
        count = self._counts.setdefault(crate_id, _Count(counted, self._clock()))
        # What was added while counting may be in the count as well: rather too much than too little.
        count.counted, count.at_s = counted, self._clock()
        if held is count:
            count.added -= before
        return count

    def _problem(self, crate_id: str, used: Usage, wanted: Usage) -> str:
        limits = self._limits
        if wanted.documents and 0 < limits.documents < used.documents + wanted.documents:
            return (
                f"crate {crate_id} has {used.documents} documents, its quota is {limits.documents} (crate_documents): "
                "nothing was written; erase documents that are not needed, or raise the quota"
            )
        if wanted.size_bytes and 0 < limits.size_bytes < used.size_bytes + wanted.size_bytes:
            return (
                f"crate {crate_id} holds {used.size_bytes} bytes and this put adds {wanted.size_bytes}, its quota is "
                f"{limits.size_bytes} (crate_bytes): nothing was written; erase documents that are not needed, or "
                "raise the quota"
            )
        return ""
