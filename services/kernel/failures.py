"""TaskFailed: the record of a task that a role gave up."""

from __future__ import annotations

from typing import Protocol

from affidavit.event.v1 import envelope_pb2

from services import topology
from services.kernel.bus import Bus
from services.kernel.envelope import Event, Poison
from services.kernel.erasures import erased_since, replaced_since
from services.kernel.errors import Failure
from services.kernel.ids import utc_now

_UNEXPECTED = "an unexpected fault ({kind}); the service's log has the details. Retry it, or report it"


class Failures(Protocol):
    """Where a projection says what it gave up."""

    async def record(self, event: Event, error: BaseException) -> None:
        """Say that the handling of an event was given up.

        Args:
            event: What could not be handled.
            error: Why.
        """

    async def record_poison(self, poison: Poison) -> None:
        """Say that a stored message can't be read.

        Args:
            poison: What is wrong with it.
        """


class LoggedFailures:
    """Writes TaskFailed to the log."""

    def __init__(self, *, bus: Bus) -> None:
        self._bus = bus

    async def record(self, event: Event, error: BaseException) -> None:
        """See Failures."""
        await record(self._bus, event, error)

    async def record_poison(self, poison: Poison) -> None:
        """See Failures."""
        await record_poison(self._bus, poison)


class CountedFailures:
    """Writes nothing: a replay meets failures again that the log knows already.

    Attributes:
        positions: Stream and position of every event that was given up.
    """

    def __init__(self) -> None:
        self.positions: list[tuple[str, int]] = []

    async def record(self, event: Event, error: BaseException) -> None:  # noqa: ARG002  (the port's signature)
        """See Failures."""
        self.positions.append((event.stream, event.position))

    async def record_poison(self, poison: Poison) -> None:
        """See Failures."""
        self.positions.append((poison.stream, poison.position))


async def record(bus: Bus, event: Event, error: BaseException) -> None:
    """Record that the handling of an event was given up, unless it has become needless or stands in the log already.

    Whoever works on something that is erased or ingested anew meanwhile may find it gone; that is nobody's failure.

    Args:
        bus: Log of the role that gives up.
        event: What it could not handle.
        error: Why.

    Raises:
        Unavailable: When the log doesn't take the record; the event is then delivered again.
    """
    if event.stream == topology.KNOWLEDGE and (await erased_since(bus, event) or await replaced_since(bus, event)):
        return
    if await _stands(bus, event, crate=event.crate, aggregate=event.aggregate):
        return
    known = error if isinstance(error, Failure) else None
    message = envelope_pb2.TaskFailed(
        service=bus.role,
        stream=event.stream,
        position=event.position,
        document_id=getattr(event.message, "document_id", ""),
        revision=getattr(event.message, "revision", 0),
        code=known.code if known else "internal",
        # Text of unexpected exceptions may quote content, so only their kind is kept.
        reason=known.message if known else _UNEXPECTED.format(kind=type(error).__name__),
        attempts=event.deliveries,
        retry=event.retry,
    )
    message.failed_at.FromDatetime(utc_now())
    key = f"failed:{bus.role}:{event.stream}:{event.position}:{event.deliveries if known else 0}:{event.retry}"
    await bus.append(crate=event.crate, aggregate=event.aggregate, message=message, key=key)


async def record_poison(bus: Bus, poison: Poison) -> None:
    """Record a stored message that can't be read.

    Args:
        bus: Log of the role that met it.
        poison: What is wrong with it.

    Raises:
        Unavailable: When the log doesn't take the record.
    """
    tokens = poison.subject.split(".")
    crate, aggregate = (tokens[2], tokens[4]) if len(tokens) == 6 else ("unknown", "unknown")
    if await _stands(bus, poison, crate=crate, aggregate=aggregate):
        return
    message = envelope_pb2.TaskFailed(
        service=bus.role,
        stream=poison.stream,
        position=poison.position,
        code="poison",
        reason=f"event {poison.position} of {poison.stream} can't be read: {poison.reason}",
        attempts=1,
        retry=poison.retry,
    )
    message.failed_at.FromDatetime(utc_now())
    key = f"poison:{bus.role}:{poison.stream}:{poison.position}:{poison.retry}"
    await bus.append(crate=crate, aggregate=aggregate, message=message, key=key)


async def _stands(bus: Bus, failed: Event | Poison, *, crate: str, aggregate: str) -> bool:
    """Whether this role gave the very same up before: a consumer or a table that starts over meets it again."""
    stream = topology.task_failed(bus.role).stream
    before = bus.facts(crate=crate, service=bus.role, aggregate=aggregate, name=topology.TASK_FAILED, stream=stream)
    async for fact in before:
        task = fact.message
        if isinstance(task, envelope_pb2.TaskFailed) and (task.stream, task.position, task.retry) == (
            failed.stream,
            failed.position,
            failed.retry,
        ):
            return True
    return False
