"""HTML: readable text with the structure of the page, each piece mapped to the source."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from services.ingest.domain.normalize.html_outline import BOILERPLATE, SHOWN, Page, Place, Stretch, page_of
from services.ingest.domain.normalize.html_tokens import entities
from services.ingest.domain.normalize.lines import line_number
from services.ingest.domain.normalize.mapping import Extractor
from services.ingest.domain.normalize.metadata import Collector
from services.ingest.domain.normalize.model import Block, BlockKind, MappedText, Pairs, Reading
from services.ingest.domain.normalize.outline import Outline
from services.ingest.domain.normalize.stated import metadata_table, with_stated

_SPACES = re.compile(r"\s\s+")
_WHOLE_CHARS = 1_000
_FIRST_LINE_END = re.compile(r"[ \t]*(?:\r\n|\n|\r)")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A rendered stretch: where it stands in the page and in the new text."""

    place: Place
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Group:
    """Stretches that are one block."""

    kind: BlockKind
    number: int


def read_html(content: MappedText, charset: str) -> Reading:
    """Read HTML.

    Args:
        content: The decoded source.
        charset: Codec of its bytes.

    Returns:
        The text without scripts, navigation and footers, or with those if there is nothing else; entities are replaced
        and white space is collapsed. Cells are set apart by " | ".

    Raises:
        InvalidDocument: The page is nested too deeply.
    """
    source = content.text
    page = page_of(source)
    notices = []
    places = [(number, place) for number, place in page.places if place.hidden == SHOWN]
    if not places:
        places = [(number, place) for number, place in page.places if place.hidden == BOILERPLATE]
        notices += ["the page holds only navigation and footer text, which was kept"] if places else []
    if page.broken_at >= 0:
        notices.append(f"the page breaks off inside a tag or comment at line {line_number(source, page.broken_at)}")
    writer = _Writer(source, Extractor(content, charset))
    groups = [
        (group, writer.write(page, group, list(members)))
        for group, members in groupby(places, key=lambda item: _group(page, *item))
    ]
    text = writer.extractor.build()
    outline = Outline()
    blocks = tuple(block for group, pieces in groups for block in _blocks(text.text, group, pieces, outline))
    pieces = [piece for _, members in groups for piece in members]
    table = metadata_table(text.text, blocks, lambda _, block: _rows(text.text, pieces, block))
    metadata = with_stated(_with_fields(page.metadata, text.text, pieces), table)
    return Reading(text, blocks, outline.headings, metadata, page.title, notices=tuple(notices), links=page.links)


def _group(page: Page, number: int, place: Place) -> _Group:
    if place.heading:
        return _Group(BlockKind.HEADING, place.heading)
    if place.pre:
        return _Group(BlockKind.CODE, place.pre)
    if place.table and place.table not in page.layout:
        return _Group(BlockKind.TABLE, place.table)
    outer = next((element for element, _ in place.lists if element not in page.layout), 0)
    return _Group(BlockKind.LIST, outer) if outer else _Group(BlockKind.PARAGRAPH, -number)


