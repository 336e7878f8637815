"""Moments, reaches, states, relations and families: protobuf to domain and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from affidavit.index.v1 import living_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from services.query.codec.enums import REACH_VALUES, REACHES, STATE_VALUES, STATES
from services.query.domain.living import Family, Moment, Reach, Relation, RelationType, StateReport

_PPM = 1_000_000
_TYPES = {kind.value: kind for kind in RelationType}


class FamilyMessage(Protocol):
    """What a message of a version series holds."""

    @property
    def family(self) -> str:
        """Name of the series."""

    @property
    def members(self) -> Sequence[living_pb2.StateReport]:
        """Oldest first."""


def timestamp(moment: datetime) -> Timestamp:
    """Write an instant."""
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def instant(stamp: Timestamp) -> datetime:
    """Read an instant.

    Raises:
        ValueError: When it lies outside of the years 1 to 9999.
    """
    try:
        return stamp.ToDatetime(UTC)
    except OverflowError as error:
        raise ValueError(str(error)) from error


def moment_message(moment: Moment) -> living_pb2.Moment | None:
    """Write a moment; None for the one that every request has anyway: now, with everything known."""
    if moment.as_of is None and not moment.at:
        return None
    return living_pb2.Moment(as_of=timestamp(moment.as_of) if moment.as_of else None, at=moment.at)


def reach(value: int) -> Reach | None:
    """Read a reach; None for unspecified and unknown values."""
    return REACHES.get(living_pb2.Reach.ValueType(value))


def reach_value(wanted: Reach) -> living_pb2.Reach.ValueType:
    """Write a reach; what profile v1 searches stays unspecified."""
    return living_pb2.REACH_UNSPECIFIED if wanted is Reach.CURRENT else REACH_VALUES[wanted]


def state_report(message: living_pb2.StateReport) -> StateReport:
    """Read a state."""
    return StateReport(
        document_id=message.document_id,
        revision=message.revision,
        state=STATES.get(message.state),
        rule=message.rule,
        other_document_id=message.other_document_id,
        detail=message.detail,
        since=instant(message.since) if message.HasField("since") else None,
        until=instant(message.until) if message.HasField("until") else None,
        not_in_force_yet=message.not_in_force_yet,
        family=message.family,
        version=message.version,
        effective_at=instant(message.effective_at) if message.HasField("effective_at") else None,
        source_id=message.source_id,
        title=message.title,
        known_since=message.known_since,
    )


def state_message(report: StateReport) -> living_pb2.StateReport:
    """Write a state."""
    return living_pb2.StateReport(
        document_id=report.document_id,
        revision=report.revision,
        state=STATE_VALUES[report.state] if report.state else living_pb2.LIVING_STATE_UNSPECIFIED,
        rule=report.rule,
        other_document_id=report.other_document_id,
        detail=report.detail,
        since=timestamp(report.since) if report.since else None,
        until=timestamp(report.until) if report.until else None,
        not_in_force_yet=report.not_in_force_yet,
        family=report.family,
        version=report.version,
        effective_at=timestamp(report.effective_at) if report.effective_at else None,
        source_id=report.source_id,
        title=report.title,
        known_since=report.known_since,
    )


def relations(messages: Sequence[living_pb2.Relation]) -> tuple[Relation, ...]:
    """Read edges; those of an unknown type and those that wait for an unknown document are left out."""
    return tuple(
        Relation(item.source_document_id, _TYPES[item.type], item.target_document_id, item.confidence_ppm / _PPM)
        for item in messages
        if item.type in _TYPES and item.source_document_id and item.target_document_id
    )


def families(messages: Sequence[FamilyMessage]) -> tuple[Family, ...]:
    """Read version series."""
    return tuple(Family(item.family, tuple(state_report(member) for member in item.members)) for item in messages)
