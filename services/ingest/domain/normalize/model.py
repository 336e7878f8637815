"""Values of the normalisers: text, where each piece of it comes from, and its structure."""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Form = Literal["text", "structured", "informal"]
Pairs = tuple[tuple[str, str], ...]

REPLACEMENT = "\ufffd"


class InvalidDocument(ValueError):  # noqa: N818  (the outcome's name, not an accident)
    """A document that can't be read. The message says what is wrong, where, and what to do."""


class BlockKind(Enum):
    """What a stretch of text is."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    CODE = "code"
    TABLE = "table"
    LIST = "list"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of the text and the span of the original that it comes from.

    All offsets count from 0 and ends are exclusive. `text_*` and `char_*` count code points, the first in the normalised
    text and the second in the original as `body.decode(charset, "replace")` gives it (a byte order mark counts).
    A verbatim run equals `body[byte_start:byte_end].decode(charset)`, and any prefix of it encodes to as many bytes as
    the original has there. Other runs map as a whole.
    """

    text_start: int
    text_end: int
    char_start: int
    char_end: int
    byte_start: int
    byte_end: int
    verbatim: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A structural piece of the text, `text_start` to `text_end` in code points, below `heading_path`."""

    kind: BlockKind
    text_start: int
    text_end: int
    heading_path: tuple[str, ...] = ()
    context: str = ""


@dataclass(frozen=True, slots=True)
class MappedText:
    """Text whose ordered runs cover it without gaps."""

    text: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader of one format found."""

    content: MappedText
    blocks: tuple[Block, ...]
    headings: tuple[str, ...] = ()
    metadata: Pairs = ()
    title: str = ""
    form: Form = "text"
    notices: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Normalized:
    """A document, ready to be cut into chunks. See `Run` and `Block` for the meaning of offsets."""

    media_type: str
    charset: str
    form: Form
    title: str
    text: str
    runs: tuple[Run, ...]
    blocks: tuple[Block, ...]
    headings: tuple[str, ...]
    metadata: Pairs
    notices: tuple[str, ...]
    links: tuple[str, ...] = ()
