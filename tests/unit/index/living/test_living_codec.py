"""Events, signals, instants and stored text of living states."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from affidavit.index.v1 import living_pb2 as living_pb
from affidavit.ingest.v1 import ingest_events_pb2 as events_pb
from affidavit.ingest.v1 import settings_pb2
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.index.codec import living as codec
from services.index.domain.force import NEVER, Force, instant
from services.index.domain.living.changes import (
    Known,
    Report,
    StateChange,
    Tick,
    Told,
    chained,
    counts,
    force_of,
    from_instant,
    has_gap,
    seen_at,
)
from services.index.domain.living.values import (
    Edge,
    Erased,
    Fact,
    Retired,
    Rules,
    Span,
    State,
    Statement,
    Timeline,
    Verdict,
    Window,
)

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
LATER = datetime(2024, 6, 1, 12, 0, 0, 1, tzinfo=UTC)
LAST = datetime(2024, 7, 1, tzinfo=UTC)


def stamp(moment: datetime) -> Timestamp:
    """A protobuf instant."""
    found = Timestamp()
    found.FromDatetime(moment)
    return found


def timeline(*states: State) -> Timeline:
    """States one after the other, from NOON on."""
    starts = (NOON, LATER, LAST)
    spans = tuple(
        Span(start, Verdict(state, "rule", "b", "d\N{EN DASH}1")) for start, state in zip(starts, states, strict=False)
    )
    return Timeline(document_id="a", revision=1, position=3, effective_at=NOON, family="f", version="1", spans=spans)


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        (
            events_pb.RelationDeclared(
                source_document_id="a", type="cites", target_document_id="b", confidence_ppm=5,
                declared_at=stamp(NOON), effective_at=stamp(LATER),
            ),
            Statement(
                source_id="a", type="cites", target_id="b", confidence_ppm=5, recorded_at=NOON, effective_at=LATER, position=7
            ),
        ),
        (
            events_pb.RelationDeclared(source_document_id="a", type="cites", target_document_id="b", declared_at=stamp(NOON), withdrawn=True),
            Statement(source_id="a", type="cites", target_id="b", confidence_ppm=0, recorded_at=NOON, position=7, withdrawn=True),
        ),
        (events_pb.DocumentRetired(document_id="a", retired_at=stamp(NOON)), Retired(document_id="a", position=7, at=NOON)),
        (events_pb.DocumentErased(document_id="a", revision=2), Erased(document_id="a", revision=2, position=7)),
        (events_pb.ClockAdvanced(now=stamp(NOON)), Tick(NOON)),
        (
            events_pb.CrateConfigured(
                settings=settings_pb2.CrateSettings(
                    state_rules=settings_pb2.StateRules(
                        status_words={"x": "draft"},
                        windows=[settings_pb2.StateWindow(document_class="c", stale_after_days=1, dormant_after_days=2)],
                        superseding_series=["*"],
                    )
                )
            ),
            Rules(
                position=7,
                status_words={"x": "draft"},
                windows={"c": Window(stale_after_days=1, dormant_after_days=2)},
                superseding_series=frozenset("*"),
            ),
        ),
    ],
)  # fmt: skip
def test_events(message: Message, fact: Fact | Tick) -> None:
    assert codec.told(message, 7, LATER) == Told(7, LATER, fact)


def test_other_events_tell_nothing() -> None:
    assert codec.told(events_pb.JobConfigured(), 7, NOON) is None


def test_signals() -> None:
    change = StateChange(document_id="a", revision=1, before=None, after=State.STALE, position=4)
    message = codec.state_changed(change)
    assert (message.from_state, message.to_state, message.position) == ("", "stale", 4)
    first = codec.state_changed(
        StateChange(document_id="a", revision=1, before=State.ACTIVE, after=State.STALE, position=4)
    )
    assert first.from_state == "active"


def test_stored_text_comes_back() -> None:
    spans = timeline(State.ACTIVE, State.SUPERSEDED).spans
    assert codec.decode_spans(codec.encode_spans(spans)) == spans
    rules = Rules(
        position=4,
        status_words={"x": "draft"},
        windows={"": Window(stale_after_days=3)},
        superseding_series=frozenset("*"),
    )
    assert codec.decode_rules(codec.encode_rules(rules), 4) == rules


def test_instants() -> None:
    assert codec.moment(Timestamp(), NOON) == NOON
    assert codec.moment(stamp(LATER), NOON) == LATER
    with pytest.raises(ValueError, match="between the years"):
        codec.moment(Timestamp(seconds=1 << 50), NOON)
    assert from_instant(instant(LATER)) == LATER


def test_states_that_a_listing_asks_for() -> None:
    assert codec.states([living_pb.LIVING_STATE_STALE]) == {State.STALE}
    with pytest.raises(ValueError, match="states holds 0"):
        codec.states([0])


def test_reports() -> None:
    known = Known(
        document_id="a", revision=1, known_from=9, recorded_at=NOON, timeline=timeline(State.ACTIVE, State.STALE)
    )
    report = codec.report(Report(known=known, source_id="s", title="t"), LATER)
    assert report is not None
    assert (report.state, report.source_id, report.known_since) == (living_pb.LIVING_STATE_STALE, "s", 9)
    assert report.since.ToDatetime(tzinfo=UTC) == LATER
    assert not report.HasField("until")
    first, second = codec.timeline_reports(known)
    assert not first.HasField("since")
    assert first.until == second.since
    assert codec.report(Report(known=known, source_id="s", title="t"), datetime(2023, 1, 1, tzinfo=UTC)) is None
    erased = Known(document_id="a", revision=1, known_from=9, recorded_at=NOON, timeline=None)
    assert codec.timeline_reports(erased) == []
    assert codec.report(Report(known=erased, source_id="", title=""), NOON) is None
    assert not codec.span_report(erased, Span(NOON, Verdict(State.ACTIVE, "default")), None).HasField("effective_at")


def test_relations() -> None:
    declared = codec.relation(Edge(source="a", type="cites", target="b", since=NOON, declared=True), {})
    assert (declared.origin, declared.effective_at) == ("declared", stamp(NOON))
    own = codec.relation(Edge(source="a", type="cites", target="", since=NOON, reference="x"), {})
    assert (own.origin, own.reference, own.HasField("effective_at")) == ("extracted", "x", False)


def test_forces() -> None:
    gone = timeline(State.ACTIVE, State.SUPERSEDED, State.DEPRECATED)
    assert force_of(gone) == Force(effective_from=instant(NOON), in_force_until=instant(LATER), position=3)
    back = timeline(State.ACTIVE, State.SUPERSEDED, State.CONTESTED)
    assert force_of(back).in_force_until == NEVER
    assert [has_gap(gone), has_gap(back)] == [False, True]
    assert [counts(back.spans, moment) for moment in (NOON, LATER, LAST)] == [True, False, True]
    assert not counts((), NOON)


def test_changes_that_are_seen() -> None:
    before, after = timeline(State.ACTIVE), timeline(State.ACTIVE, State.STALE)
    assert seen_at(("a", 1), before, after, NOON, 4) == ()
    assert seen_at(("a", 1), before, None, NOON, 4) == ()
    assert seen_at(("a", 1), before, after, LATER, 4) == (
        StateChange(document_id="a", revision=1, before=State.ACTIVE, after=State.STALE, position=4),
    )


def test_rows_of_a_batch_follow_each_other() -> None:
    def row(position: int, revision: int = 1) -> Known:
        return Known(document_id="a", revision=revision, known_from=position, recorded_at=NOON, timeline=None)

    found = chained([row(1), row(1), row(1, 2), row(3)])
    assert [(one.revision, one.known_from, one.known_until) for one in found] == [(1, 1, 3), (2, 1, None), (1, 3, None)]
