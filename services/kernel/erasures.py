"""Whether what an event is about was erased or ingested anew: then what can't be found is nobody's failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from services import topology
from services.kernel.envelope import Event


class Lookup(Protocol):
    """The log, as far as it is asked here."""

    async def last_named(
        self, *, crate: str, service: str, aggregate: str, name: str, stream: str | None = None
    ) -> Event | None:
        """The last event of one kind of an aggregate, or None."""


async def erased_since(log: Lookup, event: Event) -> bool:
    """Whether the log erases the aggregate of an event behind it, whatever became of the aggregate since.

    Args:
        log: Log.
        event: Of KNOWLEDGE.

    Returns:
        True when it does.

    Raises:
        Corrupt: When the erasure can't be read.
        Unavailable: When the log doesn't answer.
    """
    service, name = topology.ERASURE
    erased = await log.last_named(crate=event.crate, service=service, aggregate=event.aggregate, name=name)
    return erased is not None and erased.position > event.position


class Walk(Protocol):
    """The log, as far as it is walked through here."""

    def facts(
        self, *, crate: str, service: str, aggregate: str, name: str, stream: str = topology.KNOWLEDGE
    ) -> AsyncIterator[Event]:
        """The events of one kind of an aggregate, oldest first."""


async def replaced_since(log: Walk, event: Event) -> bool:
    """Whether the revision that an event is about was ingested anew, with packs of its own.

    Args:
        log: Log.
        event: Of KNOWLEDGE.

    Returns:
        True when it was; False for events that are about no revision.

    Raises:
        Unavailable: When the log doesn't answer.
    """
    revision, digest = (getattr(event.message, name, None) for name in ("revision", "settings_digest"))
    if not revision or not digest:
        return False
    service, name = topology.INGESTION
    newest = digest
    async for ingested in log.facts(crate=event.crate, service=service, aggregate=event.aggregate, name=name):
        if getattr(ingested.message, "revision", None) == revision:
            newest = getattr(ingested.message, "settings_digest", newest)
    return bool(newest != digest)
