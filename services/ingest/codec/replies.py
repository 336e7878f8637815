"""Values of the domain -> replies of the gRPC service."""

from __future__ import annotations

from affidavit.event.v1 import envelope_pb2
from affidavit.ingest.v1 import ingest_service_pb2 as pb

from services.ingest.codec import configuration, facts
from services.ingest.codec.configuration import inverse, timestamp
from services.ingest.codec.requests import STATUSES
from services.ingest.domain.documents import PutOutcome, Status
from services.ingest.domain.lifecycle import FailureState, RevisionState
from services.ingest.domain.values import Counts, CrateView, DocumentView, FailureView, JobRow, PutResult

OUTCOMES = {
    pb.PUT_OUTCOME_CREATED: PutOutcome.CREATED,
    pb.PUT_OUTCOME_REPLACED: PutOutcome.REPLACED,
    pb.PUT_OUTCOME_UNCHANGED: PutOutcome.UNCHANGED,
    pb.PUT_OUTCOME_RECHUNKED: PutOutcome.RECHUNKED,
}


def crate(view: CrateView) -> pb.Crate:
    """Write a crate."""
    return pb.Crate(
        crate_id=view.crate.crate_id,
        revision=view.crate.revision,
        settings=configuration.settings_message(view.crate.settings),
        providers=[configuration.provider_message(provider) for provider in view.crate.providers],
        created_at=timestamp(view.created_at),
        documents=view.documents,
    )


def job(row: JobRow) -> pb.Job:
    """Write a job."""
    return pb.Job(
        job_id=row.job_id,
        chunking=configuration.chunk_message(row.chunking),
        created_at=timestamp(row.configured_at),
    )


def document(view: DocumentView) -> pb.Document:
    """Write a document with the revisions that the view has."""
    return pb.Document(
        document_id=view.document_id,
        source_id=view.source_id,
        title=view.title,
        status=inverse(STATUSES)[view.status],
        revision=view.revision,
        revisions=[_revision(view, revision) for revision in view.revisions],
        job_id=view.job_id,
        source_domain=view.source_domain,
    )


def _revision(view: DocumentView, state: RevisionState) -> pb.Revision:
    superseded = state.revision < view.revision
    status = Status.SUPERSEDED if superseded else view.status
    message = pb.Revision(
        revision=state.revision,
        status=inverse(STATUSES)[status],
        superseded_by=state.revision + 1 if superseded else 0,
        effective_at=timestamp(state.effective_at),
        ingested_at=timestamp(state.ingested_at),
        position=state.position,
        chunks=state.chunks or 0,
        failure=state.failure if status is Status.FAILED else "",
        form=inverse(facts.FORMS)[state.form],
    )
    manifest = state.manifest
    if manifest is not None:
        message.size_bytes = manifest.size_bytes
        message.content_hash = manifest.content_hash
        message.media_type = manifest.media_type
        message.charset = manifest.charset
        message.title = manifest.title
        message.notices.extend(manifest.notices)
    return message


def put(result: PutResult) -> pb.PutDocumentResponse:
    """Write what a put came to."""
    outcomes = {str(outcome): number for number, outcome in OUTCOMES.items()}
    return pb.PutDocumentResponse(
        document_id=result.document_id,
        revision=result.revision,
        outcome=outcomes[result.outcome],
        position=result.position,
        notices=result.notices,
    )


def progress(counts: Counts) -> pb.WatchProgressResponse:
    """Write how far the pipeline is."""
    return pb.WatchProgressResponse(
        pending=counts.pending,
        searchable=counts.searchable,
        empty=counts.empty,
        failed=counts.failed,
        chunks_total=counts.chunks_total,
        chunks_embedded=counts.chunks_embedded,
        watermark=counts.watermark,
    )


FAILURE_STATES = {
    pb.FAILURE_STATE_OPEN: FailureState.OPEN,
    pb.FAILURE_STATE_RETRIED: FailureState.RETRIED,
    pb.FAILURE_STATE_DROPPED: FailureState.DROPPED,
    pb.FAILURE_STATE_SUPERSEDED: FailureState.SUPERSEDED,
}


def failure(view: FailureView) -> pb.Failure:
    """Write a failure."""
    fact = view.failure
    return pb.Failure(
        state=inverse(FAILURE_STATES)[view.state],
        settled_position=view.settled_position,
        settled_at=timestamp(view.settled_at) if view.settled_at else None,
        failure_id=fact.position,
        source_id=view.source_id,
        task=envelope_pb2.TaskFailed(
            service=fact.service,
            stream=fact.stream,
            position=fact.event_position,
            document_id=fact.document_id,
            revision=fact.revision,
            code=fact.code,
            reason=fact.reason,
            attempts=fact.attempts,
            failed_at=timestamp(fact.failed_at),
            retry=fact.retry,
        ),
    )
