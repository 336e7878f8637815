"""Values that cross the borders of ingest: rows, views, selections, results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from services.ingest.domain.chunking import ChunkSettings
from services.ingest.domain.documents import Held, Pack, PutOutcome, Status
from services.ingest.domain.lifecycle import DocumentFact, Failed, FailureState, RevisionState
from services.ingest.domain.providers import Provider
from services.ingest.domain.relations import RelationOutcome
from services.ingest.domain.settings import CrateSettings


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """Where the source pack of a revision belongs."""

    crate_id: str
    document_id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrateRow:
    """A crate as its last CrateConfigured has it.

    Attributes:
        position: Of that event, also what the next append expects.
        secret: Pack of the 32 bytes that key its document ids.
        configured_at: When that event was recorded.
    """

    crate_id: str
    revision: int
    settings: CrateSettings
    providers: tuple[Provider, ...]
    secret: Pack
    configured_at: datetime
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrateView:
    """A crate as it is shown.

    Attributes:
        crate: Its configuration.
        created_at: When its first revision was recorded.
        documents: Documents that are not erased.
    """

    crate: CrateRow
    created_at: datetime
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as its last JobConfigured has it.

    Attributes:
        position: Of that event, also what the next append expects.
        configured_at: When that event was recorded; of the first one where a job is shown.
    """

    crate_id: str
    job_id: str
    chunking: ChunkSettings
    configured_at: datetime
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What a publisher's event came to, remembered for its repetitions."""

    document_id: str
    revision: int
    outcome: PutOutcome | Status | RelationOutcome
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PutState:
    """All that a decision about a document needs, read at once.

    Attributes:
        max_input_chars: Of the crate's embedding provider, 0 for no limit.
        chunking: Settings of the named job; None when there is no such job.
        held: The document; None when it is new.
        submitted: What the publisher's event came to before; None when it is new.
    """

    max_input_chars: int
    chunking: ChunkSettings | None
    held: Held | None
    submitted: Submitted | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutResult:
    """What a put came to.

    Attributes:
        position: Of the fact that holds.
        notices: What the caller should know.
        repeats: True when a publisher's event of that id was carried out before: this is what it came to then.
    """

    document_id: str
    revision: int
    outcome: PutOutcome | Status | RelationOutcome
    position: int
    notices: tuple[str, ...] = ()
    repeats: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndResult:
    """What a retire or an erase came to.

    Attributes:
        unchanged: True when nothing was recorded.
        repeats: What a publisher's event of that id came to before; None when there was none.
    """

    document_id: str
    revision: int
    position: int
    unchanged: bool
    repeats: PutOutcome | Status | RelationOutcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentView:
    """A document as it is shown.

    Attributes:
        revisions: Newest first; only the current one in lists, none once erased.
    """

    document_id: str
    source_id: str
    title: str
    status: Status
    revision: int
    job_id: str
    source_domain: str
    revisions: tuple[RevisionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which documents are watched: all of a crate, of a job, or those named."""

    crate_id: str
    job_id: str = ""
    document_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What is told of a document that is being embedded.

    Attributes:
        document_id: Document.
        task: "<revision>:<settings digest>" of the chunks that are embedded.
        done: Chunks that are.
    """

    document_id: str
    task: str
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How far the pipeline is with a selection."""

    pending: int
    searchable: int
    empty: int
    failed: int
    chunks_total: int
    chunks_embedded: int
    watermark: int


@dataclass(frozen=True, slots=True)
class FailureView:
    """A failure, what became of it, and the document it is about, where there is one that isn't erased.

    Attributes:
        settled_position: Of the fact that it was retried or dropped, 0 while it is open.
    """

    failure: Failed
    source_id: str
    state: FailureState = FailureState.OPEN
    settled_position: int = 0
    settled_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list.

    Attributes:
        size: Most rows.
        after: Sort key of the last row of the page before; empty for the first page.
    """

    size: int
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a crate uses of its quotas.

    Attributes:
        documents: Documents that are not erased.
        size_bytes: Source packs of all revisions that are kept.
    """

    documents: int
    size_bytes: int

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(self.documents + other.documents, self.size_bytes + other.size_bytes)

    def __sub__(self, other: Usage) -> Usage:
        """This without the other."""
        return Usage(self.documents - other.documents, self.size_bytes - other.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A statement about a relation was recorded; the tables remember only the publisher's event that it came from.

    Attributes:
        document_id: Source of the relation.
        submission: Stand-in for the publisher's event, empty for none.
    """

    crate_id: str
    document_id: str
    position: int
    outcome: RelationOutcome
    submission: str = ""


Fact = CrateRow | JobRow | DocumentFact | Stated


@dataclass(frozen=True, slots=True)
class Placed:
    """A fact and where in its stream it takes effect.

    Attributes:
        place: Its own position; for an event that was handed over again the position of that.
    """

    place: int
    fact: Fact
