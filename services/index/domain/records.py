"""What a lane stores, what it is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from services.index.domain.force import Force


class Kind(StrEnum):
    """Level of a record. Statistics of one kind never count records of another."""

    CHUNK = "chunk"
    DOCUMENT = "document"


class Form(StrEnum):
    """How a document is weighed and indexed."""

    TEXT = "text"
    STRUCTURED = "structured"
    INFORMAL = "informal"


class Reach(StrEnum):
    """Which revisions may be found."""

    CURRENT = "current"
    IN_FORCE = "in_force"
    EVERY = "every"


EVERY_KIND: tuple[Kind, ...] = (Kind.CHUNK, Kind.DOCUMENT)
EVERY_REVISION = 0
"""In place of a revision: all that a document has."""

_ORDINAL_BITS = 22
MAX_STATEMENTS = (1 << 10) - 1

RevisionKey = tuple[str, int]
"""Document id and revision."""


@dataclass(frozen=True, slots=True)
class Record:
    """One searchable record.

    Attributes:
        document_id: 32 lower-case hex digits.
        revision: 1, 2, 3 ... of its document.
        ordinal: Chunk ordinal from 0; 0 for a record of kind document.
        kind: Level of the record.
        form: Form of its document.
        source_domain: Independent origin of its document.
        force: When its revision counts; the same in all records of a revision.
        statement: Which of the chunk's propositions it is, from 1; 0 for the chunk itself.
    """

    document_id: str
    revision: int
    ordinal: int
    kind: Kind
    form: Form
    source_domain: str
    force: Force
    statement: int = 0

    @property
    def place(self) -> int:
        """Ordinal and statement in one number below 2^32, as lanes store it."""
        return place_of(self.ordinal, self.statement)


@dataclass(frozen=True, slots=True)
class KeywordRecord:
    """A record with its analysed terms, each term once per occurrence.

    Attributes:
        record: What the terms belong to.
        title: Terms of the document's title.
        headings: Terms of the heading path of a chunk, or of a document's headings.
        text: Terms of the text (and of the context of a chunk).
        entities: Terms of `analysis.entities`, for informal content; else empty.
    """

    record: Record
    title: Sequence[str]
    headings: Sequence[str]
    text: Sequence[str]
    entities: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class KeywordChange:
    """Replaces a revision's records in the keyword lane: all of `kinds` go, `records` come.

    Attributes:
        document_id: Document whose records are replaced.
        revision: Revision whose records are replaced; `EVERY_REVISION` for those of all.
        records: Records to add, each of what is replaced and of a kind in `kinds`; empty to only delete.
        kinds: Kinds that are deleted first.
    """

    document_id: str
    revision: int
    records: tuple[KeywordRecord, ...] = ()
    kinds: tuple[Kind, ...] = EVERY_KIND


@dataclass(frozen=True, slots=True, eq=False)
class VectorChange:
    """Replaces a revision's records in the vector lane: all of `kinds` go, `records` come.

    Attributes:
        document_id: Document whose records are replaced.
        revision: Revision whose records are replaced; `EVERY_REVISION` for those of all.
        records: Records to add, each of what is replaced and of a kind in `kinds`; empty to only delete.
        vectors: float32[n, d], row i belongs to records[i]; of any length but zero, finite. None where n = 0.
        kinds: Kinds that are deleted first.
    """

    document_id: str
    revision: int
    records: tuple[Record, ...] = ()
    vectors: NDArray[np.float32] | None = None
    kinds: tuple[Kind, ...] = EVERY_KIND


@dataclass(frozen=True, slots=True)
class ForceChange:
    """Says anew when a revision counts; its records and vectors stay. Without records it changes nothing.

    Attributes:
        document_id: Document.
        revision: One of its revisions.
        form: Form of the revision's records.
        force: When it counts from now on.
    """

    document_id: str
    revision: int
    form: Form
    force: Force


@dataclass(frozen=True, slots=True)
class LaneFilter:
    """Which records may be found. Lanes apply it inside their engine, never after the limit.

    Attributes:
        kind: Level asked for.
        forms: Forms that count; empty for all.
        document_ids: Documents that count; empty for all.
        source_domains: Source domains that count; empty for all.
        reach: Which revisions count.
        as_of: Instant that the reach is about, microseconds since 1970 in UTC; says nothing to `Reach.CURRENT`.
        at: Highest KNOWLEDGE position that a revision may have come with; 0 for any.
        also: Revisions that count although reach, instant and position leave them out.
        without: Revisions that don't count although reach, instant and position let them in. None is in both lists.
    """

    kind: Kind = Kind.CHUNK
    forms: tuple[Form, ...] = ()
    document_ids: tuple[str, ...] = ()
    source_domains: tuple[str, ...] = ()
    reach: Reach = Reach.CURRENT
    as_of: int = 0
    at: int = 0
    also: tuple[RevisionKey, ...] = ()
    without: tuple[RevisionKey, ...] = ()


@dataclass(frozen=True, slots=True)
class LaneHit:
    """A record found. Hits come by falling score, then by document id, revision and place.

    Attributes:
        document_id: 32 lower-case hex digits.
        revision: Revision of the record.
        ordinal: Chunk ordinal; 0 for a record of kind document.
        score: BM25 score, or cosine in -1 to 1.
        form: Form of its document.
        statement: See `Record`.
    """

    document_id: str
    revision: int
    ordinal: int
    score: float
    form: Form
    statement: int = 0

    @property
    def place(self) -> int:
        """See `Record`."""
        return place_of(self.ordinal, self.statement)


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """How common terms are among the records of one kind.

    Attributes:
        record_count: Records of the kind.
        document_frequency: Records that hold the term in any field; 0 for a term that none holds.
    """

    record_count: int
    document_frequency: Mapping[str, int] = field(default_factory=dict)


def hit_order(hit: LaneHit) -> tuple[float, str, int, int]:
    """Sort key that makes every ranking reproducible.

    Args:
        hit: A hit of a lane.

    Returns:
        Falling score first, then document id, revision and place.
    """
    return (-hit.score, hit.document_id, hit.revision, hit.place)


def place_of(ordinal: int, statement: int) -> int:
    """One number for a record of a revision: its statement above the chunk's ordinal.

    Raises:
        ValueError: When either is too large.
    """
    if not (0 <= ordinal < 1 << _ORDINAL_BITS and 0 <= statement <= MAX_STATEMENTS):
        raise ValueError(f"chunk {ordinal}, statement {statement}: a revision has at most 2^{_ORDINAL_BITS} chunks")
    return statement << _ORDINAL_BITS | ordinal


def parts_of(place: int) -> tuple[int, int]:
    """Ordinal and statement of a place."""
    return place & ((1 << _ORDINAL_BITS) - 1), place >> _ORDINAL_BITS


def strongest(hits: Sequence[LaneHit]) -> list[LaneHit]:
    """Keep the best record of each chunk.

    Args:
        hits: Best first.

    Returns:
        One hit per chunk, order kept.
    """
    best: dict[tuple[str, int, int], LaneHit] = {}
    for hit in hits:
        best.setdefault((hit.document_id, hit.revision, hit.ordinal), hit)
    return list(best.values())


class Within:
    """Whether a filter lets a revision in, by what the rows say: for hits of lanes that may be ahead of the rows."""

    def __init__(self, lane_filter: LaneFilter) -> None:
        self._filter = lane_filter
        self._also = frozenset(lane_filter.also)
        self._without = frozenset(lane_filter.without)

    def __call__(self, key: RevisionKey, force: Force) -> bool:
        """Look at one revision.

        Args:
            key: Its name.
            force: When it counts.

        Returns:
            True when reach, instant and position let it in, but for the two lists.
        """
        if key in self._also:
            return True
        asked = self._filter
        if key in self._without or (asked.at and force.position > asked.at):
            return False
        match asked.reach:
            case Reach.CURRENT:
                return force.current
            case Reach.IN_FORCE:
                told_later = 0 < asked.at < force.until_known_from
                return force.effective_from <= asked.as_of and (told_later or asked.as_of < force.in_force_until)
            case Reach.EVERY:
                return force.effective_from <= asked.as_of < force.gone_from
