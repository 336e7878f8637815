"""CSV and its relatives: rows found in place, cells with line breaks and ragged rows included."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from services.ingest.domain.normalize.lines import LINE_END, line_number
from services.ingest.domain.normalize.model import Block, BlockKind, MappedText, Reading
from services.ingest.domain.normalize.records import MAX_RECORDS, clip, too_many

_DELIMITERS = ",;\t|"
_SAMPLE_ROWS = 50
# A header beyond this length isn't repeated as the context of each row.
_CONTEXT_CHARS = 2_000
_HINT = re.compile(rf"sep=([^\w\s\"]|\t)[ \t]*{LINE_END}", re.IGNORECASE)
_VALUE = re.compile(r"[-+]?[\d.,:/%\u20ac$\u00a3 -]*\d[\d.,:/%\u20ac$\u00a3 TZ-]*")


@dataclass(frozen=True, slots=True)
class _Row:
    start: int
    end: int
    cells: int


class _Rows:
    """Rows of a text under one delimiter. A quote that never closes makes quotes plain from there on."""

    def __init__(self, text: str, delimiter: str, start: int) -> None:
        self._text = text
        self._start = start
        self.delimiter = delimiter
        self._plain = re.compile(rf"[^{re.escape(delimiter)}\r\n]*")
        self._quoted = re.compile(r'"[^"]*+(?:""[^"]*+)*+"')
        self._line_end = re.compile(LINE_END)
        self.unclosed = -1

    def __iter__(self) -> Iterator[_Row]:
        position, size = self._start, len(self._text)
        while position < size:
            start, cells = position, 1
            position = self._cell(position)
            while self._text.startswith(self.delimiter, position):
                position, cells = self._cell(position + 1), cells + 1
            yield _Row(start, position, cells)
            line_end = self._line_end.match(self._text, position)
            position = line_end.end() if line_end else position

    def _cell(self, position: int) -> int:
        """End of the cell that starts at a place."""
        if self.unclosed < 0 and self._text.startswith('"', position):
            quoted = self._quoted.match(self._text, position)
            if quoted:
                position = quoted.end()
            else:
                self.unclosed = position
        plain = self._plain.match(self._text, position)
        return plain.end() if plain else position


def read_delimited(content: MappedText, *, delimiter: str = "") -> Reading:
    """Read rows of cells.

    Args:
        content: The decoded text.
        delimiter: The cell delimiter; empty to find it out.

    Returns:
        A record for each row that isn't blank. The header row is the first record and the context of all others.

    Raises:
        InvalidDocument: There are too many rows.
    """
    text = content.text
    hint = _HINT.match(text)
    start = hint.end() if hint else 0
    rows = _Rows(text, delimiter or (hint[1] if hint else _delimiter(text, start)), start)
    blocks: list[Block] = []
    context, header_cells, ragged, first_ragged = "", 0, 0, 0
    for row in rows:
        if not text[row.start : row.end].strip():
            continue
        if len(blocks) >= MAX_RECORDS:
            raise too_many()
        if not blocks:
            header = text[row.start : row.end]
            is_header = _is_header(header, rows)
            context = header if is_header and len(header) <= _CONTEXT_CHARS else ""
            header_cells = row.cells
            blocks.append(Block(BlockKind.RECORD, row.start, row.end))
            continue
        if row.cells != header_cells:
            ragged, first_ragged = ragged + 1, first_ragged or row.start
        blocks.append(Block(BlockKind.RECORD, row.start, row.end, (), context))
    return Reading(content, tuple(blocks), form="structured", notices=_notices(text, rows, ragged, first_ragged))


def _notices(text: str, rows: _Rows, ragged: int, first_ragged: int) -> tuple[str, ...]:
    notices = []
    if ragged:
        noun = "row has" if ragged == 1 else "rows have"
        line = line_number(text, first_ragged)
        notices.append(f"{ragged} {noun} another number of cells than the first row, the first at line {line}")
    if rows.unclosed >= 0:
        line = line_number(text, rows.unclosed)
        notices.append(f"the quote at line {line} never closes; quotes from there on were read as plain characters")
    return tuple(notices)


def _delimiter(text: str, start: int) -> str:
    """The delimiter under which most of the first rows have the same number of cells, more than one."""
    scores = []
    for delimiter in _DELIMITERS:
        counts: Counter[int] = Counter()
        for number, row in enumerate(_Rows(text, delimiter, start)):
            if number >= _SAMPLE_ROWS:
                break
            if row.end > row.start:
                counts[row.cells] += 1
        cells, rows = max(counts.items(), key=lambda item: (item[0] > 1, item[1], item[0]), default=(1, 0))
        scores.append(((cells > 1, rows, cells), delimiter))
    return max(scores, key=lambda item: item[0])[1]


def _is_header(header: str, rows: _Rows) -> bool:
    """Names, not values: a header has no numbers or dates, and no name twice."""
    names = [clip(name.strip().strip('"')) for name in header.split(rows.delimiter)]
    filled = [name for name in names if name]
    return bool(filled) and len(set(filled)) == len(filled) and not any(_VALUE.fullmatch(name) for name in filled)
