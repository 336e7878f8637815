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
from services.query.domain.values import LaneAnswer, LaneFilter, Passage, RecordKey


@dataclass(frozen=True, slots=True)
class QueryVector:
    """An embedded query: float32[d] of unit length, and the model that made it."""

    model_id: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class Fetched:
    """Chunks of revisions in force, and the KNOWLEDGE position that this holds for."""

    passages: tuple[Passage, ...]
    position: int


class CrateBook(Protocol):
    """Settings of crates."""

    async def rules(self, crate_id: str) -> CrateRules:
        """The settings in force; NotFound when there is no such crate."""


class Index(Protocol):
    """Both lanes and the chunks."""

    async def search_keyword(self, crate_id: str, query: str, lane_filter: LaneFilter, limit: int) -> LaneAnswer:
        """Rank records by BM25 over the query's words."""

    async def search_vector(
        self, crate_id: str, vector: QueryVector, lane_filter: LaneFilter, limit: int
    ) -> LaneAnswer:
        """Rank records by cosine."""

    async def fetch(self, crate_id: str, keys: Sequence[RecordKey]) -> Fetched:
        """Read chunks with their terms, in the order of keys; what is not in force any more is left out."""

    async def show(self, crate_id: str, keys: Sequence[RecordKey], terms: Sequence[str]) -> Fetched:
        """Like `fetch`, for who cites nothing: without runs, and of each chunk's terms those in `terms` alone."""

    async def position(self, crate_id: str) -> int:
        """KNOWLEDGE position up to which the index has applied the log."""


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
