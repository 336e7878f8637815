"""reStructuredText: sections, literal blocks, tables, lists and directives, found line by line on the original text.

docutils isn't used here: it stops at roles and directives that it doesn't know, which real documents are full of, gives
no source offsets, and takes a second for what takes a few milliseconds this way.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

from services.ingest.domain.normalize.lines import Lines
from services.ingest.domain.normalize.links import links_of, restructured_links
from services.ingest.domain.normalize.metadata import Collector
from services.ingest.domain.normalize.model import Block, BlockKind, MappedText, Pairs, Reading
from services.ingest.domain.normalize.outline import Outline
from services.ingest.domain.normalize.preamble import header_block
from services.ingest.domain.normalize.stated import closing_fields, with_stated

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*\Z")
_BULLET = re.compile(r"(?:[-*+\u2022\u2023\u2043]|\(?(?:[0-9]{1,9}|[A-Za-z]|#|[ivxlcdmIVXLCDM]{1,9})[.)])(?:[ \t]|\Z)")
_FIELD = re.compile(r":((?:[^:\\\r\n]|\\.|:(?![ \t\r\n]|\Z)){1,200}):(?:[ \t]+(.*))?\Z")
_EXPLICIT = re.compile(r"\.\.(?:[ \t]|\Z)")
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|]*\|[ \t]+)?([A-Za-z][\w.:+-]*?)[ \t]?::(?:[ \t]|\Z)")
_REFERENCE = re.compile(r"\.\.[ \t]+(?:\[|_|\||__[ \t])")
_GRID = re.compile(r"\+(?:[-=]+\+)+[ \t]*\Z")
_SIMPLE = re.compile(r"=+(?:[ \t]+=+)+[ \t]*\Z")
_CODE_DIRECTIVES = frozenset({"code", "code-block", "sourcecode", "parsed-literal", "literalinclude", "math",
                              "productionlist", "highlight", "doctest", "testcode", "testoutput", "graphviz"})  # fmt: skip
_TABLE_DIRECTIVES = frozenset({"table", "csv-table", "list-table"})
# Directives that show nothing of their own.
_SILENT_DIRECTIVES = frozenset({"contents", "image", "sectnum", "raw", "meta", "include", "toctree", "default-role",
                                "role", "index", "currentmodule", "module", "target-notes", "header", "footer"})  # fmt: skip
_WHOLE_CHARS = 1_000


def read_restructured(content: MappedText) -> Reading:
    """Read reStructuredText.

    Args:
        content: The decoded text.

    Returns:
        Blocks on the text as it is; an RFC-822 header, as PEPs have it, or a docinfo field list becomes metadata.
        Comments belong to no block.
    """
    reader = _Reader(content.text)
    blocks = tuple(reader.blocks())
    links = links_of(restructured_links(content.text, blocks))
    metadata = with_stated(reader.metadata, closing_fields(content.text, blocks))
    return Reading(content, blocks, reader.outline.headings, metadata, links=links)


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines = Lines(text)
        self._styles: list[str] = []
        self._borders: list[int] | None = None
        # Set when the paragraph before ends with "::", so that an indented block is literal.
        self._literal = False
        self.outline = Outline()
        self.metadata: Pairs = ()

    def blocks(self) -> Iterator[Block]:
        at = 0
        header = header_block(self._lines.text, any_names=True)
        if header:
            self.metadata = header.metadata
            yield from header.blocks
            at = self._lines.number(header.body)
        while at < len(self._lines):
            if self._lines.is_blank(at):
                at += 1
                continue
            blocks, at = self._element(at)
            yield from blocks

    def _element(self, at: int) -> tuple[list[Block], int]:
        """Blocks of the element that starts at a line, and the line after it."""
        line = self._lines[at]
        literal, self._literal = self._literal, False
        if line[0] in " \t":
            return self._indented(at, literal=literal)
        title = self._title(at)
        if title:
            return title
        if literal and (match := _ADORNMENT.match(line[0])):
            end = self._while(at, lambda text: text.startswith(match[1]))
            return [self._block(BlockKind.CODE, at, end)], end
        if _EXPLICIT.match(line):
            return self._explicit(at)
        return self._body(at, line)

    def _indented(self, at: int, *, literal: bool) -> tuple[list[Block], int]:
        if literal:
            end = self._indented_end(at)
            return [self._block(BlockKind.CODE, at, end)], end
        end = self._paragraph_end(at)
        self._note_literal(self._lines[end - 1])
        return [self._block(BlockKind.PARAGRAPH, at, end)], end

    def _body(self, at: int, line: str) -> tuple[list[Block], int]:
        if _GRID.match(line):
            end = self._while(at, lambda text: text[0] in "+|")
            return [self._block(BlockKind.TABLE, at, end)], end
        end = self._simple_table_end(at) if _SIMPLE.match(line) else 0
        if end:
            return [self._block(BlockKind.TABLE, at, end)], end
        if line.startswith(">>>"):
            end = self._paragraph_end(at)
            return [self._block(BlockKind.CODE, at, end)], end
        if _BULLET.match(line) or _FIELD.match(line):
            return self._list(at)
        if _ADORNMENT.match(line) and len(line.rstrip()) >= 4:
            return [], at + 1
        end = self._paragraph_end(at)
        self._note_literal(self._lines[end - 1])
        return [self._block(BlockKind.PARAGRAPH, at, end)], end

    def _title(self, at: int) -> tuple[list[Block], int] | None:
        """A section title: text over a line of one repeated mark, which may stand above it too."""
        mark = self._adornment(at)
        if mark and self._is_text(at + 1) and self._adornment(at + 2) == mark:
            name = self._lines[at + 1].strip()
            if len(self._lines[at].rstrip()) >= min(len(name), 4):
                return self._section(mark + mark, name, at, at + 3)
        under = self._adornment(at + 1)
        name = self._lines[at].strip()
        if under and not mark and len(self._lines[at + 1].rstrip()) >= min(len(name), 4):
            return self._section(under, name, at, at + 2)
        return None

    def _section(self, style: str, name: str, at: int, end: int) -> tuple[list[Block], int]:
        if style not in self._styles:
            self._styles.append(style)
        path = self.outline.enter(self._styles.index(style) + 1, " ".join(name.split()))
        return [Block(BlockKind.HEADING, *self._lines.span(at, end), path)], end

    def _adornment(self, at: int) -> str:
        """The mark that a line repeats, empty if it is no such line."""
        match = _ADORNMENT.match(self._lines[at]) if at < len(self._lines) else None
        return match[1] if match and len(match.group().rstrip()) >= 2 else ""

    def _is_text(self, at: int) -> bool:
        return at < len(self._lines) and not self._lines.is_blank(at) and not self._adornment(at)

    def _explicit(self, at: int) -> tuple[list[Block], int]:
        """Directives, notes and targets with what is indented below them; comments give no block."""
        line = self._lines[at]
        empty = line.rstrip() == ".." and at + 1 < len(self._lines) and self._lines.is_blank(at + 1)
        end = at + 1 if empty else self._indented_end(at + 1)
        directive = _DIRECTIVE.match(line)
        name = directive[1].lower() if directive else ""
        if name in _SILENT_DIRECTIVES or not (directive or _REFERENCE.match(line)):
            return [], end
        kind = BlockKind.PARAGRAPH
        if name in _CODE_DIRECTIVES:
            kind = BlockKind.CODE
        elif name in _TABLE_DIRECTIVES:
            kind = BlockKind.TABLE
        return [self._block(kind, at, end)], end

    def _list(self, at: int) -> tuple[list[Block], int]:
        """Items in a row, each with what is indented below it."""
        items: list[tuple[int, int]] = []
        place = at
        while place < len(self._lines):
            line = self._lines[place]
            if not (line.strip() and line[0] not in " \t" and (_BULLET.match(line) or _FIELD.match(line))):
                break
            end = self._item_end(place)
            items.append((place, end))
            place = end
        if not self.metadata and len(self.outline.headings) < 2:
            self.metadata = self._fields(items)
        whole = self._block(BlockKind.LIST, at, place)
        if whole.text_end - whole.text_start <= _WHOLE_CHARS:
            return [whole], place
        return [self._block(BlockKind.LIST, first, end) for first, end in items], place

    def _fields(self, items: list[tuple[int, int]]) -> Pairs:
        collector = Collector()
        for first, end in items:
            field = _FIELD.match(self._lines[first])
            if field:
                rest = (self._lines[index].strip() for index in range(first + 1, min(end, first + 50)))
                collector.add(field[1], " ".join([field[2] or "", *rest]))
        return collector.pairs()

    def _item_end(self, at: int) -> int:
        """The line after an item: its own lines, then whatever is indented; blank lines between belong to it."""
        place = at + 1
        while place < len(self._lines) and self._lines[place].strip():
            line = self._lines[place]
            if line[0] not in " \t" and (_BULLET.match(line) or _FIELD.match(line) or self._adornment(place)):
                return place
            place += 1
        return self._indented_end(place)

    def _indented_end(self, at: int) -> int:
        """The line after the indented lines that start at or after `at`, blank ones between and after them included."""
        place = at
        while place < len(self._lines):
            line = self._lines[place]
            if line.strip() and line[0] not in " \t":
                break
            place += 1
        return place

    def _paragraph_end(self, at: int) -> int:
        return self._while(at, lambda _: True)

    def _while(self, at: int, accept: Callable[[str], bool]) -> int:
        """The first line after `at` that is blank or not accepted."""
        place = at + 1
        while place < len(self._lines):
            line = self._lines[place]
            if not line.strip() or not accept(line):
                break
            place += 1
        return place

    def _simple_table_end(self, at: int) -> int:
        """The line after a simple table: after the first border that a blank line follows; 0 if there is none."""
        if self._borders is None:
            last = len(self._lines) - 1
            self._borders = [
                index
                for index in range(len(self._lines))
                if _SIMPLE.match(self._lines[index]) and (index == last or self._lines.is_blank(index + 1))
            ]
        place = bisect_left(self._borders, at + 1)
        return self._borders[place] + 1 if place < len(self._borders) else 0

    def _note_literal(self, line: str) -> None:
        self._literal = line.rstrip().endswith("::")

    def _block(self, kind: BlockKind, at: int, end: int) -> Block:
        return Block(kind, *self._lines.span(at, end), self.outline.path)
