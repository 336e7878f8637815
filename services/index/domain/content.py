"""Content of a revision, and what tables hold of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from services.index.domain.documents import Embedded, Plan
from services.index.domain.force import Force
from services.index.domain.generations import GenerationFact
from services.index.domain.living.changes import LivingChange, StateChange
from services.index.domain.records import Form, RevisionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkContent:
    """One chunk.

    Attributes:
        ordinal: From 0.
        text: Its text.
        heading_path: Titles of the enclosing headings, outermost first.
        context: What a reader needs beside the text.
        overlap_chars: Code points at the start that the chunk before it holds too.
        encoded: The whole chunk as its contract encodes it, kept as it is.
    """

    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    context: str
    overlap_chars: int
    encoded: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What is told about a revision's original.

    Attributes:
        title: Its title, or empty.
        source_id: Source id.
        source_domain: Independent origin.
        media_type: For example "text/markdown".
        charset: Codec that decodes the original.
        uri: Where it was found, or empty.
        headings: Its headings in order.
        metadata: What it, or who put it, says about it. Told by packs, not by rows.
        links: Targets of its links, as written. Told by packs, not by rows.
    """

    title: str = ""
    source_id: str = ""
    source_domain: str = ""
    media_type: str = ""
    charset: str = ""
    uri: str = ""
    headings: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """An accepted proposition, a record of its chunk.

    Attributes:
        ordinal: Of the chunk.
        number: From 1 within the chunk.
        text: Its text.
    """

    ordinal: int
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What stands for the chunks of a revision.

    Attributes:
        alone: Chunks that are records themselves.
        statements: Accepted propositions, by chunk and number.
    """

    alone: frozenset[int]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionContent:
    """All content that the index takes from the packs of a revision.

    Attributes:
        description: What is told about the original.
        chunks: Each chunk as its contract encodes it, in order.
        terms: Distinct terms of each chunk, joined by spaces.
        evaluated: What stands for the chunks; None: they do.
    """

    description: Description
    chunks: tuple[bytes, ...]
    terms: tuple[str, ...] = ()
    evaluated: Evaluated | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrateRows:
    """Rows of one crate that a batch writes.

    Attributes:
        crate_id: Crate.
        plan: Net effect on its documents.
        contents: Content of the plan's stored revisions, by document and revision.
        forces: When revisions count from now on: of those stored, and of others where it changed.
        living: What changed in relations and timelines; None when nothing was told about them.
        generations: Facts about its generations, in log order.
        lanes_changed: Generations whose lanes the batch changed.
    """

    crate_id: str
    plan: Plan
    contents: dict[RevisionKey, RevisionContent]
    forces: Mapping[RevisionKey, Force] = field(default_factory=dict)
    living: LivingChange | None = None
    generations: tuple[GenerationFact, ...] = ()
    lanes_changed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRevision:
    """A revision that isn't erased.

    Attributes:
        revision: 1, 2, 3 ...
        effective_from: From when on it counts, microseconds since 1970.
        position: KNOWLEDGE position that brought it.
        stored: It was embedded, so that rows and lanes hold it.
    """

    revision: int
    effective_from: int
    position: int
    stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkKey:
    """Names one chunk, and which of its propositions is wanted beside it; 0: none."""

    document_id: str
    revision: int
    ordinal: int
    statement: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """One chunk with what is told about its revision.

    Attributes:
        key: Its name.
        encoded: The chunk as its contract encodes it.
        description: Of its revision; headings are left out.
        form: How its document is weighed.
        force: When its revision counts.
        effective_at: When its revision comes into force, UTC, where known.
        ingested_position: KNOWLEDGE position of its revision's first event.
        terms: Its distinct terms, sorted; empty where they weren't asked for.
        statement: Text of the proposition that the key names.
    """

    key: ChunkKey
    encoded: bytes
    description: Description
    form: Form
    force: Force
    effective_at: datetime | None
    ingested_position: int
    terms: tuple[str, ...] = ()
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRevision:
    """A revision that the lanes hold, as the tables know it: what a lost lane is rebuilt from.

    Attributes:
        fact: What made it searchable.
        description: What is told about its original.
        force: When it counts.
    """

    fact: Embedded
    description: Description
    force: Force


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSignal:
    """A LivingStateChanged that is still to be sent.

    Attributes:
        number: Order in which it was noted.
        crate_id: Crate.
        change: What changed.
    """

    number: int
    crate_id: str
    change: StateChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A RevisionIndexed that is still to be sent.

    Attributes:
        number: Order in which it was noted.
        crate_id: Crate.
        document_id: 32 hex digits.
        revision: Revision that became searchable.
        settings_digest: Digest that its chunks were cut with.
        generation: Generation whose lanes hold it.
        record_count: Its number of chunks.
        position: KNOWLEDGE position of the fact that made it searchable.
    """

    number: int
    crate_id: str
    document_id: str
    revision: int
    settings_digest: str
    generation: int
    record_count: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """When revisions count, as known at a position.

    Attributes:
        position: KNOWLEDGE position that the tables have applied.
        forces: Of those asked for; revisions that aren't stored are left out.
    """

    position: int
    forces: Mapping[RevisionKey, Force]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """In what the revisions that count at a past position differ from what the lanes' ranges say.

    Attributes:
        also: Revisions that counted then, although the ranges leave them out.
        without: Revisions that didn't count then, although the ranges let them in.
    """

    also: tuple[RevisionKey, ...] = ()
    without: tuple[RevisionKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Chunks read at a position.

    Attributes:
        position: KNOWLEDGE position that the tables have applied.
        chunks: In the order asked for.
    """

    position: int
    chunks: tuple[StoredChunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionPage:
    """Some chunks of one revision.

    Attributes:
        revision: Which one.
        chunk_count: Chunks that it has in all.
        headings: Its headings in order.
        chunks: By ordinal.
    """

    revision: int
    chunk_count: int
    headings: tuple[str, ...]
    chunks: tuple[StoredChunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCounts:
    """Records of a crate's current revisions, by kind."""

    chunks: int
    documents: int
