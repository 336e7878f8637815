"""Appending a decision: what happens when somebody was faster, and reading one's own write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from google.protobuf.message import Message

from services.ingest.codec.facts import OWN_SERVICE
from services.ingest.ports import Applied, Log
from services.kernel.errors import Conflict, Unavailable

# Writers of one process take turns, see `Journal.writing`: what is lost here is lost to other processes.
ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """An event that a decision came to.

    Attributes:
        crate_id: Crate.
        aggregate: What the decision is about.
        message: The event's body.
        key: Its idempotency key.
        expected: Position of the aggregate's last event when it was decided, 0 for none.
    """

    crate_id: str
    aggregate: str
    message: Message
    key: str
    expected: int


class Journal:
    """Appends decisions and waits until they can be read."""

    def __init__(self, *, log: Log, applied: Applied) -> None:
        self.log = log
        self._applied = applied
        self._writing: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def writing(self, crate_id: str, aggregate: str) -> AsyncIterator[bool]:
        """Take turns with this process's other writers of an aggregate, first come, first served.

        What a writer means doesn't depend on how many others there are: without turns, most of them would be refused.

        Args:
            crate_id: Crate.
            aggregate: What is decided about.

        Yields:
            Whether others were before: what was read of the aggregate is old then.
        """
        lock = self._writing.setdefault((crate_id, aggregate), asyncio.Lock())
        waited = lock.locked()
        async with lock:
            yield waited

    async def record(self, decided: Decided) -> int | None:
        """Append an event unless its aggregate has moved on.

        Args:
            decided: The event.

        Returns:
            Its position; None when the decision has to be made again.

        Raises:
            Unavailable: When the log doesn't confirm.
        """
        try:
            appended = await self.log.append(
                crate=decided.crate_id,
                aggregate=decided.aggregate,
                message=decided.message,
                key=decided.key,
                expected=decided.expected,
            )
        except Conflict:
            return await self._ours(decided)
        if appended.duplicate:
            # Two writers may come to different decisions of the same name at once.
            return await self._ours(decided)
        return appended.position

    async def read_back(self, what: str, position: int) -> None:
        """Wait until the tables have a position.

        Args:
            what: What was recorded, for the message.
            position: Its position.

        Raises:
            Unavailable: When they don't follow in time.
        """
        if not await self._applied(position):
            raise Unavailable(
                f"{what} stands in the log at position {position}, but the tables don't follow: "
                "read it again later, see `affidavit doctor`"
            )

    async def knows(self, crate_id: str, aggregate: str, sequence: int) -> bool:
        """Whether the log holds nothing newer about an aggregate.

        Args:
            crate_id: Crate.
            aggregate: What a decision is about.
            sequence: Position of the last event that the tables know of, 0 for none.

        Returns:
            False when a decision has to wait for the tables.
        """
        last = await self.log.last(crate=crate_id, service=OWN_SERVICE, aggregate=aggregate)
        return last is None or last.position <= sequence

    async def catch_up(self, crate_id: str, aggregate: str) -> None:
        """Wait until the tables have all that the log knows of an aggregate.

        Args:
            crate_id: Crate.
            aggregate: What a decision is about.

        Raises:
            Unavailable: When they don't follow in time.
        """
        last = await self.log.last(crate=crate_id, service=OWN_SERVICE, aggregate=aggregate)
        if last is not None:
            await self.read_back(f"{last.name} of {aggregate}", last.position)

    async def _ours(self, decided: Decided) -> int | None:
        """Position of the very event, when an attempt whose confirmation was lost has written it after all."""
        last = await self.log.last(crate=decided.crate_id, service=OWN_SERVICE, aggregate=decided.aggregate)
        if last is None or last.key != decided.key or last.message != decided.message:
            return None
        return last.position


def contended(what: str) -> Conflict:
    """What is said when others keep writing the same thing."""
    return Conflict(f"{what} is being changed by others at the same time: read it and try again")
