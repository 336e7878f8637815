"""Living states of every crate: graphs in memory, timelines in tables, one change after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from services.index.domain.force import Force
from services.index.domain.living.changes import (
    Known,
    LivingChange,
    StateChange,
    Stored,
    Tick,
    Told,
    chained,
    force_of,
    seen_at,
    seen_between,
    state_of,
)
from services.index.domain.living.graph import Graph
from services.index.domain.living.values import RevisionKey, Timeline
from services.kernel.errors import Unavailable

_SETTLE_S = 5.0
_T = TypeVar("_T")


class LivingTables(Protocol):
    """Where facts and timelines are kept."""

    async def load(self, crate_id: str) -> Stored:
        """Read what is known of a crate."""


@dataclass(slots=True)
class _Held:
    """A crate in memory.

    Attributes:
        known: What is known of each revision.
        clock: Last tick.
    """

    graph: Graph = field(default_factory=Graph)
    known: dict[RevisionKey, Known] = field(default_factory=dict)
    clock: datetime | None = None


class Living:
    """Turns facts into changes. One change at a time: prepare, commit, settle or drop.

    Args:
        tables: Where facts and timelines are kept.
    """

    def __init__(self, *, tables: LivingTables) -> None:
        self._tables = tables
        self._held: dict[str, _Held] = {}
        self._loading = asyncio.Lock()
        self._ahead: set[str] = set()
        self._calm = asyncio.Event()
        self._calm.set()

    async def prepare(self, crate_id: str, told: Sequence[Told]) -> LivingChange:
        """Work out what facts change. The memory is ahead of the tables from here on, until `settled` or `dropped`.

        Args:
            crate_id: Crate.
            told: In log order.

        Returns:
            What to write, put into the lanes and signal. Where the log was cut makes no difference to it.

        Raises:
            Unavailable: When the tables don't answer.
        """
        held = await self._crate(crate_id)
        # Kept from its first fact on; a crate that was only asked about isn't, since anyone can name one.
        self._held[crate_id] = held
        self._ahead.add(crate_id)
        self._calm.clear()
        try:
            return _change(crate_id, held, told)
        except BaseException:
            self.dropped(crate_id)
            raise

    def settled(self, change: LivingChange) -> None:
        """Say that a change was committed."""
        self._leave(change.crate_id)

    def dropped(self, crate_id: str) -> None:
        """Say that a change wasn't committed: the crate is read again when it is next needed."""
        self._held.pop(crate_id, None)
        self._leave(crate_id)

    async def read(self, crate_id: str, question: Callable[[Graph], _T]) -> _T:
        """Ask a crate's graph while it agrees with the tables.

        Args:
            crate_id: Crate.
            question: Must not wait and must keep nothing of the graph.

        Returns:
            Its answer.

        Raises:
            Unavailable: When a change takes too long, or the tables don't answer.
        """
        try:
            async with asyncio.timeout(_SETTLE_S):
                while True:
                    held = await self._crate(crate_id)
                    if crate_id not in self._ahead:
                        return question(held.graph)
                    await self._calm.wait()
        except TimeoutError as error:
            raise Unavailable(f"relations of crate {crate_id} are being written; retry") from error

    async def forces(self, crate_id: str, keys: Iterable[RevisionKey]) -> dict[RevisionKey, Force]:
        """Forces as they will be once the change in hand is committed, of the revisions that have a timeline."""
        held = await self._crate(crate_id)
        return {
            key: force_of(timeline, until_known_from=held.known[key].until_known_from)
            for key in keys
            if (timeline := held.graph.timelines.get(key)) is not None
        }

    async def _crate(self, crate_id: str) -> _Held:
        held = self._held.get(crate_id)
        if held is not None:
            return held
        async with self._loading:
            held = self._held.get(crate_id)
            if held is None:
                stored = await self._tables.load(crate_id)
                held = _Held(clock=stored.clock)
                held.graph.apply(stored.facts)
                held.known = {(row.document_id, row.revision): row for row in stored.known}
                if stored.facts:
                    self._held[crate_id] = held
        return held

    def _leave(self, crate_id: str) -> None:
        self._ahead.discard(crate_id)
        if not self._ahead:
            self._calm.set()


def _change(crate_id: str, held: _Held, told: Sequence[Told]) -> LivingChange:
    rows: list[Known] = []
    seen: list[StateChange] = []
    for one in told:
        if isinstance(one.fact, Tick):
            seen += _tick(held, one.fact, one.position)
            continue
        for key, timeline in held.graph.apply([one.fact]).items():
            was = held.graph.replaced.get(key)
            row = held.known[key] = _row(key, one, timeline, held.known.get(key))
            rows.append(row)
            seen += seen_at(key, was, timeline, one.recorded_at, one.position)
    return LivingChange(
        crate_id=crate_id,
        told=tuple(told),
        timelines=chained(rows),
        seen=tuple(seen),
        clock=held.clock,
    )


def _row(key: RevisionKey, one: Told, timeline: Timeline | None, before: Known | None) -> Known:
    end = _end(timeline)
    same_end = before is not None and end is not None and _end(before.timeline) == end
    return Known(
        document_id=key[0],
        revision=key[1],
        known_from=one.position,
        recorded_at=one.recorded_at,
        until_known_from=before.until_known_from if before and same_end else one.position,
        first_known=before.first_known if before else one.position,
        timeline=timeline,
    )


def _end(timeline: Timeline | None) -> int | None:
    return None if timeline is None else force_of(timeline).in_force_until


def _tick(held: _Held, tick: Tick, position: int) -> list[StateChange]:
    """Changes of state since the last tick, or since a timeline was last looked at."""
    last, now = held.clock, tick.now
    if last is not None and now <= last:
        return []
    held.clock = now
    found: list[StateChange] = []
    for key in sorted(held.graph.timelines):
        timeline = held.graph.timelines[key]
        since = held.known[key].recorded_at if key in held.known else timeline.effective_at
        since = since if last is None else max(since, last)
        if since < now:
            found += seen_between(key, state_of(timeline, since), state_of(timeline, now), position)
    return found
