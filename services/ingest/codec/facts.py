"""Events of the log <-> facts of the domain."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from affidavit.chunker.v1.chunker_events_pb2 import DocumentChunked
from affidavit.embedder.v1.embedder_events_pb2 import RecordsEmbedded
from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1.index_events_pb2 import RevisionIndexed
from affidavit.ingest.v1 import ingest_events_pb2 as pb

from services.ingest.codec import configuration
from services.ingest.codec.configuration import moment, timestamp
from services.ingest.domain.chunking import ChunkSettings
from services.ingest.domain.documents import Form, Manifest, Pack, PutDecision, PutOutcome, submission_of
from services.ingest.domain.lifecycle import (
    Chunked,
    Embedded,
    Erased,
    Failed,
    FailureState,
    Indexed,
    Ingested,
    Retired,
    Settled,
    Unchanged,
)
from services.ingest.domain.refusals import Refused
from services.ingest.domain.relations import Edge, RelationOutcome, RelationType
from services.ingest.domain.values import CrateRow, Fact, JobRow, Stated
from services.kernel.envelope import Event

OWN_SERVICE: Final = "ingest"
CRATE_AGGREGATE: Final = "crate"
CLOCK_AGGREGATE: Final = "clock"
DECLARED: Final = "declared"
_JOB_PREFIX: Final = "job-"
KNOWLEDGE_EVENTS: Final = (
    "CrateConfigured",
    "JobConfigured",
    "DocumentIngested",
    "DocumentRetired",
    "DocumentErased",
    "RelationDeclared",
    "SubmissionUnchanged",
    "DocumentChunked",
    "RecordsEmbedded",
    "TaskFailed",
    "TaskRetried",
    "TaskDropped",
)
SIGNAL_EVENTS: Final = ("RevisionIndexed",)
FORMS: Final = {
    envelope_pb2.FORM_TEXT: Form.TEXT,
    envelope_pb2.FORM_STRUCTURED: Form.STRUCTURED,
    envelope_pb2.FORM_INFORMAL: Form.INFORMAL,
}


def job_aggregate(job_id: str) -> str:
    """Aggregate of a job: can't be taken for a document's, which is hexadecimal."""
    return f"{_JOB_PREFIX}{job_id}"


def pack(message: envelope_pb2.PackRef) -> Pack:
    """Read a reference to a pack."""
    return Pack(message.id, message.size_bytes)


def pack_message(value: Pack) -> envelope_pb2.PackRef:
    """Write a reference to a pack."""
    return envelope_pb2.PackRef(id=value.id, size_bytes=value.size_bytes)


def crate_configured(crate: CrateRow) -> pb.CrateConfigured:
    """Write the whole state of a crate."""
    return pb.CrateConfigured(
        revision=crate.revision,
        settings=configuration.settings_message(crate.settings),
        providers=[configuration.provider_message(provider) for provider in crate.providers],
        secret=pack_message(crate.secret),
        configured_at=timestamp(crate.configured_at),
    )


def crate_row(crate_id: str, position: int, message: pb.CrateConfigured) -> CrateRow:
    """Read the whole state of a crate."""
    return CrateRow(
        crate_id=crate_id,
        revision=message.revision,
        settings=configuration.stored_settings(message.settings),
        providers=configuration.providers(message.providers),
        secret=pack(message.secret),
        configured_at=moment("configured_at", message.configured_at),
        position=position,
    )


def job_configured(job: JobRow) -> pb.JobConfigured:
    """Write the state of a job."""
    return pb.JobConfigured(
        job_id=job.job_id,
        chunking=configuration.chunk_message(job.chunking),
        configured_at=timestamp(job.configured_at),
    )


def job_row(crate_id: str, position: int, message: pb.JobConfigured) -> JobRow:
    """Read the state of a job."""
    return JobRow(
        crate_id=crate_id,
        job_id=message.job_id,
        chunking=configuration.chunk_settings(message.chunking),
        configured_at=moment("configured_at", message.configured_at),
        position=position,
    )


def document_ingested(
    document_id: str,
    decision: PutDecision,
    *,
    source: Pack,
    chunking: ChunkSettings,
    job_id: str,
    form: Form,
    effective_at: datetime,
    ingested_at: datetime,
) -> pb.DocumentIngested:
    """Write what a put came to.

    Args:
        document_id: Document.
        decision: What is recorded.
        source: Its source pack.
        chunking: Settings that shape its chunks.
        job_id: Job, or empty.
        form: Weighing and indexing.
        effective_at: When the revision comes into force.
        ingested_at: When the revision was recorded.

    Returns:
        The event's body.
    """
    return pb.DocumentIngested(
        document_id=document_id,
        revision=decision.revision,
        source=pack_message(source),
        chunking=configuration.chunk_message(chunking),
        settings_digest=decision.settings_digest,
        job_id=job_id,
        form=configuration.inverse(FORMS)[form],
        effective_at=timestamp(effective_at),
        ingested_at=timestamp(ingested_at),
        rechunk=decision.outcome is PutOutcome.RECHUNKED,
    )


def document_retired(document_id: str, revision: int, now: datetime) -> pb.DocumentRetired:
    """Write that a document is out of force."""
    return pb.DocumentRetired(document_id=document_id, revision=revision, retired_at=timestamp(now))


def document_erased(document_id: str, revision: int, now: datetime) -> pb.DocumentErased:
    """Write that a document's content is gone."""
    return pb.DocumentErased(document_id=document_id, revision=revision, erased_at=timestamp(now))


