"""Values that retrieval and answering pass around."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum


class Form(Enum):
    """How a document is weighed."""

    TEXT = "text"
    STRUCTURED = "structured"
    INFORMAL = "informal"


class RecordKind(Enum):
    """What a record of a lane stands for."""

    CHUNK = "chunk"
    DOCUMENT = "document"


class RetrievalMode(Enum):
    """Which lanes a query uses."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True, order=True)
class RecordKey:
    """Names a chunk; for a document record the ordinal is 0.

    Attributes:
        document_id: Document.
        revision: Its revision.
        ordinal: Of the chunk.
        statement: Which of the chunk's propositions was found, from 1, and 0 for none. Not part of the name.
    """

    document_id: str
    revision: int
    ordinal: int
    statement: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class LaneHit:
    """One record that a lane returned, in the lane's order.

    Attributes:
        key: The chunk (or document) that the record belongs to.
        score: BM25 score or cosine.
        form: Form of its document.
    """

    key: RecordKey
    score: float
    form: Form


@dataclass(frozen=True, slots=True)
class TermWeight:
    """A term of the query after the index's analysis.

    Attributes:
        term: The analysed term.
        idf: Robertson-Sparck Jones IDF; 0 where no record has the term.
        document_frequency: Records that hold it.
    """

    term: str
    idf: float
    document_frequency: int


@dataclass(frozen=True, slots=True)
class LaneAnswer:
    """What one lane said.

    Attributes:
        hits: In the lane's order.
        position: KNOWLEDGE position that the lane had applied.
        terms: Only from the keyword lane: the query's terms.
        generation: Generation that answered.
    """

    hits: tuple[LaneHit, ...] = ()
    position: int = 0
    terms: tuple[TermWeight, ...] = ()
    generation: int = 0


@dataclass(frozen=True, slots=True)
class LaneUse:
    """How a lane took part in one query.

    Attributes:
        lane: "keyword" or "vector".
        used: True when it was asked and answered.
        note: Why it was not, in words; empty when used.
        hits: Records it returned.
    """

    lane: str
    used: bool
    note: str
    hits: int


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of a chunk's text and where it lies in the original; ends exclusive.

    Attributes:
        text_start: Code points into the chunk's text.
        text_end: Same.
        char_start: Code points into the decoded original.
        char_end: Same.
        byte_start: Bytes into the original.
        byte_end: Same.
        verbatim: True when the text equals the decoded original there, code point by code point.
    """

    text_start: int
    text_end: int
    char_start: int
    char_end: int
    byte_start: int
    byte_end: int
    verbatim: bool


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as the index holds it, with what a citation needs.

    Attributes:
        key: The chunk.
        text: Its normalised text.
        heading_path: Titles of the enclosing headings, outermost first.
        context: What a reader needs beside the text, for example a CSV header row.
        runs: Where the text lies in the original, ordered, without gaps in the text.
        terms: Analysed terms of title, headings, context and text.
        title: Of the document.
        source_id: Of the document.
        source_domain: Independent origin of the document.
        media_type: Of the document, for example "text/csv".
        charset: Codec that decodes the original bytes.
        uri: Of the document; may be empty.
        form: Form of the document.
        effective_at: When the revision came into force; None when unknown.
        ingested_position: KNOWLEDGE position of the fact that brought the revision.
        statement: The proposition by which the chunk was found; empty for none.
    """

    key: RecordKey
    text: str
    heading_path: tuple[str, ...] = ()
    context: str = ""
    runs: tuple[Run, ...] = ()
    terms: frozenset[str] = frozenset()
    title: str = ""
    source_id: str = ""
    source_domain: str = ""
    media_type: str = "text/plain"
    charset: str = "utf-8"
    uri: str = ""
    form: Form = Form.TEXT
    effective_at: datetime | None = None
    ingested_position: int = 0
    statement: str = ""


@dataclass(frozen=True, slots=True)
class LaneFilter:
    """What a lane may return; an empty tuple means all.

    Attributes:
        kind: Chunks or documents.
        forms: Forms of documents.
        document_ids: Documents.
        source_domains: Independent origins.
    """

    kind: RecordKind = RecordKind.CHUNK
    forms: tuple[Form, ...] = ()
    document_ids: tuple[str, ...] = ()
    source_domains: tuple[str, ...] = ()
