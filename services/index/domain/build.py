"""From a revision's content to the records of both lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from services.index.domain.analysis import analyse_text, entities
from services.index.domain.content import ChunkContent, Description, Evaluated, Statement
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

    def __call__(self, kind: Kind, ordinal: int, statement: int = 0) -> Record:
        fact, domain = self.fact, self.description.source_domain
        return Record(fact.document_id, fact.revision, ordinal, kind, fact.form, domain, self.force, statement)


@dataclass(frozen=True, slots=True)
class KeywordRecords:
    """What the keyword lane may get of a revision.

    Attributes:
        chunks: One per chunk.
        document: The whole document.
    """

    chunks: tuple[KeywordRecord, ...]
    document: KeywordRecord

    def change(self, evaluated: Evaluated | None) -> KeywordChange:
        """Choose the records.

        Args:
            evaluated: What stands for the chunks; None: they do.

        Returns:
            The replacement of all records of the revision.
        """
        own = self.document.record
        if evaluated is None:
            return KeywordChange(own.document_id, own.revision, (*self.chunks, self.document))
        alone = (record for record in self.chunks if record.record.ordinal in evaluated.alone)
        statements = (self._statement(each) for each in evaluated.statements)
        return KeywordChange(own.document_id, own.revision, (*alone, *statements, self.document))

    def _statement(self, told: Statement) -> KeywordRecord:
        """A proposition is found by its own words, and by title and headings as its chunk is."""
        chunk = self.chunks[told.ordinal]
        informal = chunk.record.form is Form.INFORMAL
        return replace(
            chunk,
            record=replace(chunk.record, statement=told.number),
            text=analyse_text(told.text),
            entities=entities(told.text) if informal else (),
        )


def keyword_records(
    fact: Embedded, description: Description, chunks: Sequence[ChunkContent], force: Force
) -> KeywordRecords:
    """Build the keyword records of a revision: one per chunk and one for the document.

    Args:
        fact: What makes the revision searchable.
        description: Its title, headings and origin.
        chunks: Its chunks in order, at least one.
        force: When it counts.

    Returns:
        All of them.
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
    return KeywordRecords(tuple(records), document)


def vector_change(
    fact: Embedded,
    description: Description,
    vectors: NDArray[np.float32],
    force: Force,
    evaluated: Evaluated | None = None,
) -> VectorChange:
    """Build the vector records of a revision: its chunks or what stands for them, and the chunks' mean for the document.

    Args:
        fact: What makes the revision searchable.
        description: Its origin.
        vectors: float32[n, d], row i belongs to chunk i, then one for each proposition.
        force: When it counts.
        evaluated: What stands for the chunks; None: they do.

    Returns:
        The replacement of all records of the revision. A vector without length has no direction to be found by, so
        such a record is left to the keyword lane.
    """
    record_of = _Records(fact, description, force)
    has_length = np.linalg.norm(vectors, axis=1) > 0
    count = len(vectors) - len(evaluated.statements) if evaluated else len(vectors)
    chunks = vectors[:count] if has_length[:count].all() else vectors[:count][has_length[:count]]
    mean = chunks.mean(axis=0, dtype=np.float64) if len(chunks) else np.zeros(vectors.shape[1])
    kept = has_length.copy()
    places = [(ordinal, 0) for ordinal in range(count)]
    if evaluated:
        kept[:count] &= np.isin(np.arange(count), list(evaluated.alone))
        places += [(each.ordinal, each.number) for each in evaluated.statements]
    records = [record_of(Kind.CHUNK, *places[row]) for row in np.flatnonzero(kept)]
    rows = vectors if kept.all() else vectors[kept]
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
