"""What comes in: requests, settings, and the replies of other services."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import numpy as np
from affidavit.citation.v1 import citation_service_pb2 as citation_pb
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2, settings_pb2
from affidavit.query.v1 import query_service_pb2 as pb

from services.query.codec.enums import ANSWER_MODES, FORMS, KINDS, RETRIEVAL_MODES
from services.query.domain.claims import Repaired
from services.query.domain.crate import CrateRules, Turn
from services.query.domain.evidence import Vector
from services.query.domain.modes import AnswerMode
from services.query.domain.values import (
    Form,
    LaneAnswer,
    LaneFilter,
    LaneHit,
    Passage,
    RecordKey,
    RecordKind,
    RetrievalMode,
    Run,
    TermWeight,
)


def crate_rules(event: ingest_events_pb2.CrateConfigured) -> CrateRules:
    """Read a crate's settings.

    Args:
        event: The crate's last CrateConfigured.

    Returns:
        The settings; a field that the event lacks has its default.
    """
    given = event.settings
    default = CrateRules()
    present = {name.name for name, _ in given.ListFields()}
    plain = {
        name: getattr(given, name)
        for name in (
            "strict_grounding",
            "allow_client_history",
            "inline_citations",
            "structured_sources",
            "source_limit",
            "allow_downgrade",
            "profile",
        )
        if name in present
    }
    answer = next(
        (item for item in event.providers if item.enabled and item.role == settings_pb2.PROVIDER_ROLE_ANSWER), None
    )
    return CrateRules(
        retrieval_mode=RETRIEVAL_MODES.get(given.retrieval_mode, default.retrieval_mode),
        mode=ANSWER_MODES.get(given.mode, default.mode),
        answer_model=answer.model if answer else "",
        **plain,
    )


def retrieval_mode(value: int) -> RetrievalMode | None:
    """Read a retrieval mode; None for unspecified and unknown values."""
    return RETRIEVAL_MODES.get(settings_pb2.RetrievalMode.ValueType(value))


def answer_mode(value: int) -> AnswerMode | None:
    """Read an answer mode; None for unspecified and unknown values."""
    return ANSWER_MODES.get(settings_pb2.AnswerMode.ValueType(value))


def history(turns: Sequence[pb.HistoryTurn]) -> tuple[Turn, ...]:
    """Read the caller's history."""
    return tuple(Turn(turn.role, turn.text) for turn in turns)


def lane_filter(message: index_pb.LaneFilter) -> LaneFilter:
    """Read a filter; an unspecified kind means chunks, unspecified forms are left out."""
    return LaneFilter(
        kind=KINDS.get(message.kind, RecordKind.CHUNK),
        forms=tuple(FORMS[form] for form in message.forms if form in FORMS),
        document_ids=tuple(message.document_ids),
        source_domains=tuple(message.source_domains),
    )


def keyword_answer(reply: index_pb.SearchKeywordResponse) -> LaneAnswer:
    """Read what the keyword lane said."""
    terms = tuple(TermWeight(item.term, item.idf, item.document_frequency) for item in reply.terms)
    return LaneAnswer(_hits(reply.hits), reply.position, terms, reply.generation)


def vector_answer(reply: index_pb.SearchVectorResponse) -> LaneAnswer:
    """Read what the vector lane said."""
    return LaneAnswer(_hits(reply.hits), reply.position, (), reply.generation)


def passage(item: index_pb.IndexedChunk) -> Passage:
    """Read a chunk."""
    chunk = item.chunk
    return Passage(
        key=RecordKey(item.key.document_id, item.key.revision, item.key.ordinal),
        text=chunk.text,
        heading_path=tuple(chunk.heading_path),
        context=chunk.context,
        runs=tuple(
            Run(
                run.text_start,
                run.text_end,
                run.char_start,
                run.char_end,
                run.byte_start,
                run.byte_end,
                run.verbatim,
            )
            for run in chunk.runs
        ),
        terms=frozenset(item.terms),
        title=item.title,
        source_id=item.source_id,
        source_domain=item.source_domain,
        media_type=item.media_type,
        charset=item.charset or "utf-8",
        uri=item.uri,
        form=FORMS.get(item.form, Form.TEXT),
        effective_at=item.effective_at.ToDatetime(UTC) if item.HasField("effective_at") else None,
        ingested_position=item.ingested_position,
        statement=item.statement,
    )


def vectors(data: bytes, dimension: int, count: int) -> tuple[Vector, ...]:
    """Read vectors.

    Args:
        data: Little-endian float32[count, dimension].
        dimension: Length of a vector.
        count: How many.

    Returns:
        float32[dimension] each.

    Raises:
        ValueError: When the sizes contradict each other.
    """
    if dimension <= 0 or len(data) != 4 * dimension * count:
        raise ValueError(f"{count} vectors of {dimension} numbers were announced, {len(data)} bytes came")
    rows = np.frombuffer(data, dtype="<f4").reshape(count, dimension).astype(np.float32)
    return tuple(rows)


def repaired(reply: citation_pb.RepairResponse) -> Repaired:
    """Read a repair; each action becomes one line."""
    lines = tuple(
        f"{citation_pb.RepairKind.Name(action.kind).removeprefix('REPAIR_KIND_').lower()} at {action.char_start}: "
        f"{action.before!r} -> {action.after!r}"
        for action in reply.actions
    )
    return Repaired(reply.text, tuple(reply.cited), tuple(reply.unsupported), lines)


def _hits(hits: Sequence[index_pb.Hit]) -> tuple[LaneHit, ...]:
    return tuple(
        LaneHit(
            RecordKey(hit.document_id, hit.revision, hit.ordinal, hit.statement),
            hit.score,
            FORMS.get(hit.form, Form.TEXT),
        )
        for hit in hits
    )
