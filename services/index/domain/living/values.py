"""What living states are computed from, and what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias


class State(StrEnum):
    """Living state of a revision."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DEPRECATED = "deprecated"
    CONTESTED = "contested"
    STALE = "stale"
    DORMANT = "dormant"


OUT_OF_FORCE = frozenset({State.SUPERSEDED, State.DEPRECATED})

SUPERSEDES = "supersedes"
DERIVED_FROM = "derived_from"
CITES = "cites"
ELABORATES = "elaborates"
IMPLEMENTS = "implements"
CONTRADICTS = "contradicts"
IS_VERSION_OF = "is_version_of"
TYPES = (SUPERSEDES, DERIVED_FROM, CITES, ELABORATES, IMPLEMENTS, CONTRADICTS, IS_VERSION_OF)
DEPRECATES = "deprecates"
"""From a notice to what it names. Not one of the seven: it is read from a title and never shown."""

CERTAIN_PPM = 1_000_000
RETIRED = "retired"
"""Rule of what is retired."""
RevisionKey: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionFacts:
    """A revision of a document, as it was recorded.

    Attributes:
        document_id: 32 hex digits.
        revision: 1, 2, 3 ... per document.
        position: KNOWLEDGE position of its first event.
        effective_at: As declared, else when it was recorded; with a time zone.
        recorded_at: When it was recorded.
        source_id: Name of the document in its crate.
        title: As resolved.
        source_domain: Independent origin.
        uri: Where people can read it.
        metadata: Keys as the document or its publisher wrote them.
        links: Targets of links, as written.
    """

    document_id: str
    revision: int
    position: int
    effective_at: datetime
    recorded_at: datetime
    source_id: str = ""
    title: str = ""
    source_domain: str = ""
    uri: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Somebody's statement "source TYPE target"; the last one about the three holds.

    Attributes:
        source_id: Document id of the source.
        type: One of `TYPES`.
        target_id: Document id of the target.
        confidence_ppm: 0 to 1,000,000.
        effective_at: Own effective time; None: that of its source.
        recorded_at: When it was recorded.
        position: KNOWLEDGE position.
        withdrawn: It is taken back.
    """

    source_id: str
    type: str
    target_id: str
    position: int
    recorded_at: datetime
    confidence_ppm: int = CERTAIN_PPM
    effective_at: datetime | None = None
    withdrawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """The document went out of force: the revisions that were known by then."""

    document_id: str
    position: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Revisions up to this one are gone for good."""

    document_id: str
    revision: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """After how many days without a new revision or relation a state changes; 0 is off."""

    stale_after_days: int = 0
    dormant_after_days: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a crate adds to the rules; the one of the highest position holds.

    Attributes:
        position: KNOWLEDGE position of the settings.
        status_words: Words in any case, and superseded, deprecated, dormant, draft or active.
        windows: By document class; the empty class is for all that have none of their own.
        superseding_series: Families in which the newest version in force supersedes the others; "*" for all.
    """

    position: int = 0
    status_words: Mapping[str, str] = field(default_factory=dict)
    windows: Mapping[str, Window] = field(default_factory=dict)
    superseding_series: frozenset[str] = frozenset()


Fact: TypeAlias = RevisionFacts | Statement | Retired | Erased | Rules


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edge:
    """A relation. It takes effect once its source has come into force, and not before `since`.

    Attributes:
        source: Document id; empty while a reference to the source names no known document.
        type: One of `TYPES`, or `DEPRECATES`.
        target: Document id; empty while a reference to the target names no known document.
        since: No effect before; None: from when its source is in force.
        until: When it ends, excluded; None: never.
        confidence_ppm: 0 to 1,000,000.
        declared: Stated from outside; else read from a document.
        position: KNOWLEDGE position of what states it.
        reference: What the document says; empty when declared.
    """

    source: str
    type: str
    target: str
    since: datetime | None = None
    until: datetime | None = None
    confidence_ppm: int = CERTAIN_PPM
    declared: bool = False
    position: int = 0
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state and what decided it.

    Attributes:
        state: The state.
        rule: Name of the rule.
        other: Document on the other end of the edge that decided; empty when none did.
        detail: Status word or date that decided, as the document has it.
    """

    state: State
    rule: str
    other: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A verdict from an instant on, up to the next span."""

    start: datetime
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The states of one revision.

    Attributes:
        document_id: Document.
        revision: Revision.
        position: KNOWLEDGE position of the revision's first event.
        effective_at: From when on it counts at all; the first span starts here.
        family: Version series; empty when there is none.
        version: Version in it.
        not_in_force_yet: A draft or the like.
        spans: By time; neighbours differ.
    """

    document_id: str
    revision: int
    position: int
    effective_at: datetime
    family: str = ""
    version: str = ""
    not_in_force_yet: bool = False
    spans: tuple[Span, ...]


def state_at(timeline: Timeline, moment: datetime) -> Span | None:
    """Look a state up.

    Args:
        timeline: Of one revision.
        moment: With a time zone.

    Returns:
        The span that holds; None before the revision is effective.
    """
    return span_at(timeline.spans, moment)


def span_at(spans: Iterable[Span], moment: datetime) -> Span | None:
    """The span that holds at an instant, of spans by time; None before the first."""
    found = None
    for span in spans:
        if span.start > moment:
            break
        found = span
    return found


def next_change(timeline: Timeline, moment: datetime) -> datetime | None:
    """When the next span after an instant starts; None when none does."""
    return next((span.start for span in timeline.spans if span.start > moment), None)
