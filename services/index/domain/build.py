"""From a revision's content to the records of both lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from services.index.domain.analysis import analyse_text, entities
from services.index.domain.content import ChunkContent, Description
from services.index.domain.documents import Embedded
from services.index.domain.force import Force
from services.index.domain.records import Form, KeywordChange, KeywordRecord, Kind, Record, VectorChange


@dataclass(frozen=True, slots=True)
class _Terms:
    """Terms of one chunk.

    Attributes:
        whole: Of its text.
        own: Of the part of the text that the chunk before it doesn't hold.
    """

    whole: list[str]
    own: list[str]


@dataclass(frozen=True, slots=True)
class _Records:
    """Makes the records of one revision."""

    fact: Embedded
    description: Description
    force: Force

    def __call__(self, kind: Kind, ordinal: int) -> Record:
        fact = self.fact
        return Record(
            fact.document_id, fact.revision, ordinal, kind, fact.form, self.description.source_domain, self.force
        )


def keyword_change(
    fact: Embedded, description: Description, chunks: Sequence[ChunkContent], force: Force
) -> KeywordChange:
    """Build the keyword records of a revision: one per chunk and one for the document.

    Args:
        fact: What makes the revision searchable.
        description: Its title, headings and origin.
        chunks: Its chunks in order, at least one.
        force: When it counts.

    Returns:
        The replacement of all records of the revision.
    """
    title = analyse_text(description.title)
    record_of = _Records(fact, description, force)
    informal = fact.form is Form.INFORMAL
    records = []
    document_text: list[str] = []
    document_entities: dict[str, None] = {}
    for chunk in chunks:
        terms = _chunk_terms(chunk)
        document_text += terms.own
        named = entities(chunk.text) if informal else []
        document_entities.update(dict.fromkeys(named))
        records.append(
            KeywordRecord(
                record=record_of(Kind.CHUNK, chunk.ordinal),
                title=title,
                headings=_terms_of(chunk.heading_path),
                text=[*analyse_text(chunk.context), *terms.whole] if chunk.context else terms.whole,
                entities=named,
            )
        )
    document = KeywordRecord(
        record=record_of(Kind.DOCUMENT, 0),
        title=title,
        headings=_terms_of(description.headings),
        text=document_text,
        entities=tuple(document_entities),
    )
    return KeywordChange(fact.document_id, fact.revision, (*records, document))


def vector_change(fact: Embedded, description: Description, vectors: NDArray[np.float32], force: Force) -> VectorChange:
    """Build the vector records of a revision: its chunks, and their mean for the document.

    Args:
        fact: What makes the revision searchable.
        description: Its origin.
        vectors: float32[n, d], row i belongs to chunk i.
        force: When it counts.

    Returns:
        The replacement of all records of the revision. A vector without length has no direction to be found by, so
        such a record is left to the keyword lane.
    """
    record_of = _Records(fact, description, force)
    has_length = np.linalg.norm(vectors, axis=1) > 0
    records = [record_of(Kind.CHUNK, int(ordinal)) for ordinal in np.flatnonzero(has_length)]
    rows = vectors if has_length.all() else vectors[has_length]
    mean = rows.mean(axis=0, dtype=np.float64) if len(rows) else np.zeros(vectors.shape[1])
    length = float(np.linalg.norm(mean))
    # Rows that cancel out leave a mean of rounding errors, which points nowhere.
    if length > 1e-6:
        records.append(record_of(Kind.DOCUMENT, 0))
        rows = np.concatenate([rows, (mean / length).astype(np.float32)[np.newaxis]])
    return VectorChange(fact.document_id, fact.revision, tuple(records), rows if records else None)


def distinct_terms(record: KeywordRecord) -> str:
    """Terms of a record, each once, sorted, joined by spaces: what the coverage of a question is measured by."""
    return " ".join(sorted({*record.title, *record.headings, *record.text}))


def _terms_of(texts: Iterable[str]) -> list[str]:
    return list(chain.from_iterable(analyse_text(text) for text in texts))


def _chunk_terms(chunk: ChunkContent) -> _Terms:
    text, cut = chunk.text, chunk.overlap_chars
    if not cut:
        whole = analyse_text(text)
        return _Terms(whole, whole)
    if text[cut - 1 : cut].isspace() or text[cut : cut + 1].isspace():
        # Analysis works word by word, so terms of the halves are the terms of the whole.
        own = analyse_text(text[cut:])
        return _Terms(analyse_text(text[:cut]) + own, own)
    # The cut is inside a word: the document gets that word whole.
    start = max(text.rfind(space, 0, cut) for space in (" ", "\n", "\t")) + 1
    return _Terms(analyse_text(text), analyse_text(text[start:]))
