"""Requests and replies between protobuf and domain values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from affidavit.index.v1 import index_service_pb2 as service_pb
from affidavit.index.v1 import living_pb2 as living_pb
from numpy.typing import NDArray

from services.index.codec.forms import form, form_value
from services.index.domain import requests
from services.index.domain.content import ChunkKey, Fetched, RecordCounts, RevisionPage, StoredChunk
from services.index.domain.force import instant
from services.index.domain.generations import Generation, GenerationStatus
from services.index.domain.records import Kind, LaneFilter, LaneHit, Reach, TermStatistics

_FLOAT_BYTES = 4
_KINDS = {
    service_pb.RECORD_KIND_UNSPECIFIED: Kind.CHUNK,
    service_pb.RECORD_KIND_CHUNK: Kind.CHUNK,
    service_pb.RECORD_KIND_DOCUMENT: Kind.DOCUMENT,
}
_REACHES = {
    living_pb.REACH_UNSPECIFIED: Reach.CURRENT,
    living_pb.REACH_CURRENT: Reach.CURRENT,
    living_pb.REACH_IN_FORCE: Reach.IN_FORCE,
    living_pb.REACH_EVERY: Reach.EVERY,
}
# Of google.protobuf.Timestamp.
_FIRST_S = -62_135_596_800
_LAST_S = 253_402_300_799
_NANOS = 1_000_000_000


def lane_filter(message: service_pb.LaneFilter) -> LaneFilter:
    """Read a filter.

    Raises:
        ValueError: When it names a kind that doesn't exist.
    """
    kind = _KINDS.get(message.kind)
    if kind is None:
        raise ValueError(f"filter.kind is {message.kind}: give chunk or document")
    return LaneFilter(
        kind=kind,
        forms=tuple(dict.fromkeys(form(value) for value in message.forms)),
        document_ids=tuple(dict.fromkeys(message.document_ids)),
        source_domains=tuple(dict.fromkeys(message.source_domains)),
    )


def reach(value: living_pb.Reach.ValueType) -> Reach:
    """Read a reach.

    Raises:
        ValueError: When it is none that exists.
    """
    known = _REACHES.get(value)
    if known is None:
        raise ValueError(f"reach is {value}: give current, in force or every")
    return known


def as_of(message: living_pb.Moment, now: datetime) -> int:
    """Read the instant that an answer must hold for.

    Args:
        message: Moment of a request.
        now: For one that names none.

    Returns:
        Microseconds since 1970 in UTC; what is finer is cut off, as it is for the documents' own times.

    Raises:
        ValueError: When it is no time between the years 1 and 9999.
    """
    if not message.HasField("as_of"):
        return instant(now)
    stamp = message.as_of
    if not (_FIRST_S <= stamp.seconds <= _LAST_S and 0 <= stamp.nanos < _NANOS):
        raise ValueError(
            f"moment.as_of is {stamp.seconds} s and {stamp.nanos} ns: give a UTC time between the years 1 and 9999"
        )
    return stamp.seconds * 1_000_000 + stamp.nanos // 1_000


def query_vector(data: bytes) -> NDArray[np.float32]:
    """Read a query vector.

    Args:
        data: Little-endian float32[d].

    Returns:
        float32[d], finite, with a length above zero.

    Raises:
        ValueError: When it isn't one.
    """
    if not data or len(data) % _FLOAT_BYTES:
        raise ValueError(f"vector has {len(data)} bytes: give little-endian float32, four bytes each")
    found = np.frombuffer(data, dtype="<f4").astype(np.float32, copy=False)
    if not np.isfinite(found).all() or not np.any(found):
        raise ValueError("vector is all zero or has a component that isn't finite: it points nowhere")
    return found


def chunk_keys(messages: Sequence[service_pb.ChunkKey]) -> tuple[ChunkKey, ...]:
    """Read chunk keys."""
    return tuple(
        ChunkKey(
            document_id=message.document_id,
            revision=message.revision,
            ordinal=message.ordinal,
            statement=message.statement,
        )
        for message in messages
    )


def keyword_response(
    hits: Sequence[LaneHit], terms: Sequence[str], statistics: TermStatistics, *, position: int, generation: int
) -> service_pb.SearchKeywordResponse:
    """Build the reply of the keyword lane; terms come distinct, in the order of the query."""
    weights = []
    for term in dict.fromkeys(terms):
        frequency = statistics.document_frequency.get(term, 0)
        weight = requests.idf(statistics.record_count, frequency)
        weights.append(service_pb.TermWeight(term=term, idf=weight, document_frequency=frequency))
    return service_pb.SearchKeywordResponse(
        hits=[_hit(hit) for hit in hits], position=position, terms=weights, generation=generation
    )


def vector_response(hits: Sequence[LaneHit], *, position: int, generation: int) -> service_pb.SearchVectorResponse:
    """Build the reply of the vector lane."""
    return service_pb.SearchVectorResponse(hits=[_hit(hit) for hit in hits], position=position, generation=generation)


def fetch_response(fetched: Fetched, request: service_pb.FetchChunksRequest) -> service_pb.FetchChunksResponse:
    """Build the reply to a fetch, with what the request asks for."""
    only = frozenset(request.only_terms)
    chunks = []
    for stored in fetched.chunks:
        terms = stored.terms if request.with_terms else ()
        message = _indexed_chunk(stored, terms=[term for term in terms if term in only] if only else terms)
        if request.without_runs:
            message.chunk.ClearField("runs")
        chunks.append(message)
    return service_pb.FetchChunksResponse(chunks=chunks, position=fetched.position)


def page_response(page: RevisionPage) -> service_pb.ListChunksResponse:
    """Build one page of a revision; without a next page the token is empty."""
    following = page.chunks[-1].key.ordinal + 1 if page.chunks else page.chunk_count
    return service_pb.ListChunksResponse(
        chunks=[_indexed_chunk(chunk, terms=()) for chunk in page.chunks],
        next_page_token=requests.page_token(page.revision, following) if following < page.chunk_count else "",
        headings=page.headings,
    )


def generations_response(generations: Sequence[Generation], counts: RecordCounts) -> service_pb.ListGenerationsResponse:
    """Build the list of generations; only one that serves holds records."""
    found = []
    for generation in generations:
        start = generation.start
        serves = generation.status is GenerationStatus.ACTIVE
        message = service_pb.Generation(
            generation=start.generation,
            status=generation.status,
            model_id=start.model_id,
            dimension=start.dimension,
            retrieval_strategy=start.retrieval_strategy,
            chunk_records=counts.chunks if serves else 0,
            document_records=counts.documents if serves else 0,
        )
        message.started_at.FromDatetime(start.started_at)
        found.append(message)
    return service_pb.ListGenerationsResponse(generations=found)


def _hit(hit: LaneHit) -> service_pb.Hit:
    return service_pb.Hit(
        document_id=hit.document_id,
        revision=hit.revision,
        ordinal=hit.ordinal,
        score=hit.score,
        form=form_value(hit.form),
        statement=hit.statement,
    )


def _indexed_chunk(stored: StoredChunk, *, terms: Sequence[str]) -> service_pb.IndexedChunk:
    told = stored.description
    message = service_pb.IndexedChunk(
        key=service_pb.ChunkKey(
            document_id=stored.key.document_id,
            revision=stored.key.revision,
            ordinal=stored.key.ordinal,
            statement=stored.key.statement,
        ),
        statement=stored.statement,
        title=told.title,
        source_id=told.source_id,
        source_domain=told.source_domain,
        media_type=told.media_type,
        charset=told.charset,
        uri=told.uri,
        form=form_value(stored.form),
        ingested_position=stored.ingested_position,
        terms=terms,
    )
    message.chunk.ParseFromString(stored.encoded)
    if stored.effective_at is not None:
        message.effective_at.FromDatetime(stored.effective_at)
    return message
