"""Content of packs, and stored chunks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.embedder.v1 import embedder_events_pb2 as embedder_pb
from affidavit.proposition.v1 import proposition_events_pb2 as proposition_pb
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from services.index.domain.content import ChunkContent, Description, Evaluated, Statement
from services.index.domain.documents import Embedded
from services.index.domain.records import MAX_STATEMENTS

CHUNKS_PART = "chunks"
VECTORS_PART = "vectors"
FLOATS_PART = "float32"
EVALUATIONS_PART = "evaluations"
_FLOAT_BYTES = 4


def description_and_chunks(part: bytes) -> tuple[Description, tuple[ChunkContent, ...]]:
    """Read the "chunks" part of a chunks pack.

    Args:
        part: A serialised ChunkSet.

    Returns:
        What is told about the original, and its chunks in order. NUL becomes U+FFFD, since tables can't hold it.

    Raises:
        ValueError: When it isn't one, or its ordinals aren't 0, 1, 2 ...
    """
    chunk_set = chunker_pb.ChunkSet()
    try:
        chunk_set.ParseFromString(part)
    except DecodeError as error:
        raise ValueError("part chunks is no ChunkSet") from error
    chunks = tuple(_chunk(chunk) for chunk in chunk_set.chunks)
    if any(chunk.ordinal != number for number, chunk in enumerate(chunks)):
        raise ValueError("the chunks' ordinals aren't 0, 1, 2 ...")
    description = Description(
        title=_storable(chunk_set.title),
        source_id=_storable(chunk_set.source_id),
        source_domain=_storable(chunk_set.source_domain),
        media_type=_storable(chunk_set.media_type),
        charset=_storable(chunk_set.charset),
        uri=_storable(chunk_set.uri),
        headings=tuple(_storable(heading) for heading in chunk_set.headings),
        metadata={_storable(key): _storable(value) for key, value in sorted(chunk_set.metadata.items())},
        links=tuple(map(_storable, chunk_set.links)),
    )
    return description, chunks


def chunk_content(encoded: bytes) -> ChunkContent:
    """Read one stored chunk."""
    return _chunk(chunker_pb.Chunk.FromString(encoded))


def vectors(parts: Mapping[str, bytes], embedded: Embedded) -> NDArray[np.float32]:
    """Read a vectors pack.

    Args:
        parts: Bodies by name.
        embedded: The fact that names the pack.

    Returns:
        float32[n, d], finite.

    Raises:
        ValueError: When the pack doesn't hold the fact's n vectors of length d.
    """
    header = embedder_pb.VectorSet()
    try:
        header.ParseFromString(parts.get(VECTORS_PART, b""))
    except DecodeError as error:
        raise ValueError("part vectors is no VectorSet") from error
    rows, columns = embedded.row_count, embedded.dimension
    floats = parts.get(FLOATS_PART, b"")
    if (header.count, header.dimension) != (rows, columns) or len(floats) != rows * columns * _FLOAT_BYTES:
        raise ValueError(
            f"the event names {rows} vectors of length {columns}, the pack {header.count} of {header.dimension} "
            f"in {len(floats)} bytes"
        )
    found = np.frombuffer(floats, dtype="<f4").reshape(rows, columns).astype(np.float32, copy=False)
    if not np.isfinite(found).all():
        raise ValueError("a vector has a component that isn't finite")
    return found


def evaluated(parts: Mapping[str, bytes], embedded: Embedded) -> Evaluated:
    """Read what stands for the chunks of a revision.

    Args:
        parts: Of its evaluations pack.
        embedded: The fact that names the pack.

    Returns:
        The chunks that stand for themselves and the accepted propositions. NUL becomes U+FFFD.

    Raises:
        ValueError: When the pack doesn't hold one evaluation per chunk and the propositions that the fact counts.
    """
    message = proposition_pb.EvaluationSet()
    try:
        message.ParseFromString(parts.get(EVALUATIONS_PART, b""))
    except DecodeError as error:
        raise ValueError("part evaluations is no EvaluationSet") from error
    if [one.chunk_ordinal for one in message.evaluations] != list(range(embedded.chunk_count)):
        raise ValueError(f"{len(message.evaluations)} evaluations don't belong to {embedded.chunk_count} chunks")
    statements = tuple(
        Statement(one.chunk_ordinal, number, _storable(accepted.text))
        for one in message.evaluations
        if one.status == proposition_pb.EVALUATION_STATUS_EVALUATED
        for number, accepted in enumerate((each for each in one.propositions if each.accepted), start=1)
    )
    if len(statements) != embedded.statement_count:
        raise ValueError(f"{embedded.statement_count} propositions have vectors, {len(statements)} are there")
    if any(each.number > MAX_STATEMENTS for each in statements):
        raise ValueError(f"a chunk has over {MAX_STATEMENTS} accepted propositions")
    return Evaluated(
        alone=frozenset(
            one.chunk_ordinal for one in message.evaluations if one.status == proposition_pb.EVALUATION_STATUS_SOURCE
        ),
        statements=statements,
    )


def _chunk(message: chunker_pb.Chunk) -> ChunkContent:
    return ChunkContent(
        ordinal=message.ordinal,
        text=message.text,
        heading_path=tuple(message.heading_path),
        context=message.context,
        overlap_chars=min(message.overlap_chars, len(message.text)),
        encoded=message.SerializeToString(),
    )


def _storable(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
