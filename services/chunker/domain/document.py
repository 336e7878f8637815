"""Values of chunking: the normalised text that comes in, the chunks that go out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class BlockKind(Enum):
    """What a stretch of text is. All but paragraphs and headings stay whole where the size allows."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    CODE = "code"
    TABLE = "table"
    LIST = "list"
    RECORD = "record"


KEPT_WHOLE = frozenset({BlockKind.CODE, BlockKind.TABLE, BlockKind.LIST, BlockKind.RECORD})


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of the text with one kind.

    Attributes:
        kind: What it is.
        start: First code point.
        end: Code point after the last.
        heading_path: Titles of the enclosing headings, outermost first.
        context: What a reader needs beside it, for example the header row of a CSV file.
    """

    kind: BlockKind
    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    context: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text and where it comes from in the original; offsets from 0, ends exclusive.

    Attributes:
        text_start: Code points into the text.
        text_end: Code points into the text.
        char_start: Code points into the decoded original.
        char_end: Code points into the decoded original.
        byte_start: Bytes into the original.
        byte_end: Bytes into the original.
        verbatim: True when the text equals the decoded original, code point by code point.
    """

    text_start: int
    text_end: int
    char_start: int
    char_end: int
    byte_start: int
    byte_end: int
    verbatim: bool


@dataclass(frozen=True, slots=True)
class NormalizedText:
    """A document's text as its normaliser left it.

    Attributes:
        text: The whole text.
        runs: Where it comes from, in order, without gaps; empty when nothing is known.
        blocks: What it consists of, by rising start; a block may lie inside the one before it.
        charset: Python codec that decodes the original.

    Raises:
        ValueError: When blocks or runs contradict the text.
    """

    text: str
    runs: tuple[Run, ...] = ()
    blocks: tuple[Block, ...] = ()
    charset: str = "utf-8"

    def __post_init__(self) -> None:
        before = 0
        for number, block in enumerate(self.blocks):
            if not before <= block.start < block.end <= len(self.text):
                raise ValueError(
                    f"block {number} covers {block.start}-{block.end}: outside the text or before its predecessor"
                )
            before = block.start
        before = 0
        for number, run in enumerate(self.runs):
            if run.text_start != before or run.text_end <= before:
                raise ValueError(f"run {number} covers {run.text_start}-{run.text_end}: it should start at {before}")
            if run.char_start > run.char_end or run.byte_start > run.byte_end:
                raise ValueError(f"run {number} ends before it starts in the original")
            before = run.text_end
        if self.runs and before != len(self.text):
            raise ValueError(f"the runs end at {before}, the text at {len(self.text)}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk.

    Attributes:
        ordinal: From 0.
        text: Its text, a slice of the document's text.
        heading_path: Titles of the enclosing headings, outermost first.
        context: Context of its first block that has one.
        runs: Where it comes from; the text side counts from the chunk's start, the original's side is absolute.
        overlap_chars: Code points at the start that the chunk before holds too.
        char_start: First code point in the decoded original.
        char_end: Code point after the last.
        byte_start: First byte in the original.
        byte_end: Byte after the last.
    """

    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    context: str
    runs: tuple[Run, ...]
    overlap_chars: int
    char_start: int
    char_end: int
    byte_start: int
    byte_end: int


@dataclass(frozen=True, slots=True)
class Description:
    """What travels with the chunks beside their text.

    Attributes:
        title: As resolved by ingest.
        headings: Every heading of the document.
        media_type: "text/csv" and the like.
        source_id: Name of the document for its owner.
        source_domain: Independent origin.
        uri: Where it comes from.
        metadata: Pairs, by key.
        notices: What ingest did to the text, in words.
        links: Targets of the document's links, as written.
    """

    title: str = ""
    headings: tuple[str, ...] = ()
    media_type: str = ""
    source_id: str = ""
    source_domain: str = ""
    uri: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RevisionAddress:
    """Names a revision of a document.

    Attributes:
        crate_id: Crate.
        document_id: 32 hex digits.
        revision: From 1.
    """

    crate_id: str
    document_id: str
    revision: int
