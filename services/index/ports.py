"""What the index service needs from its two lanes, its tables and the embedder.

A lane holds the records of one generation of one crate, those of every revision that was embedded and not erased, each
with the time in which it counts. All its methods raise the outcomes of `services.kernel.errors`:
Unavailable when the engine can't answer, Corrupt when its data isn't readable, Rejected for input it can never take.

Both lanes keep the log position that they have applied beside their data. A projection may hand the same or an older
batch in again after a crash; such a batch changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from services.index.domain.content import (
    ChunkKey,
    CrateRows,
    Differences,
    Evaluated,
    Fetched,
    KnownRevision,
    RecordCounts,
    RevisionPage,
    ShownRevision,
    Signal,
    Standing,
    StateSignal,
)
from services.index.domain.documents import DocumentState
from services.index.domain.generations import EmbeddingModel, Generation
from services.index.domain.records import (
    ForceChange,
    KeywordChange,
    Kind,
    LaneFilter,
    LaneHit,
    Reach,
    RevisionKey,
    TermStatistics,
    VectorChange,
)


class Lane(Protocol):
    """What both lanes have in common."""

    async def position(self) -> int:
        """The KNOWLEDGE position up to which this lane has applied the log; 0 for a new lane."""

    async def count(self, kind: Kind | None = None) -> int:
        """Number of records, of one kind or of all."""

    async def flush(self) -> None:
        """Make everything applied so far, and the position, durable."""

    async def drop(self) -> None:
        """Delete the lane's data. The lane answers Unavailable from then on."""

    async def close(self) -> None:
        """Flush and let go of the lane's files. Closing twice is harmless."""


class KeywordLane(Lane, Protocol):
    """BM25 (k1 1.2, b 0.75) over terms that were analysed before."""

    async def replace(self, changes: Sequence[KeywordChange], position: int) -> None:
        """Apply a batch in order; durable and visible as a whole on return, never in part.

        Args:
            changes: Replacements in log order. With none, only the position moves (durable at the next flush). The
                engine can't change a record, so a revision that counts at other times comes as a whole.
            position: KNOWLEDGE position that this batch completes. At or below `position()`, nothing happens.
        """

    async def rewrite(self, pages: AsyncIterator[Sequence[KeywordChange]]) -> None:
        """Write all records anew, so that no file holds anything of deleted ones; searches go on meanwhile.

        Args:
            pages: All live records. Nothing else may change the lane until this returns.

        Raises:
            Unavailable: The lane is as before, or old files are still in use: call it again.
        """

    async def search(self, terms: Sequence[str], lane_filter: LaneFilter, limit: int) -> list[LaneHit]:
        """Rank records by BM25.

        Args:
            terms: Analysed terms; a term that stands twice counts twice.
            lane_filter: Which records may be found.
            limit: Most hits wanted, at least 1.

        Returns:
            At most `limit` hits in the order of `records.hit_order`; none for no terms.
        """

    async def term_statistics(self, terms: Sequence[str], kind: Kind, reach: Reach = Reach.CURRENT) -> TermStatistics:
        """Count live records of a kind, and those that hold each term.

        Args:
            terms: Analysed terms, in any order, repeats allowed.
            kind: Level to count.
            reach: `CURRENT` counts records of current revisions alone, any other one those of all revisions.

        Returns:
            Exact counts, without deleted records.
        """


class VectorLane(Lane, Protocol):
    """Cosine similarity over float32 vectors of one dimension."""

    async def replace(self, changes: Sequence[VectorChange | ForceChange], position: int) -> None:
        """Apply a batch in order; durable on return, and each revision's replacement becomes visible in one step.

        Args:
            changes: Changes in log order. With none, only the position moves (durable at the next flush).
            position: KNOWLEDGE position that this batch completes. At or below `position()`, nothing happens.

        Raises:
            Rejected: A vector has the wrong dimension, no length, or a component that isn't finite.
        """

    async def search(self, vector: NDArray[np.float32], lane_filter: LaneFilter, limit: int) -> list[LaneHit]:
        """Rank records by cosine.

        Args:
            vector: float32[d], finite, with a length above zero.
            lane_filter: Which records may be found.
            limit: Most hits wanted, at least 1.

        Returns:
            At most `limit` hits in the order of `records.hit_order`.

        Raises:
            Rejected: The vector has the wrong dimension, no length, or a component that isn't finite.
        """

    async def optimise(self) -> bool:
        """Build the approximate index over what isn't indexed yet, in the background of serving.

        Returns:
            True when something was rebuilt. The lane starts this by itself; callers that can wait may ask for it.
        """

    async def rewrite(self) -> None:
        """Write all records anew, so that no file holds anything of deleted ones; the lane serves and changes meanwhile."""


class KeywordLanes(Protocol):
    """Opens keyword lanes."""

    async def open(self, crate_id: str, generation: int) -> KeywordLane:
        """Open a lane, creating it when it doesn't exist. Opening twice gives the same lane.

        Args:
            crate_id: Crate that owns the records.
            generation: Index generation, from 1.
        """

    async def close(self) -> None:
        """Close every open lane."""


