"""What a batch of facts changes in the living states of a crate, and what of it can be seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from services.index.domain.force import NEVER, Force, instant
from services.index.domain.living.values import (
    OUT_OF_FORCE,
    RETIRED,
    Fact,
    RevisionKey,
    Span,
    State,
    Timeline,
    span_at,
    state_at,
)


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed, as far as signals are concerned."""

    now: datetime


@dataclass(frozen=True, slots=True)
class Told:
    """A fact, and the event that told it.

    Attributes:
        position: KNOWLEDGE position of the event with which it became known; at or after the fact's own.
        recorded_at: Time of the event.
        fact: The fact.
    """

    position: int
    recorded_at: datetime
    fact: Fact | Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A timeline and while it was known.

    Attributes:
        document_id: Document.
        revision: Revision.
        known_from: KNOWLEDGE position from which on it was known.
        known_until: Position from which on another was; None: it still is.
        recorded_at: Time of the event at `known_from`.
        until_known_from: Position from which the end of its force is known, see `Force`.
        first_known: Position from which any timeline of the revision was known.
        timeline: None once the revision is erased.
    """

    document_id: str
    revision: int
    known_from: int
    known_until: int | None = None
    recorded_at: datetime
    until_known_from: int = 0
    first_known: int = 0
    timeline: Timeline | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A known timeline and what its revision is called.

    Attributes:
        known: The timeline.
        source_id: Name of the document in its crate.
        title: Title of the revision.
    """

    known: Known
    source_id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A change of state that can be seen now.

    Attributes:
        document_id: Document.
        revision: Revision.
        before: State until now; None: it wasn't effective or known.
        after: State from now on.
        position: KNOWLEDGE position of the event that brought it.
    """

    document_id: str
    revision: int
    before: State | None
    after: State
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingChange:
    """What to write for one crate.

    Attributes:
        crate_id: Crate.
        told: The facts, in log order.
        timelines: New timelines in order of position; each closes the one before.
        seen: Changes of state to signal.
        clock: Last tick; None for none.
    """

    crate_id: str
    told: tuple[Told, ...] = ()
    timelines: tuple[Known, ...] = ()
    seen: tuple[StateChange, ...] = ()
    clock: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the tables hold of a crate, to begin with.

    Attributes:
        facts: In any order.
        known: Timelines that are known now.
        clock: Last tick; None for none.
    """

    facts: tuple[Fact, ...]
    known: tuple[Known, ...]
    clock: datetime | None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def force_of(timeline: Timeline, *, until_known_from: int = 0) -> Force:
    """From when to when a revision counts.

    Args:
        timeline: Of the revision.
        until_known_from: See `Force`.

    Returns:
        Its force up to the last stretch out of force that never ends.
    """
    until = gone = NEVER
    for span in reversed(timeline.spans):
        if span.verdict.state not in OUT_OF_FORCE:
            break
        until = instant(span.start)
        if span.verdict.rule == RETIRED:
            gone = until
    return Force(
        effective_from=instant(timeline.effective_at),
        in_force_until=until,
        position=timeline.position,
        gone_from=gone,
        until_known_from=until_known_from,
    )


def has_gap(timeline: Timeline) -> bool:
    """Whether it goes out of force and comes back, which a force can't say."""
    out = [span.verdict.state in OUT_OF_FORCE for span in timeline.spans]
    return any(one and not other for one, other in pairwise(out))


def counts(spans: Sequence[Span], as_of: datetime) -> bool:
    """Whether a revision with these spans is effective and neither superseded nor deprecated at an instant."""
    span = span_at(spans, as_of)
    return span is not None and span.verdict.state not in OUT_OF_FORCE


def from_instant(microseconds: int) -> datetime:
    """The time that the lanes' unit stands for."""
    return _EPOCH + timedelta(microseconds=microseconds)


def seen_at(
    key: RevisionKey, before: Timeline | None, after: Timeline | None, now: datetime, position: int
) -> tuple[StateChange, ...]:
    """The change of state that a new timeline brings at an instant; none where it can't be seen."""
    return seen_between(key, state_of(before, now), state_of(after, now), position)


def seen_between(key: RevisionKey, was: State | None, now_is: State | None, position: int) -> tuple[StateChange, ...]:
    """The change from one state to another; none when nothing changed or nothing is left, nor for what begins active."""
    if now_is is None or now_is is (was or State.ACTIVE):
        return ()
    return (StateChange(document_id=key[0], revision=key[1], before=was, after=now_is, position=position),)


def state_of(timeline: Timeline | None, moment: datetime) -> State | None:
    """The bare state at an instant; None before the revision is effective or known."""
    span = state_at(timeline, moment) if timeline else None
    return span.verdict.state if span else None


def chained(rows: Iterable[Known]) -> tuple[Known, ...]:
    """Let each row of a batch end where the next one of its revision begins; the last of a position counts."""
    last: dict[tuple[RevisionKey, int], Known] = {}
    for row in rows:
        last[(row.document_id, row.revision), row.known_from] = row
    found: list[Known] = []
    ends: dict[RevisionKey, int] = {}
    for (key, position), row in reversed(last.items()):
        found.append(replace(row, known_until=ends[key]) if key in ends else row)
        ends[key] = position
    return tuple(reversed(found))
