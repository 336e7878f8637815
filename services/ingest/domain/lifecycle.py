"""What the pipeline's facts make of a document: the pure half of the projections.

Facts come in log order, but those of KNOWLEDGE and those of SIGNALS come independently of each other, so that every
status is a function of what is known and not of which came first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from services.ingest.domain.chunking import ChunkSettings
from services.ingest.domain.documents import Form, Manifest, Pack, PutOutcome, Status, content_digest, declared

KNOWLEDGE: Final = "KNOWLEDGE"
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """DocumentIngested, with what its pack says; the manifest is None when the pack is gone."""

    crate_id: str
    document_id: str
    position: int
    revision: int
    source: Pack
    chunking: ChunkSettings
    settings_digest: str
    job_id: str
    form: Form
    effective_at: datetime
    ingested_at: datetime
    manifest: Manifest | None
    rechunk: bool = False
    submission: str = ""

    @property
    def outcome(self) -> PutOutcome:
        """What the put came to."""
        if self.rechunk:
            return PutOutcome.RECHUNKED
        return PutOutcome.CREATED if self.revision == 1 else PutOutcome.REPLACED


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """DocumentRetired."""

    crate_id: str
    document_id: str
    position: int
    revision: int
    submission: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """DocumentErased."""

    crate_id: str
    document_id: str
    position: int
    revision: int
    submission: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """SubmissionUnchanged of a document; `holds` is the position of the fact that held already."""

    crate_id: str
    document_id: str
    position: int
    revision: int
    holds: int
    submission: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunked:
    """DocumentChunked."""

    crate_id: str
    document_id: str
    position: int
    revision: int
    settings_digest: str
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """RecordsEmbedded."""

    crate_id: str
    document_id: str
    position: int
    revision: int
    settings_digest: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """TaskFailed, of whichever role.

    Attributes:
        position: Of the TaskFailed itself: its name.
        event_position: Of the event that could not be handled.
        own: True when ingest itself recorded it, among the facts of the document's aggregate.
        retry: Position of the TaskRetried that the attempt was for, 0 for the first.
    """

    crate_id: str
    document_id: str
    position: int
    revision: int
    service: str
    stream: str
    event_position: int
    code: str
    reason: str
    attempts: int
    failed_at: datetime
    own: bool
    retry: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """RevisionIndexed; `applied` is the KNOWLEDGE position that the index had applied."""

    crate_id: str
    document_id: str
    position: int
    revision: int
    applied: int


class FailureState(StrEnum):
    """What became of a failure; whether a retry helped shows at the document."""

    OPEN = "open"
    RETRIED = "retried"
    DROPPED = "dropped"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """TaskRetried or TaskDropped.

    Attributes:
        failure_id: Position of the TaskFailed.
        service: Who gave up.
        event_position: Of the event that could not be handled, for a retry.
    """

    crate_id: str
    document_id: str
    position: int
    revision: int
    failure_id: int
    service: str
    state: FailureState
    settled_at: datetime
    event_position: int = 0


DocumentFact = Ingested | Retired | Erased | Unchanged | Chunked | Embedded | Failed | Settled | Indexed
# A pack that its readers found gone or damaged is a failure even where the revision had become searchable before.
_READERS: Final = ("ingest", "index")
_LOST: Final = ("corrupt", "not_found")


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionState:
    """A revision and how far the pipeline is with it.

    Attributes:
        position: Of its last DocumentIngested.
        manifest: None when its pack was gone when it was read.
        chunks: How many; None before it was cut.
        embedded_at: Position of RecordsEmbedded for its settings, 0 before.
        records: Records that have vectors.
        indexed_at: Position that the index had applied when it reported the revision, 0 before.
        failure: What a role gave up on, empty for nothing.
        damaged: True when that is a pack which was gone or damaged after the revision had been embedded.
    """

    revision: int
    position: int
    source: Pack
    chunking: ChunkSettings
    settings_digest: str
    form: Form
    effective_at: datetime
    ingested_at: datetime
    manifest: Manifest | None
    chunks: int | None = None
    embedded_at: int = 0
    records: int = 0
    indexed_at: int = 0
    failure: str = ""
    damaged: bool = False

    @property
    def status(self) -> Status:
        """Where the pipeline is with it; a failure that was made good is none."""
        if self.damaged:
            return Status.FAILED
        if self.embedded_at and self.indexed_at >= self.embedded_at:
            return Status.SEARCHABLE if self.records else Status.EMPTY
        return Status.FAILED if self.failure else Status.PENDING

    @property
    def digest(self) -> bytes:
        """Content digest, empty when the manifest is gone."""
        if self.manifest is None:
            return b""
        given = None if self.effective_at == self.ingested_at else self.effective_at
        return content_digest(self.manifest, declared(self.manifest, given))


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """A document and those of its revisions that matter here.

    Attributes:
        revision: Current revision, 0 before the first.
        ended: RETIRED or ERASED; None while in force.
        sequence: Position of the aggregate's last event.
        position: Of the fact that holds.
        revisions: By number: the current one and those that facts speak of.
        reported: What the index reported, by revision: it may come before the facts that it follows from, so it is kept
            whatever happens to the revision.
    """

    crate_id: str
    document_id: str
    revision: int = 0
    ended: Status | None = None
    sequence: int = 0
    position: int = 0
    job_id: str = ""
    revisions: dict[int, RevisionState] = field(default_factory=dict)
    reported: dict[int, int] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """Status of the document."""
        if self.ended is not None:
            return self.ended
        current = self.revisions.get(self.revision)
        return current.status if current else Status.PENDING


def evolve(state: DocumentState, fact: DocumentFact) -> DocumentState:
    """Apply one fact.

    Args:
        state: What was known.
        fact: The next fact about the same document.

    Returns:
        What is known now.
    """
    match fact:
        case Ingested():
            return _ingested(state, fact)
        case Retired() | Erased() | Unchanged():
            return _ended(state, fact)
        case Failed():
            return _failed(state, fact)
        case Settled():
            return _settled(state, fact)
        case Indexed():
            reported = {**state.reported, fact.revision: max(fact.applied, state.reported.get(fact.revision, 0))}
            return _touch(replace(state, reported=reported), fact.revision)
        case _:
            return _step(state, fact)


def fold(states: dict[Key, DocumentState], facts: Iterable[DocumentFact]) -> dict[Key, DocumentState]:
    """Apply facts about many documents.

    Args:
        states: What was known, by crate and document.
        facts: Facts in log order.

    Returns:
        What is known now of every document that a fact spoke of.
    """
    known = dict(states)
    for fact in facts:
        key = (fact.crate_id, fact.document_id)
        state = known.get(key) or DocumentState(crate_id=fact.crate_id, document_id=fact.document_id)
        known[key] = evolve(state, fact)
    return known


def _ingested(state: DocumentState, fact: Ingested) -> DocumentState:
    before = state.revisions.get(fact.revision)
    late = fact.position < state.sequence
    if late and (before is not None or state.ended is Status.ERASED):
        # Handed over again although it is known already, or its document is gone.
        return state
    revision = RevisionState(
        revision=fact.revision,
        position=fact.position,
        source=fact.source,
        chunking=fact.chunking,
        settings_digest=fact.settings_digest,
        form=fact.form,
        effective_at=fact.effective_at,
        ingested_at=fact.ingested_at,
        manifest=fact.manifest or (before.manifest if before else None),
    )
    if late and fact.revision < state.revision:
        return _touch(replace(state, revisions={**state.revisions, fact.revision: revision}), fact.revision)
    moved = replace(
        state,
        revision=fact.revision,
        ended=state.ended if late else None,
        sequence=max(state.sequence, fact.position),
        position=fact.position,
        job_id=fact.job_id,
        revisions={**state.revisions, fact.revision: revision},
    )
    return _touch(moved, fact.revision)


def _ended(state: DocumentState, fact: Retired | Erased | Unchanged) -> DocumentState:
    if fact.position < state.sequence:
        # Handed over again after the document had moved on.
        return state
    if isinstance(fact, Unchanged):
        return replace(state, sequence=fact.position)
    if isinstance(fact, Retired):
        return replace(state, ended=Status.RETIRED, sequence=fact.position, position=fact.position)
    return replace(
        state,
        revision=max(state.revision, fact.revision),
        ended=Status.ERASED,
        sequence=fact.position,
        position=fact.position,
        job_id="",
        revisions={},
    )


def _step(state: DocumentState, fact: Chunked | Embedded) -> DocumentState:
    revision = state.revisions.get(fact.revision)
    # A step that still worked with settings that were changed meanwhile says nothing about the chunks that are wanted.
    if revision is None or revision.settings_digest != fact.settings_digest:
        return state
    if isinstance(fact, Chunked):
        changed = replace(revision, chunks=fact.chunks)
    else:
        changed = replace(revision, embedded_at=fact.position, records=fact.records)
    return _touch(replace(state, revisions={**state.revisions, fact.revision: changed}), fact.revision)


def _failed(state: DocumentState, fact: Failed) -> DocumentState:
    if fact.own:
        state = replace(state, sequence=fact.position)
    revision = state.revisions.get(fact.revision)
    # A failure over an event older than the last put is of an attempt that was started again since.
    overtaken = revision is not None and fact.stream == KNOWLEDGE and fact.event_position < revision.position
    if revision is None or overtaken:
        return state
    lost = fact.service in _READERS and fact.code in _LOST and 0 < revision.embedded_at < fact.position
    changed = replace(revision, failure=f"{fact.service}: {fact.reason}", damaged=revision.damaged or lost)
    return replace(state, revisions={**state.revisions, fact.revision: changed})


def _settled(state: DocumentState, fact: Settled) -> DocumentState:
    """A retry sets the work going again; a drop changes nothing of the document."""
    revision = state.revisions.get(fact.revision)
    if fact.state is not FailureState.RETRIED or revision is None or fact.event_position < revision.position:
        return state
    if not revision.failure.startswith(f"{fact.service}: "):
        return state
    changed = replace(revision, failure="", damaged=False)
    return replace(state, revisions={**state.revisions, fact.revision: changed})


def _touch(state: DocumentState, number: int) -> DocumentState:
    """Carry the index's report over to the revision that it is about."""
    revision = state.revisions.get(number)
    applied = state.reported.get(number, 0)
    if revision is None or revision.indexed_at >= applied:
        return state
    return replace(state, revisions={**state.revisions, number: replace(revision, indexed_at=applied)})
