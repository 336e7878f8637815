"""What became of failures -> events of the log."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from affidavit.event.v1 import envelope_pb2

from services import topology
from services.ingest.codec.configuration import timestamp
from services.ingest.codec.facts import OWN_SERVICE
from services.ingest.domain.lifecycle import Failed

_FAILURE_PREFIX: Final = "failure-"


def failure_aggregate(failure_id: int) -> str:
    """Aggregate of what becomes of a failure: not its document's, whose writers expect only each other."""
    return f"{_FAILURE_PREFIX}{failure_id}"


def task_retried(failed: Failed, now: datetime) -> envelope_pb2.TaskRetried:
    """Write that a task is handed to its role again."""
    return envelope_pb2.TaskRetried(
        failure_id=failed.position,
        service=failed.service,
        stream=failed.stream,
        position=failed.event_position,
        document_id=failed.document_id,
        revision=failed.revision,
        retried_at=timestamp(now),
    )


def task_dropped(failed: Failed, now: datetime) -> envelope_pb2.TaskDropped:
    """Write that a task isn't wanted any more."""
    return envelope_pb2.TaskDropped(
        failure_id=failed.position,
        service=failed.service,
        document_id=failed.document_id,
        revision=failed.revision,
        dropped_at=timestamp(now),
    )


def pack_lost(
    document_id: str, revision: int, *, position: int, code: str, reason: str, now: datetime
) -> envelope_pb2.TaskFailed:
    """Write that the source pack of a revision was found gone or damaged.

    Args:
        document_id: Document.
        revision: Revision.
        position: Of its DocumentIngested.
        code: Outcome, "corrupt" or "not_found".
        reason: What was found and what to do.
        now: Aware, UTC.

    Returns:
        The event's body.
    """
    return envelope_pb2.TaskFailed(
        service=OWN_SERVICE,
        stream=topology.KNOWLEDGE,
        position=position,
        document_id=document_id,
        revision=revision,
        code=code,
        reason=reason,
        attempts=1,
        failed_at=timestamp(now),
    )