class _Writer:
    """Writes stretches; white space waits until text follows it, and so do separators."""

    def __init__(self, source: str, extractor: Extractor) -> None:
        self._source = source
        self.extractor = extractor
        # Where the last written source ends.
        self._position = 0
        self._separator = ""
        self._space: tuple[int, int, str] | None = None
        # Nothing of the current stretch is written yet; else its text starts at `_begin`.
        self._fresh = True
        self._begin = 0

    def write(self, page: Page, group: _Group, members: list[tuple[int, Place]]) -> list[_Piece]:
        """Write the stretches of one block.

        Returns:
            Those that hold any text.
        """
        pieces: list[_Piece] = []
        for number, place in members:
            before = pieces[-1].place if pieces else None
            self._separator = _separator(group.kind, before, place) if self.extractor.length else ""
            if self._separator == ": " and self._source[self._position - 1] == ":":
                self._separator = " "
            self._stretch(page.stretches[number], preformatted=group.kind is BlockKind.CODE)
            if not self._fresh:
                pieces.append(_Piece(place, self._begin, self.extractor.length))
        return pieces

    def _stretch(self, stretch: Stretch, *, preformatted: bool) -> None:
        self._fresh, self._space = True, None
        for start, end, is_break in stretch.pieces:
            if is_break:
                self._hold(start, end, "\n")
                continue
            position = start
            for first, last, character in entities(self._source, start, end):
                self._text(position, first, preformatted=preformatted)
                self._reference(first, last, character, preformatted=preformatted)
                position = last
            self._text(position, end, preformatted=preformatted)

    def _reference(self, start: int, end: int, character: str, *, preformatted: bool) -> None:
        if character == self._source[start:end]:
            self._text(start, end, preformatted=preformatted)
        elif character.isspace() and not preformatted:
            self._hold(start, end, character)
        elif character:
            self._flush(start)
            self.extractor.put(character, start, end)
            self._position = end

    def _hold(self, start: int, end: int, space: str) -> None:
        """White space is written when text follows; a line break wins over a space."""
        if not self._fresh and (self._space is None or space == "\n"):
            self._space = (start, end, space)

    def _text(self, start: int, end: int, *, preformatted: bool) -> None:
        if preformatted:
            self._preformatted(start, end)
            return
        position = start
        for spaces in _SPACES.finditer(self._source, start, end):
            self._words(position, spaces.start())
            self._hold_first(*spaces.span())
            position = spaces.end()
        self._words(position, end)

    def _hold_first(self, start: int, end: int) -> None:
        """Of several white space characters one stays: the first line feed, else the first."""
        feed = self._source.find("\n", start, end)
        at = feed if feed >= 0 else start
        if not self._fresh and self._space is None:
            self._space = (at, at + 1, "")

    def _words(self, start: int, end: int) -> None:
        """Text that has no two white space characters in a row."""
        if start < end and self._source[start].isspace():
            self._hold_first(start, start + 1)
            start += 1
        stop = end - 1 if end > start and self._source[end - 1].isspace() else end
        if start < stop:
            self._flush(start)
            self.extractor.copy(start, stop)
            self._position = stop
        if stop < end:
            self._hold_first(stop, end)

    def _preformatted(self, start: int, end: int) -> None:
        if self._fresh:
            first = _FIRST_LINE_END.match(self._source, start, end)
            while first:
                start = first.end()
                first = _FIRST_LINE_END.match(self._source, start, end)
        stop = start + len(self._source[start:end].rstrip())
        if stop > start:
            self._flush(start)
            self.extractor.copy(start, stop)
            self._position = stop
        if stop < end and not self._fresh:
            self._flush(stop)
            self._space = (stop, end, "")

    def _flush(self, start: int) -> None:
        """Write what waits: at the start of a stretch its separator, inside it white space."""
        if self._fresh:
            self.extractor.put(self._separator, self._position, start)
            self._begin = self.extractor.length
        elif self._space and self._space[2]:
            self.extractor.put(self._space[2], self._space[0], self._space[1])
        elif self._space:
            self.extractor.copy(self._space[0], self._space[1])
        self._fresh, self._space = False, None


def _separator(kind: BlockKind, before: Place | None, place: Place) -> str:
    if before is None:
        return "\n\n"
    if kind is BlockKind.TABLE and before.row == place.row:
        return " " if before.cell == place.cell else " | "
    if kind is BlockKind.LIST and before.term == "dt" and place.term == "dd":
        return ": "
    return " " if kind is BlockKind.HEADING else "\n"


def _blocks(text: str, group: _Group, pieces: list[_Piece], outline: Outline) -> Iterator[Block]:
    if not pieces:
        return
    start, end = pieces[0].start, pieces[-1].end
    if group.kind is BlockKind.HEADING:
        name = " ".join(text[start:end].split())
        yield Block(group.kind, start, end, outline.enter(pieces[0].place.level, name))
    elif group.kind is BlockKind.LIST and end - start > _WHOLE_CHARS:
        for first, last in _items(pieces, group.number):
            yield Block(group.kind, first, last, outline.path)
    elif group.kind is BlockKind.TABLE and end - start > _WHOLE_CHARS:
        header = [piece for piece in pieces if piece.place.row == pieces[0].place.row]
        context = text[start : header[-1].end]
        yield Block(group.kind, start, end, outline.path, context if len(context) <= _WHOLE_CHARS else "")
    else:
        yield Block(group.kind, start, end, outline.path)


def _items(pieces: list[_Piece], outer: int) -> Iterable[tuple[int, int]]:
    for _, members in groupby(pieces, key=lambda piece: dict(piece.place.lists)[outer]):
        found = list(members)
        yield found[0].start, found[-1].end


def _rows(text: str, pieces: list[_Piece], table: Block) -> Iterator[list[str]]:
    """Texts of the cells of a table, row by row, its caption aside."""
    inside = (piece for piece in pieces if table.text_start <= piece.start < table.text_end and piece.place.cell)
    for _, row in groupby(inside, key=lambda piece: piece.place.row):
        cells = groupby(row, key=lambda piece: piece.place.cell)
        yield [" ".join(" ".join(text[piece.start : piece.end] for piece in cell).split()) for _, cell in cells]


def _with_fields(metadata: Collector, text: str, pieces: list[_Piece]) -> Pairs:
    """Metadata of the page, with the document fields that stand in marked lists."""
    name = ""
    for piece in pieces:
        if not piece.place.fields:
            continue
        words = " ".join(text[piece.start : piece.end].split())
        if piece.place.term == "dt":
            name = words.rstrip(":")
        else:
            metadata.add(name, words)
    return metadata.pairs()
