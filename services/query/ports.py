"""What the query service needs from others.

Every method raises the outcomes of `services.kernel.errors`: Unavailable when the other side doesn't answer, NotFound
for an unknown crate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.query.domain.claims import AnswerFact, Claim, IssuedReceipt, RawAnswer, Repaired
from services.query.domain.crate import CrateRules
from services.query.domain.evidence import Vector
from services.query.domain.living import Family, Moment, Relation, RelationType, StateReport, View
from services.query.domain.values import LaneAnswer, LaneFilter, Passage, RecordKey


@dataclass(frozen=True, slots=True)
class QueryVector:
    """An embedded query: float32[d] of unit length, and the model that made it."""

    model_id: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class Fetched:
    """Chunks of the revisions that the reach shows, the KNOWLEDGE position that this holds for, and their states."""

    passages: tuple[Passage, ...]
    position: int
    states: tuple[StateReport, ...] = ()


@dataclass(frozen=True, slots=True)
class Walk:
    """Which edges to follow.

    Attributes:
        kinds: Types of edges; empty: all.
        depth: 1 to 4.
        fan_out: Edges followed from one document, 1 to 100.
    """

    kinds: tuple[RelationType, ...] = ()
    depth: int = 1
    fan_out: int = 20


class CrateBook(Protocol):
    """Settings of crates."""

    async def rules(self, crate_id: str) -> CrateRules:
        """The settings in force; NotFound when there is no such crate."""


class Index(Protocol):
    """Both lanes, the chunks, and what is known of documents at a moment.

    States are told for a view that isn't profile v1's, which knows none.
    """

    async def search_keyword(
        self, crate_id: str, query: str, lane_filter: LaneFilter, limit: int, view: View
    ) -> LaneAnswer:
        """Rank records by BM25 over the query's words."""

    async def search_vector(
        self, crate_id: str, vector: QueryVector, lane_filter: LaneFilter, limit: int, view: View
    ) -> LaneAnswer:
        """Rank records by cosine."""

    async def fetch(self, crate_id: str, keys: Sequence[RecordKey], view: View) -> Fetched:
        """Read chunks with their terms, in the order of keys; what the reach doesn't show any more is left out."""

    async def show(self, crate_id: str, keys: Sequence[RecordKey], terms: Sequence[str], view: View) -> Fetched:
        """Like `fetch`, for who cites nothing: without runs, and of each chunk's terms those in `terms` alone."""

    async def position(self, crate_id: str) -> int:
        """KNOWLEDGE position up to which the index has applied the log."""

    async def neighbours(
        self, crate_id: str, document_ids: Sequence[str], walk: Walk, moment: Moment
    ) -> tuple[Relation, ...]:
        """Edges around at most 64 documents, both directions, between known documents."""

    async def states(self, crate_id: str, document_ids: Sequence[str], moment: Moment) -> tuple[StateReport, ...]:
        """States of at most 1,000 documents; one that the moment doesn't show is left out."""

    async def families(self, crate_id: str, document_ids: Sequence[str], moment: Moment) -> tuple[Family, ...]:
        """Version series that at most 64 documents belong to."""


class Embedder(Protocol):
    """The crate's embedding model."""

    async def embed_query(self, crate_id: str, text: str) -> QueryVector:
        """Embed a query."""

    async def embed_texts(self, crate_id: str, model_id: str, texts: Sequence[str]) -> tuple[Vector, ...]:
        """Embed pieces of documents, at most 256, in their order; Conflict when the crate's model is another one."""

    async def fingerprints(self, crate_id: str) -> tuple[str, ...]:
        """Fingerprints of the models in use, sorted."""


class Citations(Protocol):
    """The citation controller."""

    async def repair(self, draft: RawAnswer) -> Repaired:
        """Bring markers to one form and drop those that name no source."""


class Originals(Protocol):
    """Original bytes of revisions."""

    async def read(self, crate_id: str, key: RecordKey, spans: Sequence[tuple[int, int]]) -> tuple[bytes, ...]:
        """Cut spans (byte start, byte end exclusive) out of a revision, in their order."""


class Receipts(Protocol):
    """The signer."""

    async def issue(self, claim: Claim) -> IssuedReceipt:
        """Sign a receipt."""


class Answers(Protocol):
    """The log of answers."""

    async def record(self, crate_id: str, fact: AnswerFact) -> None:
        """Append AnswerIssued."""
