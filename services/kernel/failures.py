"""TaskFailed: the record of a task that a role gave up."""

from __future__ import annotations

from affidavit.event.v1 import envelope_pb2

from services.kernel.bus import Bus
from services.kernel.envelope import Event, Poison
from services.kernel.errors import Failure
from services.kernel.ids import utc_now

_UNEXPECTED = "an unexpected fault ({kind}); the service's log has the details. Retry it, or report it"


async def record(bus: Bus, event: Event, error: BaseException) -> None:
    """Record that the handling of an event was given up.

    Args:
        bus: Log of the role that gives up.
        event: What it could not handle.
        error: Why.

    Raises:
        Unavailable: When the log doesn't take the record; the event is then delivered again.
    """
    is_failure = isinstance(error, Failure)
    message = envelope_pb2.TaskFailed(
        service=bus.role,
        stream=event.stream,
        position=event.position,
        document_id=getattr(event.message, "document_id", ""),
        revision=getattr(event.message, "revision", 0),
        code=error.code if isinstance(error, Failure) else "internal",
        # Text of unexpected exceptions may quote content, so only their kind is kept.
        reason=error.message if isinstance(error, Failure) else _UNEXPECTED.format(kind=type(error).__name__),
        attempts=event.deliveries,
        retry=event.retry,
    )
    message.failed_at.FromDatetime(utc_now())
    key = f"failed:{bus.role}:{event.stream}:{event.position}:{event.deliveries if is_failure else 0}:{event.retry}"
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
