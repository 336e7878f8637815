"""Events between protobuf and domain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from affidavit.embedder.v1 import embedder_events_pb2 as embedder_pb
from affidavit.index.v1 import index_events_pb2 as events_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2 as settings_pb
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.index.codec.forms import form
from services.index.domain.content import Signal
from services.index.domain.documents import Embedded, Erased, Fact, Ingested, Retired
from services.index.domain.force import instant
from services.index.domain.generations import GenerationEnd, GenerationFact, GenerationStart, GenerationStatus

_STRATEGIES = {
    settings_pb.RETRIEVAL_STRATEGY_STANDARD: "standard",
    settings_pb.RETRIEVAL_STRATEGY_PROPOSITION: "proposition",
}
T = TypeVar("T")
GenerationMessage = events_pb.GenerationStarted | events_pb.GenerationActivated


def fact(message: Message, position: int, time: datetime) -> Fact | GenerationFact | None:
    """Read an event's body.

    Args:
        message: Body.
        position: Its KNOWLEDGE position.
        time: When it was appended, UTC: where it doesn't say itself when it happened.

    Returns:
        What it says about a document or a generation; None when it says nothing about either.
    """
    read = _FACTS.get(type(message))
    return read(message, position, time) if read else None


def record_count(message: Message) -> int:
    """Number of vectors that an event brings; 0 for events that bring none."""
    return message.record_count if isinstance(message, embedder_pb.RecordsEmbedded) else 0


def retrieval_strategy(message: Message) -> str:
    """Strategy that a CrateConfigured asks for; empty when it names none."""
    if not isinstance(message, ingest_pb.CrateConfigured):
        return ""
    return _STRATEGIES.get(message.settings.retrieval_strategy, "")


def generation_started(start: GenerationStart) -> events_pb.GenerationStarted:
    """Build the event that starts a generation."""
    message = events_pb.GenerationStarted(
        generation=start.generation,
        model_id=start.model_id,
        dimension=start.dimension,
        retrieval_strategy=start.retrieval_strategy,
        prompt_version=start.prompt_version,
        model_fingerprint=start.model_fingerprint,
    )
    message.started_at.FromDatetime(start.started_at)
    return message


def generation_activated(generation: int, activated_at: datetime) -> events_pb.GenerationActivated:
    """Build the event that lets a generation serve."""
    message = events_pb.GenerationActivated(generation=generation)
    message.activated_at.FromDatetime(activated_at)
    return message


def revision_indexed(signal: Signal) -> events_pb.RevisionIndexed:
    """Build the signal that a revision can be found."""
    return events_pb.RevisionIndexed(
        document_id=signal.document_id,
        revision=signal.revision,
        generation=signal.generation,
        record_count=signal.record_count,
        position=signal.position,
    )


def _ingested(message: ingest_pb.DocumentIngested, position: int, time: datetime) -> Ingested:
    effective_at = _told(message, "effective_at", None)
    recorded_at = _told(message, "ingested_at", time)
    return Ingested(
        document_id=message.document_id,
        revision=message.revision,
        settings_digest=message.settings_digest,
        form=form(message.form),
        effective_at=effective_at,
        effective_from=instant(effective_at or recorded_at),
        position=position,
    )


def _retired(message: ingest_pb.DocumentRetired, position: int, _time: datetime) -> Retired:
    return Retired(
        document_id=message.document_id,
        revision=message.revision,
        position=position,
    )


def _erased(message: ingest_pb.DocumentErased, position: int, _time: datetime) -> Erased:
    return Erased(document_id=message.document_id, revision=message.revision, position=position)


def _embedded(message: embedder_pb.RecordsEmbedded, position: int, _time: datetime) -> Embedded:
    # Without propositions the event counts rows alone, one for each chunk.
    chunks = message.chunk_count or message.record_count
    return Embedded(
        document_id=message.document_id,
        revision=message.revision,
        settings_digest=message.settings_digest,
        generation=message.generation,
        chunks_pack=message.chunks.id,
        vectors_pack=message.vectors.id,
        chunk_count=chunks,
        model_id=message.model_id,
        dimension=message.dimension,
        form=form(message.form),
        position=position,
        evaluations_pack=message.evaluations.id,
        statement_count=message.record_count - chunks,
    )


def _started(message: events_pb.GenerationStarted, position: int, _time: datetime) -> GenerationStart:
    return GenerationStart(
        generation=message.generation,
        model_id=message.model_id,
        dimension=message.dimension,
        model_fingerprint=message.model_fingerprint,
        retrieval_strategy=message.retrieval_strategy,
        prompt_version=message.prompt_version,
        started_at=_moment(message.started_at),
        position=position,
    )


def _activated(message: events_pb.GenerationActivated, position: int, _time: datetime) -> GenerationEnd:
    return GenerationEnd(generation=message.generation, status=GenerationStatus.ACTIVE, position=position)


def _failed(message: events_pb.GenerationFailed, position: int, _time: datetime) -> GenerationEnd:
    return GenerationEnd(generation=message.generation, status=GenerationStatus.FAILED, position=position)


def _told(message: Message, field: str, otherwise: T) -> datetime | T:
    return _moment(getattr(message, field)) if message.HasField(field) else otherwise


def _moment(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)


# Each reader takes its own message type; the table's keys see to that.
_FACTS: Mapping[type[Message], Callable[[Any, int, datetime], Fact | GenerationFact]] = {
    ingest_pb.DocumentIngested: _ingested,
    ingest_pb.DocumentRetired: _retired,
    ingest_pb.DocumentErased: _erased,
    embedder_pb.RecordsEmbedded: _embedded,
    events_pb.GenerationStarted: _started,
    events_pb.GenerationActivated: _activated,
    events_pb.GenerationFailed: _failed,
}