class VectorLanes(Protocol):
    """Opens vector lanes."""

    async def open(self, crate_id: str, generation: int, dimension: int) -> VectorLane:
        """Open a lane, creating it when it doesn't exist. Opening twice gives the same lane.

        Args:
            crate_id: Crate that owns the records.
            generation: Index generation, from 1.
            dimension: Components of every vector of the generation.

        Raises:
            Conflict: The lane exists with another dimension.
        """

    async def close(self) -> None:
        """Close every open lane and the engine."""


class Tables(Protocol):
    """Rows of the projection: documents, revisions, chunks and generations."""

    async def position(self) -> int:
        """The KNOWLEDGE position that the rows have applied; 0 at first."""

    async def states(
        self, crate_id: str, document_ids: Sequence[str], revisions: Sequence[int]
    ) -> dict[str, DocumentState]:
        """Read documents with the settings digests of some of their revisions.

        Args:
            crate_id: Crate.
            document_ids: One per pair, repeats allowed.
            revisions: One per pair: the revision whose digest is wanted.

        Returns:
            Those that are known, by document id.
        """

    async def known_revisions(self, crate_id: str, document_ids: Sequence[str]) -> dict[str, tuple[KnownRevision, ...]]:
        """All revisions of some documents, by document id; documents without any are left out."""

    async def generations(self, crate_id: str) -> tuple[Generation, ...]:
        """The generations of a crate, by number."""

    async def commit(self, rows: Sequence[CrateRows], position: int, before: Callable[[], Awaitable[None]]) -> None:
        """Write a batch and its position in one transaction. Writing the same batch again changes no content.

        Args:
            rows: By crate.
            position: KNOWLEDGE position that the batch completes.
            before: Awaited when all is written and only the commit is left; when it raises, nothing is written.
        """

    async def crates(self) -> tuple[str, ...]:
        """Crates that have a generation, sorted."""

    async def shown(self, crate_id: str, generation: int, after: int, limit: int) -> tuple[ShownRevision, ...]:
        """Stored revisions with chunks, by the position that made them searchable.

        Args:
            crate_id: Crate.
            generation: Generation whose lanes hold them.
            after: Position to begin after.
            limit: Most revisions wanted.
        """

    async def shown_of(self, crate_id: str, keys: Sequence[RevisionKey]) -> tuple[ShownRevision, ...]:
        """Those of some revisions that are stored, with or without chunks."""

    async def chunks_of(self, crate_id: str, document_id: str, revision: int) -> tuple[bytes, ...]:
        """All stored chunks of a revision in order, as their contract encodes them."""

    async def evaluated(self, crate_id: str, document_id: str, revision: int) -> Evaluated:
        """What stands for the chunks of a stored revision with propositions."""

    async def record_counts(self, crate_id: str) -> RecordCounts:
        """Records of a crate's current revisions."""


class Outbox(Protocol):
    """Signals that are still to be sent."""

    async def signals(self, limit: int) -> tuple[Signal, ...]:
        """The oldest about revisions that can be found."""

    async def forget(self, numbers: Sequence[int]) -> None:
        """Drop some of these, which were sent."""

    async def state_signals(self, limit: int) -> tuple[StateSignal, ...]:
        """The oldest about living states."""

    async def forget_states(self, numbers: Sequence[int]) -> None:
        """Drop some of these, which were sent."""


class ChunkReader(Protocol):
    """What requests read; every answer is one snapshot of the tables."""

    async def position(self) -> int:
        """The KNOWLEDGE position that the rows have applied; 0 at first."""

    async def generations(self, crate_id: str) -> tuple[Generation, ...]:
        """The generations of a crate, by number."""

    async def standing(self, crate_id: str, keys: Sequence[RevisionKey]) -> Standing:
        """When some revisions count."""

    async def fetch(self, crate_id: str, keys: Sequence[ChunkKey], *, with_terms: bool) -> Fetched:
        """Read chunks of stored revisions, in the order of keys; those of other revisions are left out."""

    async def page(
        self, crate_id: str, document_id: str, revision: int, first_ordinal: int, limit: int
    ) -> RevisionPage | None:
        """Read chunks of one revision.

        Args:
            crate_id: Crate.
            document_id: Document.
            revision: Which one; 0 for the current one.
            first_ordinal: Chunk to begin with.
            limit: Most chunks wanted.

        Returns:
            None when there is no such revision with its chunks.
        """

    async def record_counts(self, crate_id: str) -> RecordCounts:
        """Records of a crate's current revisions."""


class PastForces(Protocol):
    """What was known about the force of revisions at past positions."""

    async def differences(self, crate_id: str, *, as_of: int, at: int) -> Differences:
        """Compare what was in force as known at a past position with what the lanes hold.

        Args:
            crate_id: Crate.
            as_of: Instant, microseconds since 1970.
            at: KNOWLEDGE position, applied and above 0. Revisions that came later need no mention.
        """

    async def unknown(self, crate_id: str, *, at: int) -> tuple[RevisionKey, ...]:
        """Revisions that had come by a position but could be searched only later, so that nothing was known of them."""


class ModelCatalogue(Protocol):
    """What the embedder says about a crate's model."""

    async def embedding_model(self, crate_id: str) -> EmbeddingModel:
        """The model that embeds a crate's documents.

        Raises:
            Unavailable: When the embedder doesn't answer or has no model yet.
            Rejected: When the crate's settings name no model that can be used.
        """
