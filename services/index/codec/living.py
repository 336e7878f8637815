"""Living states between protobuf, stored text and domain values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from affidavit.index.v1 import index_events_pb2 as index_events_pb
from affidavit.index.v1 import living_pb2 as living_pb
from affidavit.ingest.v1 import ingest_events_pb2 as events_pb
from affidavit.ingest.v1 import settings_pb2
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.index.domain.force import instant
from services.index.domain.living.changes import Known, Report, StateChange, Tick, Told, from_instant
from services.index.domain.living.values import (
    Edge,
    Erased,
    Retired,
    RevisionFacts,
    Rules,
    Span,
    State,
    Statement,
    Verdict,
    Window,
    next_change,
    state_at,
)

_STATES = {
    living_pb.LIVING_STATE_ACTIVE: State.ACTIVE,
    living_pb.LIVING_STATE_SUPERSEDED: State.SUPERSEDED,
    living_pb.LIVING_STATE_DEPRECATED: State.DEPRECATED,
    living_pb.LIVING_STATE_CONTESTED: State.CONTESTED,
    living_pb.LIVING_STATE_STALE: State.STALE,
    living_pb.LIVING_STATE_DORMANT: State.DORMANT,
}
_STATE_VALUES = {state: value for value, state in _STATES.items()}


def encode_spans(spans: tuple[Span, ...]) -> str:
    """Write a timeline's spans, instants in microseconds."""
    return json.dumps(
        [
            [instant(span.start), span.verdict.state.value, span.verdict.rule, span.verdict.other, span.verdict.detail]
            for span in spans
        ],
        ensure_ascii=False,
        separators=(",", ":"),
    )


def decode_spans(text: str) -> tuple[Span, ...]:
    """Read what `encode_spans` wrote."""
    return tuple(
        Span(from_instant(start), Verdict(State(state), rule, other, detail))
        for start, state, rule, other, detail in json.loads(text)
    )


def encode_rules(rules: Rules) -> str:
    """Write a crate's rules, without their position."""
    windows = {
        name: [window.stale_after_days, window.dormant_after_days] for name, window in sorted(rules.windows.items())
    }
    return json.dumps(
        {
            "status_words": dict(sorted(rules.status_words.items())),
            "windows": windows,
            "superseding_series": sorted(rules.superseding_series),
        },
        ensure_ascii=False,
    )


def decode_rules(text: str, position: int) -> Rules:
    """Read what `encode_rules` wrote."""
    found = json.loads(text)
    return Rules(
        position=position,
        status_words=found["status_words"],
        windows={
            name: Window(stale_after_days=stale, dormant_after_days=dormant)
            for name, (stale, dormant) in found["windows"].items()
        },
        superseding_series=frozenset(found["superseding_series"]),
    )


def state_rules(message: settings_pb2.StateRules, position: int) -> Rules:
    """Read the rules of a crate's settings.

    Args:
        message: The crate's state rules; empty for none.
        position: KNOWLEDGE position of the settings.

    Returns:
        The rules.
    """
    return Rules(
        position=position,
        status_words=dict(message.status_words),
        windows={
            window.document_class: Window(
                stale_after_days=window.stale_after_days, dormant_after_days=window.dormant_after_days
            )
            for window in message.windows
        },
        superseding_series=frozenset(message.superseding_series),
    )


def told(message: Message, position: int, recorded_at: datetime) -> Told | None:
    """Read an event that matters to living states; a revision's facts come from its packs instead.

    Args:
        message: The event's message.
        position: Its KNOWLEDGE position.
        recorded_at: Its time.

    Returns:
        What it tells; None for other events.
    """
    match message:
        case events_pb.RelationDeclared():
            return Told(position, recorded_at, _statement(message, position))
        case events_pb.DocumentRetired():
            at = message.retired_at.ToDatetime(tzinfo=UTC)
            return Told(position, recorded_at, Retired(document_id=message.document_id, position=position, at=at))
        case events_pb.DocumentErased():
            erased = Erased(document_id=message.document_id, revision=message.revision, position=position)
            return Told(position, recorded_at, erased)
        case events_pb.CrateConfigured():
            return Told(position, recorded_at, state_rules(message.settings.state_rules, position))
        case events_pb.ClockAdvanced():
            return Told(position, recorded_at, Tick(message.now.ToDatetime(tzinfo=UTC)))
        case _:
            return None


