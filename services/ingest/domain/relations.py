"""Statements about relations: what is accepted, and what one comes to given the statement that holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from blake3 import blake3

from services.ingest.domain import headers
from services.ingest.domain.refusals import Refused, Unknown

PPM: Final = 1_000_000


class RelationType(StrEnum):
    """What the source of an edge is to its target."""

    SUPERSEDES = "supersedes"
    DERIVED_FROM = "derived_from"
    CITES = "cites"
    ELABORATES = "elaborates"
    IMPLEMENTS = "implements"
    CONTRADICTS = "contradicts"
    IS_VERSION_OF = "is_version_of"


class RelationOutcome(StrEnum):
    """What a statement came to."""

    DECLARED = "declared"
    WITHDRAWN = "withdrawn"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a statement: a document by its id or by its source id, the other is empty."""

    document_id: str = ""
    source_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a caller states.

    Attributes:
        source: "source TYPE target": for supersedes the newer document.
        type: As the caller gave it.
        target: The other end.
        confidence: 0 to 1; None for certain.
        effective_at: Aware; None when the source's own time counts.
        withdrawn: Takes an earlier statement back.
    """

    source: End
    type: str
    target: End
    confidence: float | None = None
    effective_at: datetime | None = None
    withdrawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A statement whose ends are known by document id.

    Attributes:
        source: Document id.
        type: One of the seven.
        target: Document id.
        confidence_ppm: Millionths.
        effective_at: UTC; None when the source's own time counts.
        withdrawn: The statement is taken back.
    """

    source: str
    type: RelationType
    target: str
    confidence_ppm: int = PPM
    effective_at: datetime | None = None
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class RelationResult:
    """What a statement came to.

    Attributes:
        position: Of the fact that holds.
        repeats: A publisher's event of that id was carried out before: this is what it came to then.
    """

    source: str
    target: str
    position: int
    outcome: RelationOutcome | str
    repeats: bool = False


def checked(statement: Statement) -> Statement:
    """Check what can be checked without knowing any document.

    Args:
        statement: As the caller gave it.

    Returns:
        The same with its type in lower case and its time in UTC.

    Raises:
        Refused: When an end is named twice or not at all, or type, confidence or time can't be used.
    """
    for name, end in (("source", statement.source), ("target", statement.target)):
        if bool(end.document_id) == bool(end.source_id):
            raise Refused(
                f"name the {name} of the relation by {name}_document_id or by {name}_source_id, by one of the two"
            )
    kind = statement.type.strip().lower().replace("-", "_")
    if kind not in list(RelationType):
        raise Refused(f"type {statement.type[:40]!r} is no relation: choose from {', '.join(RelationType)}")
    confidence = statement.confidence
    if confidence is not None and not (math.isfinite(confidence) and 0 <= confidence <= 1):
        raise Refused(f"confidence {confidence} is out of range: choose 0 to 1, or leave it out for 1")
    if statement.withdrawn and not (confidence is None and statement.effective_at is None):
        raise Refused("a withdrawal takes back what was stated: leave confidence and effective_at out")
    return Statement(
        source=statement.source,
        type=kind,
        target=statement.target,
        confidence=confidence,
        effective_at=headers.utc(statement.effective_at),
        withdrawn=statement.withdrawn,
    )


def edge(statement: Statement, source: str, target: str) -> Edge:
    """Put a checked statement together with the documents that it is about.

    Args:
        statement: Checked.
        source: Document id.
        target: Document id.

    Returns:
        The edge.

    Raises:
        Refused: When both ends are the same document.
    """
    if source == target:
        raise Refused(f"a document can't be related to itself: source and target are both {source}")
    return Edge(
        source=source,
        type=RelationType(statement.type),
        target=target,
        confidence_ppm=PPM if statement.confidence is None else round(statement.confidence * PPM),
        effective_at=statement.effective_at,
        withdrawn=statement.withdrawn,
    )


def decide(held: Edge | None, wanted: Edge) -> Edge | None:
    """Decide what to record.

    Args:
        held: The last statement about these ends and this type; None when there was none.
        wanted: What is stated now.

    Returns:
        The edge to record; None when it holds already. A withdrawal keeps what it takes back.

    Raises:
        Unknown: When something is taken back that was never stated.
    """
    if not wanted.withdrawn:
        return None if held == wanted else wanted
    if held is None:
        raise Unknown(
            f"it was never stated that {wanted.source} {wanted.type} {wanted.target}: there is nothing to withdraw "
            "(what a document itself says goes with its next revision)"
        )
    if held.withdrawn:
        return None
    return Edge(
        source=held.source,
        type=held.type,
        target=held.target,
        confidence_ppm=held.confidence_ppm,
        effective_at=held.effective_at,
        withdrawn=True,
    )


def aggregate(secret: bytes, source: str, kind: str, target: str) -> str:
    """Id of all statements about an edge, see `headers.document_id`.

    Args:
        secret: The crate's 32 bytes.
        source: Document id.
        kind: Type.
        target: Document id.

    Returns:
        32 hex digits; no document has the same, since no source id holds NUL.
    """
    name = f"relation\x00{source}\x00{kind}\x00{target}"
    return blake3(name.encode(), key=secret).hexdigest(length=16)
