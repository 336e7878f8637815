"""Facts that name a pack of their own: the pack goes again where another fact stands in their place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from google.protobuf.message import Message

from services import topology
from services.kernel.bus import Bus, LogReader
from services.kernel.envelope import Event, Poison
from services.kernel.errors import Conflict


async def append_owner(
    bus: Bus,
    *,
    crate: str,
    aggregate: str,
    message: Message,
    key: str,
    expected: int,
    remove: Callable[[], Awaitable[None]],
) -> None:
    """Append a fact whose pack is written already.

    Args:
        bus: Log, as the role that emits it.
        crate: Crate.
        aggregate: Aggregate.
        message: Body, of KNOWLEDGE.
        key: Idempotency key.
        expected: Position of the aggregate's last event of this role, 0 for none.
        remove: Deletes the pack; awaited where the log names another one.

    Raises:
        Conflict: When another process appended something else meanwhile.
        Unavailable: When the log doesn't answer.
    """
    standing: Event | Poison | None
    try:
        appended = await bus.append(crate=crate, aggregate=aggregate, message=message, key=key, expected=expected)
    except Conflict:
        standing = await bus.last_named(
            crate=crate, service=bus.role, aggregate=aggregate, name=message.DESCRIPTOR.name
        )
        if standing is None or standing.message != message:
            await remove()
            raise
    else:
        standing = await bus.at(topology.KNOWLEDGE, appended.position) if appended.duplicate else None
        # The same message is our own, confirmed late.
        if isinstance(standing, Event) and standing.message != message:
            await remove()


async def behind_failures(log: LogReader, last: Event | None, name: str) -> Event | None:
    """The last fact of an aggregate, given its last event, which may be a failure.

    Args:
        log: Log.
        last: The aggregate's last event; None when it has none.
        name: Message name of the fact.

    Returns:
        The fact; None when there is none.

    Raises:
        Corrupt: When it can't be read.
        Unavailable: When the log doesn't answer.
    """
    if last is None or last.name != topology.TASK_FAILED:
        return last
    return await log.last_named(crate=last.crate, service=last.service, aggregate=last.aggregate, name=name)