def _statement(message: events_pb.RelationDeclared, position: int) -> Statement:
    return Statement(
        source_id=message.source_document_id,
        type=message.type,
        target_id=message.target_document_id,
        position=position,
        recorded_at=message.declared_at.ToDatetime(tzinfo=UTC),
        confidence_ppm=message.confidence_ppm,
        effective_at=message.effective_at.ToDatetime(tzinfo=UTC) if message.HasField("effective_at") else None,
        withdrawn=message.withdrawn,
    )


def state_changed(change: StateChange) -> index_events_pb.LivingStateChanged:
    """Write the signal of a change of state."""
    return index_events_pb.LivingStateChanged(
        document_id=change.document_id,
        revision=change.revision,
        from_state=change.before.value if change.before else "",
        to_state=change.after.value,
        position=change.position,
    )


def moment(message: Timestamp, now: datetime) -> datetime:
    """Read an instant.

    Args:
        message: As requested; one that is all zero counts as absent.
        now: What counts then.

    Returns:
        With a time zone.

    Raises:
        ValueError: When it lies outside the years 1 to 9999.
    """
    if not message.seconds and not message.nanos:
        return now
    try:
        return message.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError("as_of isn't an instant between the years 1 and 9999") from error


def states(values: Iterable[int]) -> frozenset[State]:
    """Read the states that a listing is asked for.

    Raises:
        ValueError: When one doesn't exist.
    """
    found = set()
    for value in values:
        state = _STATES.get(living_pb.LivingState.ValueType(value))
        if state is None:
            raise ValueError(f"states holds {value}: give active, superseded, deprecated, contested, stale or dormant")
        found.add(state)
    return frozenset(found)


def report(found: Report, as_of: datetime) -> living_pb.StateReport | None:
    """Tell the state of a revision at an instant; None before it is effective."""
    known = found.known
    span = state_at(known.timeline, as_of) if known.timeline else None
    if known.timeline is None or span is None:
        return None
    message = span_report(known, span, next_change(known.timeline, as_of))
    message.source_id, message.title = found.source_id, found.title
    return message


def span_report(known: Known, span: Span, until: datetime | None) -> living_pb.StateReport:
    """Tell one span of a timeline."""
    timeline = known.timeline
    message = living_pb.StateReport(
        document_id=known.document_id,
        revision=known.revision,
        state=_STATE_VALUES[span.verdict.state],
        rule=span.verdict.rule,
        other_document_id=span.verdict.other,
        detail=span.verdict.detail,
        known_since=known.known_from,
    )
    if timeline is not None:
        message.family, message.version = timeline.family, timeline.version
        message.not_in_force_yet = timeline.not_in_force_yet
        message.effective_at.FromDatetime(timeline.effective_at)
        if span.start > timeline.effective_at:
            message.since.FromDatetime(span.start)
    if until is not None:
        message.until.FromDatetime(until)
    return message


def timeline_reports(known: Known) -> list[living_pb.StateReport]:
    """Tell a whole timeline, by time."""
    if known.timeline is None:
        return []
    spans = known.timeline.spans
    ends = [span.start for span in spans[1:]]
    return [span_report(known, span, until) for span, until in zip(spans, [*ends, None], strict=True)]


def relation(edge: Edge, named: Mapping[str, RevisionFacts]) -> living_pb.Relation:
    """Tell an edge.

    Args:
        edge: The edge.
        named: Facts by document id, of the documents whose names are known.

    Returns:
        Its message.
    """
    source, target = named.get(edge.source), named.get(edge.target)
    message = living_pb.Relation(
        source_document_id=edge.source,
        type=edge.type,
        target_document_id=edge.target,
        confidence_ppm=edge.confidence_ppm,
        origin="declared" if edge.declared else "extracted",
        position=edge.position,
        reference=edge.reference,
        source_id=source.source_id if source else "",
        target_source_id=target.source_id if target else "",
    )
    if edge.declared and edge.since is not None:
        message.effective_at.FromDatetime(edge.since)
    return message
