"""What a search and a question come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.query.domain.extractive import CitedPlace
from services.query.domain.fusion import Fused
from services.query.domain.living import Moment, StateReport
from services.query.domain.modes import ModeDecision
from services.query.domain.sufficiency import Sufficiency
from services.query.domain.values import LaneUse, Passage, RecordKind


@dataclass(frozen=True, slots=True)
class Found:
    """A search result.

    Attributes:
        candidate: Ranks and scores.
        passage: Its chunk; of a document its first chunk.
        snippet: The part of the chunk that is nearest to the query.
        state: Its living state; None in profile v1.
    """

    candidate: Fused
    passage: Passage
    snippet: str
    state: StateReport | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What a search found.

    Attributes:
        results: Best first.
        lanes: How each lane took part.
        position: Cursor.
        kind: What the results stand for.
        notes: What else the caller should know.
    """

    results: tuple[Found, ...]
    lanes: tuple[LaneUse, ...]
    position: int
    kind: RecordKind = RecordKind.CHUNK
    notes: tuple[str, ...] = ()


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
class Considered:
    """Why a candidate is in or out.

    Attributes:
        candidate: Ranks and scores.
        source_id: Of its document; empty where its chunk was not read.
        state: Its living state; None where unknown.
        expanded_from: Document whose relation brought it; empty when a lane did.
        cited: The answer cites it.
        reason: In words.
    """

    candidate: Fused
    source_id: str
    state: StateReport | None
    expanded_from: str
    cited: bool
    reason: str


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
        moment: That the answer holds for; None in profile v1.
        sufficiency: How much evidence it rests on; None in profile v1.
        states: Of cited documents, by document id and revision; empty in profile v1.
        explanation: Why each candidate is in or out; empty unless asked for.
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
    moment: Moment | None = None
    sufficiency: Sufficiency | None = None
    states: Mapping[tuple[str, int], StateReport] = field(default_factory=dict)
    explanation: tuple[Considered, ...] = ()


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
