"""What a search and a question come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from services.query.domain.extractive import CitedPlace
from services.query.domain.fusion import Fused
from services.query.domain.modes import ModeDecision
from services.query.domain.values import LaneUse, Passage, RecordKind


@dataclass(frozen=True, slots=True)
class Found:
    """A search result.

    Attributes:
        candidate: Ranks and scores.
        passage: Its chunk; of a document its first chunk.
        snippet: The part of the chunk that is nearest to the query.
    """

    candidate: Fused
    passage: Passage
    snippet: str


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What a search found.

    Attributes:
        results: Best first.
        lanes: How each lane took part.
        position: Cursor.
        kind: What the results stand for.
    """

    results: tuple[Found, ...]
    lanes: tuple[LaneUse, ...]
    position: int
    kind: RecordKind = RecordKind.CHUNK


@dataclass(frozen=True, slots=True)
class Source:
    """A cited document, once.

    Attributes:
        marker: Its first marker in the text.
        passage: A cited chunk of it.
    """

    marker: int
    passage: Passage


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """An answer, or that there is none.

    Attributes:
        answer_id: 32 hex digits.
        answered: False for a no-answer.
        text: As delivered.
        places: Cited places that the text still names.
        sources: Cited documents; empty where the crate wants no list.
        mode: Requested, applied and why.
        lanes: How each lane took part.
        position: Cursor.
        receipt_id: Empty when unsigned.
        receipt: The bundle; empty when unsigned.
        receipt_status: "signed", or "unsigned: " and the reason.
        unsupported: Sentences that lost their source.
        notes: What else the caller should know.
        answered_by: "extractive".
    """

    answer_id: str
    answered: bool
    text: str
    places: tuple[CitedPlace, ...]
    sources: tuple[Source, ...]
    mode: ModeDecision
    lanes: tuple[LaneUse, ...]
    position: int
    receipt_id: str = ""
    receipt: bytes = field(default=b"", repr=False)
    receipt_status: str = ""
    unsupported: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    answered_by: str = "extractive"


def sources_of(places: Sequence[CitedPlace]) -> tuple[Source, ...]:
    """List the cited documents.

    Args:
        places: Cited places in the order of their markers.

    Returns:
        One source per revision of a document, with its first marker.
    """
    found: dict[tuple[str, int], Source] = {}
    for place in places:
        key = place.unit.passage.key
        found.setdefault((key.document_id, key.revision), Source(place.marker, place.unit.passage))
    return tuple(found.values())
