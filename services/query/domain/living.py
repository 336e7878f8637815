"""Moments, reaches, living states and relations, as the index tells them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum


class Reach(Enum):
    """Which revisions a lane may return."""

    CURRENT = "current"
    IN_FORCE = "in_force"
    EVERY = "every"


class LivingState(Enum):
    """The living state of a revision."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DEPRECATED = "deprecated"
    CONTESTED = "contested"
    STALE = "stale"
    DORMANT = "dormant"


class RelationType(Enum):
    """Type of an edge: "source TYPE target"; newer supersedes older."""

    SUPERSEDES = "supersedes"
    DERIVED_FROM = "derived_from"
    CITES = "cites"
    ELABORATES = "elaborates"
    IMPLEMENTS = "implements"
    CONTRADICTS = "contradicts"
    IS_VERSION_OF = "is_version_of"


class Role(Enum):
    """What a cited place is to the answer."""

    SUPPORT = "support"
    CONTRA = "contra"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment in two clocks.

    Attributes:
        as_of: Instant that the answer must hold for; None: now.
        at: KNOWLEDGE position up to which facts count; 0: everything known.
    """

    as_of: datetime | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """What a look into the index may see; by default what profile v1 sees."""

    reach: Reach = Reach.CURRENT
    moment: Moment = field(default_factory=Moment)


@dataclass(frozen=True, slots=True)
class StateReport:
    """The living state of one revision at a moment, and what decided it.

    Attributes:
        document_id: Document.
        revision: Its revision.
        state: None where the index gave none that this version knows.
        rule: The rule that decided.
        other_document_id: The other end of the edge that decided; empty when none did.
        detail: Status word or date that decided.
        since: Since when; None: since it came into force.
        until: When it changes next by time alone; None: never.
        not_in_force_yet: A draft or the like.
        family: Version series; may be empty.
        version: In its series; may be empty.
        effective_at: When the revision came into force; None when unknown.
        source_id: Of the document.
        title: Of the document.
        known_since: KNOWLEDGE position since which this has been known.
    """

    document_id: str
    revision: int
    state: LivingState | None = None
    rule: str = ""
    other_document_id: str = ""
    detail: str = ""
    since: datetime | None = None
    until: datetime | None = None
    not_in_force_yet: bool = False
    family: str = ""
    version: str = ""
    effective_at: datetime | None = None
    source_id: str = ""
    title: str = ""
    known_since: int = 0

    @property
    def in_circle(self) -> bool:
        """It is contested since it and another document supersede each other."""
        return self.rule == "supersedes_cycle"

    @property
    def in_force(self) -> bool:
        """Neither superseded nor deprecated; an unknown state counts as in force, since the graph may be incomplete."""
        return self.state not in {LivingState.SUPERSEDED, LivingState.DEPRECATED}

    @property
    def name(self) -> str:
        """What people call it: its source id, else its document id."""
        return self.source_id or self.document_id


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge between two known documents.

    Attributes:
        source: Document id.
        kind: Type.
        target: Document id.
        confidence: 0 to 1.
    """

    source: str
    kind: RelationType
    target: str
    confidence: float = 1.0

    def other(self, document_id: str) -> str:
        """The end that isn't this document."""
        return self.target if document_id == self.source else self.source


@dataclass(frozen=True, slots=True)
class Family:
    """A version series, oldest member first."""

    name: str
    members: tuple[StateReport, ...]