def relation_declared(edge: Edge, now: datetime) -> pb.RelationDeclared:
    """Write a statement about a relation."""
    return pb.RelationDeclared(
        source_document_id=edge.source,
        type=edge.type,
        target_document_id=edge.target,
        confidence_ppm=edge.confidence_ppm,
        origin=DECLARED,
        effective_at=timestamp(edge.effective_at) if edge.effective_at else None,
        declared_at=timestamp(now),
        withdrawn=edge.withdrawn,
    )


def submission_unchanged(document_id: str, revision: int, position: int, now: datetime) -> pb.SubmissionUnchanged:
    """Write that a publisher's event changed nothing.

    Args:
        document_id: Document; of a relation its source.
        revision: Current revision of the document, 0 for a relation.
        position: Of the fact that held already.
        now: Aware, UTC.

    Returns:
        The event's body.
    """
    return pb.SubmissionUnchanged(
        document_id=document_id, revision=revision, position=position, answered_at=timestamp(now)
    )


def edge(message: pb.RelationDeclared) -> Edge | None:
    """Read a statement about a relation; None when it is of a type that this release doesn't know."""
    if message.type not in list(RelationType):
        return None
    return Edge(
        source=message.source_document_id,
        type=RelationType(message.type),
        target=message.target_document_id,
        confidence_ppm=message.confidence_ppm,
        effective_at=moment("effective_at", message.effective_at) if message.HasField("effective_at") else None,
        withdrawn=message.withdrawn,
    )


def clock_advanced(now: datetime) -> pb.ClockAdvanced:
    """Write how late it is."""
    return pb.ClockAdvanced(now=timestamp(now))


def _configured(event: Event, message: pb.CrateConfigured | pb.JobConfigured) -> CrateRow | JobRow:
    if isinstance(message, pb.CrateConfigured):
        return crate_row(event.crate, event.position, message)
    return job_row(event.crate, event.position, message)


def _stated(event: Event, message: pb.RelationDeclared | pb.SubmissionUnchanged) -> Stated | Unchanged:
    if isinstance(message, pb.SubmissionUnchanged):
        return _unchanged(event, message)
    return Stated(
        crate_id=event.crate,
        document_id=message.source_document_id,
        position=event.position,
        outcome=RelationOutcome.WITHDRAWN if message.withdrawn else RelationOutcome.DECLARED,
        submission=submission_of(event.key),
    )


def _unchanged(event: Event, message: pb.SubmissionUnchanged) -> Stated | Unchanged:
    submission = submission_of(event.key)
    if event.aggregate != message.document_id:
        return Stated(
            crate_id=event.crate,
            document_id=message.document_id,
            position=message.position,
            outcome=RelationOutcome.UNCHANGED,
            submission=submission,
        )
    return Unchanged(
        crate_id=event.crate,
        document_id=message.document_id,
        position=event.position,
        revision=message.revision,
        holds=message.position,
        submission=submission,
    )


