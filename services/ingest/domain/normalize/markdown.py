"""Markdown: block structure by CommonMark with tables, on the original text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from services.ingest.domain.normalize.lines import Lines
from services.ingest.domain.normalize.links import links_of, markdown_links
from services.ingest.domain.normalize.markdown_rules import prose, table
from services.ingest.domain.normalize.model import Block, BlockKind, MappedText, Reading
from services.ingest.domain.normalize.outline import Outline
from services.ingest.domain.normalize.preamble import Preamble, front_matter, header_block
from services.ingest.domain.normalize.stated import closing_fields, markdown_rows, metadata_table, with_stated

# Parsed piece by piece, so that memory doesn't grow with the file.
_PIECE_LINES = 20_000
_PIECE_CHARS = 2_000_000
# Inline markup of longer headings is left as it is.
_HEADING_CHARS = 500
_HEADING_MARKS = 40
_MARKUP = re.compile(r"[\[\]*_`<&!\\]")
# Larger lists and quotes are cut into their items, so that code and tables inside them stay whole.
_WHOLE_CHARS = 1_000

_KINDS = {
    "paragraph_open": BlockKind.PARAGRAPH,
    "html_block": BlockKind.PARAGRAPH,
    "blockquote_open": BlockKind.PARAGRAPH,
    "fence": BlockKind.CODE,
    "code_block": BlockKind.CODE,
    "table_open": BlockKind.TABLE,
    "bullet_list_open": BlockKind.LIST,
    "ordered_list_open": BlockKind.LIST,
    "list_item_open": BlockKind.LIST,
}
_CONTAINERS = frozenset({"blockquote_open", "bullet_list_open", "ordered_list_open", "list_item_open"})


@dataclass(frozen=True, slots=True)
class _Element:
    """A top-level block: its tokens, and its lines in the whole text."""

    tokens: Sequence[Token]
    first: int
    end: int


def read_markdown(content: MappedText) -> Reading:
    """Read Markdown.

    Args:
        content: The decoded text.

    Returns:
        Blocks on the text as it is. Comment lines in fences are no headings; heading names hold no markup.
    """
    text = content.text
    preamble = front_matter(text) or header_block(text, any_names=False)
    reader = _MarkdownReader(text, preamble)
    blocks = tuple(reader.blocks())
    metadata, notices = (preamble.metadata, preamble.notices) if preamble else ((), ())
    metadata = with_stated(metadata, metadata_table(text, blocks, markdown_rows), closing_fields(text, blocks))
    links = links_of(markdown_links(text, blocks))
    return Reading(content, blocks, reader.outline.headings, metadata, notices=notices, links=links)


class _MarkdownReader:
    def __init__(self, text: str, preamble: Preamble | None) -> None:
        self._lines = Lines(text)
        self._preamble = preamble
        self.outline = Outline()
        # Link definitions are text like any other here, and reading them as such keeps the parser linear.
        self._parser = MarkdownIt("commonmark").disable(["reference", "lheading"])
        self._parser.core.ruler.enableOnly(["normalize", "block"])
        self._parser.block.ruler.at("paragraph", prose)
        self._parser.block.ruler.at("table", table, {"alt": ["paragraph", "reference"]})
        self._parser.enable("table")
        self._inline = MarkdownIt("commonmark")

    def blocks(self) -> Iterator[Block]:
        first = 0
        if self._preamble:
            first = self._lines.number(self._preamble.body) - 1
            first += self._preamble.body > self._lines.starts[first]
            yield from self._preamble.blocks
        for element in self._elements(first):
            yield from self._blocks_of(element)

    def _elements(self, first: int) -> Iterator[_Element]:
        """Top-level elements. The last one of a piece may go on, so the next piece starts with it again."""
        size = _PIECE_LINES
        while first < len(self._lines):
            end = self._piece_end(first, size)
            elements = list(self._parse(first, end))
            if end < len(self._lines) and elements:
                last = elements.pop()
                end = last.first
                if end == first:
                    elements, end = self._cut(last)
                size = size * 2 if end == first else _PIECE_LINES
            yield from elements
            first = end

    @staticmethod
    def _cut(element: _Element) -> tuple[list[_Element], int]:
        """An element that fills a piece: a list or quote goes on with its last member, any other is read again."""
        heads = [
            (index, element.first + token.map[0])
            for index, token in enumerate(element.tokens)
            if token.level == 1 and token.nesting >= 0 and token.map
        ]
        if element.tokens[0].type not in _CONTAINERS or len(heads) < 2 or heads[-1][1] == element.first:
            return [], element.first
        index, line = heads[-1]
        return [_Element([*element.tokens[:index], element.tokens[-1]], element.first, line)], line

    def _piece_end(self, first: int, size: int) -> int:
        limit = self._lines.starts[first] + size * (_PIECE_CHARS // _PIECE_LINES)
        return min(len(self._lines), first + size, max(first + 1, self._lines.number(limit)))

    def _parse(self, first: int, end: int) -> Iterator[_Element]:
        start = self._lines.starts[first]
        stop = self._lines.starts[end] if end < len(self._lines) else len(self._lines.text)
        tokens = self._parser.parse(self._lines.text[start:stop])
        opened = 0
        for index, token in enumerate(tokens):
            if token.level == 0 and token.nesting >= 0:
                opened = index
            if token.level == 0 and token.nesting <= 0:
                span = tokens[opened].map or [0, 0]
                yield _Element(tokens[opened : index + 1], first + span[0], first + span[1])

    def _blocks_of(self, element: _Element) -> Iterator[Block]:
        token = element.tokens[0]
        start, end = self._lines.span(element.first, element.end)
        if token.type == "heading_open":
            name = self._heading(element.tokens[1].content)
            path = self.outline.enter(int(token.tag[1:]), name)
            yield Block(BlockKind.HEADING if name else BlockKind.PARAGRAPH, start, end, path)
        elif token.type in _CONTAINERS and end - start > _WHOLE_CHARS:
            yield from self._members(element)
        elif token.type in _KINDS and end > start:
            yield Block(
                _KINDS[token.type], start, end, self.outline.path, self._context(token, element.first, end - start)
            )

    def _members(self, element: _Element) -> Iterator[Block]:
        """Blocks of the members of a large container."""
        offset = element.first - (element.tokens[0].map or [0])[0]
        level = element.tokens[0].level + 1
        heads = [
            (index, token, offset + token.map[0], offset + token.map[1])
            for index, token in enumerate(element.tokens)
            if token.level == level and token.nesting >= 0 and token.map
        ]
        place = element.first
        for number, (index, token, start, end) in enumerate(heads):
            stop = heads[number + 1][0] if number + 1 < len(heads) else len(element.tokens) - 1
            first = max(place, start)
            place = max(end, first + 1)
            if token.type in _KINDS:
                yield from self._blocks_of(_Element(element.tokens[index:stop], first, place))
            elif token.type == "heading_open":
                # A heading in a list or quote bounds no section.
                yield Block(BlockKind.PARAGRAPH, *self._lines.span(first, place), self.outline.path)

    def _context(self, token: Token, first: int, size: int) -> str:
        """The header row of a table that is likely to be cut."""
        if token.type != "table_open" or size <= _WHOLE_CHARS:
            return ""
        header = self._lines[first].strip()
        return header if len(header) <= _WHOLE_CHARS else ""

    def _heading(self, content: str) -> str:
        """Name of a heading: its text without inline markup."""
        marks = len(_MARKUP.findall(content))
        if not marks or len(content) > _HEADING_CHARS or marks > _HEADING_MARKS:
            return " ".join(content.split())
        parts = []
        for token in self._inline.parseInline(content)[0].children or ():
            if token.type in {"text", "code_inline"}:
                parts.append(token.content)
            elif token.type in {"softbreak", "hardbreak"}:
                parts.append(" ")
        return " ".join("".join(parts).split()) or " ".join(content.split())
