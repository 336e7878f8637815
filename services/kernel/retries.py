"""TaskRetried: an event that its role gave up is handed to it again, through the log."""

from __future__ import annotations

from dataclasses import replace

from affidavit.event.v1 import envelope_pb2

from services.kernel.bus import LogReader
from services.kernel.envelope import Event, Poison
from services.kernel.failures import Failures


async def handed_over(log: LogReader, failures: Failures, event: Event) -> Event | None:
    """The event that a role is to handle, given what it read.

    Args:
        log: Log, as the role that reads.
        failures: Where an event that still can't be read is recorded.
        event: As read.

    Returns:
        For a TaskRetried of this role the event that was given up, told from the first time by `retry`, and counted as
        one delivery more so that nobody takes it for new; None for a TaskRetried of another role, or when the event
        still can't be read, which is recorded; everything else as it is.

    Raises:
        Unavailable: When the log doesn't answer.
    """
    message = event.message
    if not isinstance(message, envelope_pb2.TaskRetried):
        return event
    if message.service != log.role:
        return None
    found = await log.at(message.stream, message.position)
    if isinstance(found, Poison):
        await failures.record_poison(replace(found, retry=event.position))
    if not isinstance(found, Event):
        return None
    return replace(found, retry=event.position, deliveries=event.deliveries + 1)