def _ingested(event: Event, message: pb.DocumentIngested, manifest: Manifest | None) -> Ingested:
    return Ingested(
        crate_id=event.crate,
        document_id=message.document_id,
        position=event.position,
        revision=message.revision,
        source=pack(message.source),
        chunking=configuration.chunk_settings(message.chunking),
        settings_digest=message.settings_digest,
        job_id=message.job_id,
        form=configuration.choice(FORMS, "form", message.form),
        effective_at=moment("effective_at", message.effective_at),
        ingested_at=moment("ingested_at", message.ingested_at),
        manifest=manifest,
        rechunk=message.rechunk,
        submission=submission_of(event.key),
    )


def fact(event: Event, manifest: Manifest | None = None) -> Fact:
    """Read an event of the log.

    Args:
        event: One of `KNOWLEDGE_EVENTS` or `SIGNAL_EVENTS`.
        manifest: For DocumentIngested: what its pack says, None when the pack is gone.

    Returns:
        The fact.

    Raises:
        Refused: When the event holds a value that no release writes, or is of another kind.
    """
    match event.message:
        case pb.DocumentIngested() as message:
            return _ingested(event, message, manifest)
        case pb.CrateConfigured() | pb.JobConfigured() as message:
            return _configured(event, message)
        case pb.RelationDeclared() | pb.SubmissionUnchanged() as message:
            return _stated(event, message)
        case pb.DocumentRetired() | pb.DocumentErased() as message:
            return _ended(event, message)
        case envelope_pb2.TaskFailed() | envelope_pb2.TaskRetried() | envelope_pb2.TaskDropped() as message:
            return _task(event, message)
        case DocumentChunked() | RecordsEmbedded() | RevisionIndexed() as message:
            return _step(event, message)
        case _:
            raise Refused(f"event {event.position} is {event.name}, which ingest doesn't follow")


def _ended(event: Event, message: pb.DocumentRetired | pb.DocumentErased) -> Retired | Erased:
    kind = Retired if isinstance(message, pb.DocumentRetired) else Erased
    return kind(
        crate_id=event.crate,
        document_id=message.document_id,
        position=event.position,
        revision=message.revision,
        submission=submission_of(event.key),
    )


def _step(event: Event, message: DocumentChunked | RecordsEmbedded | RevisionIndexed) -> Chunked | Embedded | Indexed:
    if isinstance(message, RevisionIndexed):
        return Indexed(
            crate_id=event.crate,
            document_id=message.document_id,
            position=event.position,
            revision=message.revision,
            applied=message.position,
        )
    if isinstance(message, DocumentChunked):
        return Chunked(
            crate_id=event.crate,
            document_id=message.document_id,
            position=event.position,
            revision=message.revision,
            settings_digest=message.settings_digest,
            chunks=message.chunk_count,
        )
    return Embedded(
        crate_id=event.crate,
        document_id=message.document_id,
        position=event.position,
        revision=message.revision,
        settings_digest=message.settings_digest,
        records=message.record_count,
    )


def _failed(event: Event, message: envelope_pb2.TaskFailed) -> Failed:
    return Failed(
        crate_id=event.crate,
        document_id=message.document_id,
        position=event.position,
        revision=message.revision,
        service=message.service,
        stream=message.stream,
        event_position=message.position,
        code=message.code,
        reason=message.reason,
        attempts=message.attempts,
        failed_at=moment("failed_at", message.failed_at),
        own=event.service == OWN_SERVICE,
        retry=message.retry,
    )


def _task(
    event: Event, message: envelope_pb2.TaskFailed | envelope_pb2.TaskRetried | envelope_pb2.TaskDropped
) -> Failed | Settled:
    if isinstance(message, envelope_pb2.TaskFailed):
        return _failed(event, message)
    retried = isinstance(message, envelope_pb2.TaskRetried)
    return Settled(
        crate_id=event.crate,
        document_id=message.document_id,
        position=event.position,
        revision=message.revision,
        failure_id=message.failure_id,
        service=message.service,
        state=FailureState.RETRIED if retried else FailureState.DROPPED,
        settled_at=event.time,
        event_position=message.position if isinstance(message, envelope_pb2.TaskRetried) else 0,
    )
