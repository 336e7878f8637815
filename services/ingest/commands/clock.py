"""Time as a fact: tells the log now and then how late it is, for states that change by time alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from affidavit.ingest.v1 import ingest_events_pb2 as pb

from services.ingest.codec import facts
from services.ingest.codec.facts import CLOCK_AGGREGATE, OWN_SERVICE
from services.ingest.domain.documents import fact_key
from services.ingest.domain.settings import PROFILE
from services.ingest.ports import Log, Tables
from services.kernel.errors import Conflict, Corrupt, Failure

_log = logging.getLogger("affidavit.ingest")
# Several instances look in turn, so that the next one takes over soon after one is gone.
_LOOKS_PER_INTERVAL = 10
_LONGEST_REST_S = 60.0


class Clock:
    """Appends ClockAdvanced to crates whose profile knows states, at most once in an interval per crate."""

    def __init__(self, *, log: Log, tables: Tables, interval_s: float, clock: Callable[[], datetime]) -> None:
        """Keep what the clock needs.

        Args:
            log: The log.
            tables: Know the crates.
            interval_s: Seconds between two ticks.
            clock: Aware, UTC.
        """
        self._log = log
        self._tables = tables
        self._interval = timedelta(seconds=interval_s)
        self._rest_s = min(_LONGEST_REST_S, interval_s / _LOOKS_PER_INTERVAL)
        self._clock = clock

    async def run(self) -> None:
        """Tick until cancelled; a log or tables that are away are asked again."""
        while True:
            try:
                await self.tick()
            except Failure as error:
                _log.warning("the clock of ingest waits: %s", error.message)
            await asyncio.sleep(self._rest_s)

    async def tick(self) -> int:
        """Append where it is time.

        Returns:
            How many crates were told.

        Raises:
            Unavailable: When log or tables don't answer.
        """
        told = 0
        for view in await self._tables.crates():
            if view.crate.settings.profile == PROFILE:
                continue
            try:
                told += await self._tell(view.crate.crate_id)
            except Corrupt as error:
                # Of this crate alone: the others go on.
                _log.warning("crate %s has no clock: %s", view.crate.crate_id, error.message)
        return told

    async def _tell(self, crate_id: str) -> bool:
        last = await self._log.last(crate=crate_id, service=OWN_SERVICE, aggregate=CLOCK_AGGREGATE)
        now = self._clock()
        # Also what keeps the clock from running backwards when ours was set back.
        if last and isinstance(last.message, pb.ClockAdvanced):
            before = last.message.now.ToDatetime(tzinfo=UTC)
            if now - before < self._interval:
                return False
        expected = last.position if last else 0
        try:
            appended = await self._log.append(
                crate=crate_id,
                aggregate=CLOCK_AGGREGATE,
                message=facts.clock_advanced(now),
                key=fact_key(CLOCK_AGGREGATE, expected, "ClockAdvanced"),
                expected=expected,
            )
        except Conflict:
            # Another instance was faster.
            return False
        return not appended.duplicate
