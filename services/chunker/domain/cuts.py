"""Where the chunks of one section begin and end. Linear in the section's length, whatever it holds.

Rules, the first that applies:
1. What is left fits: the last chunk takes it.
2. The limit falls into a stretch that is kept whole: the cut moves before it; where nothing new would be left, the
   overlap shrinks instead until the stretch fits, and further if then all that is left fits.
3. The last white space (the last line end inside an oversized table, list or fence) in the latter half.
4. The limit itself, or the grapheme boundary before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.chunker.domain.graphemes import boundary_at_or_after, boundary_at_or_before
from services.chunker.domain.sections import Section

_VISIBLE = re.compile(r"\S")
_WORD_START = re.compile(r"(?<=\s)\S")
_STRIDE = 4096


@dataclass(frozen=True, slots=True)
class Piece:
    """One chunk's place in the text.

    Attributes:
        start: First code point.
        fresh: First code point that the piece before doesn't hold.
        end: Code point after the last.
    """

    start: int
    fresh: int
    end: int


class SectionCutter:
    """Cuts one section."""

    def __init__(self, text: str, section: Section, *, size_chars: int, overlap_chars: int) -> None:
        self._text = text
        self._section = section
        self._size = size_chars
        self._overlap = overlap_chars
        self._visible_end = _visible_end(text, section.start, section.end)

    def pieces(self) -> Iterator[Piece]:
        """Cut.

        Yields:
            Pieces in order. Each begins where the one before ended, or earlier by the overlap. Only white space is left
            out: at the section's end, more than a quarter of the size of it after a cut, and before a stretch that
            fits into a chunk only without it.
        """
        start = fresh = self._section.start
        while fresh < self._visible_end:
            visible = self._first_visible(fresh)
            if visible - fresh > self._size // 4:
                start = fresh = visible
            piece = self._piece(start, fresh, visible)
            yield piece
            fresh = piece.end
            start = self._overlap_start(piece)

    def _first_visible(self, at: int) -> int:
        found = _VISIBLE.search(self._text, at, self._visible_end)
        return found.start() if found else self._visible_end

    def _piece(self, start: int, fresh: int, visible: int) -> Piece:
        limit = start + self._size
        if self._visible_end <= limit:
            return self._last_piece(start, fresh)
        whole = self._section.whole.around(limit)
        if whole is None:
            return Piece(start, fresh, self._cut(start, visible, limit))
        if whole[0] > visible:
            return Piece(start, fresh, whole[0])
        # The new text begins with what is kept whole: it fits once the overlap, or white space before it, is shorter.
        # A shorter overlap yet may save a last chunk of a few signs, such as the brackets that close a JSON file.
        fits_all = self._visible_end - fresh <= self._size
        lowest = max(start, (self._visible_end if fits_all else whole[1]) - self._size)
        if lowest > fresh:
            return Piece(lowest, lowest, whole[1])
        begin = self._word_start(lowest, fresh)
        return self._last_piece(begin, fresh) if fits_all else Piece(begin, fresh, whole[1])

    def _last_piece(self, start: int, fresh: int) -> Piece:
        end = min(start + self._size, self._section.end)
        return Piece(start, fresh, max(boundary_at_or_before(self._text, end), self._visible_end))

    def _cut(self, start: int, visible: int, limit: int) -> int:
        # A quarter of the size is always new: this bounds the number of chunks whatever the overlap is.
        low = max(start + self._size // 2, visible + self._size // 4)
        cut = limit
        if low < limit:
            cut = self._line_end(low, limit) or self._white_space(low, limit) or limit
        whole = self._section.whole.around(cut)
        if whole is not None:
            return whole[1]
        boundary = boundary_at_or_before(self._text, cut)
        # A cluster that leaves too little room is cut all the same: progress comes first.
        if boundary < max(visible + self._size // 4, visible + 1) or self._section.whole.around(boundary):
            return cut
        return boundary

    def _line_end(self, low: int, limit: int) -> int | None:
        if self._section.oversized.around(limit) is None:
            return None
        found = max(self._text.rfind("\n", low, limit), self._text.rfind("\r", low, limit))
        return found + 1 if found >= 0 else None

    def _white_space(self, low: int, limit: int) -> int | None:
        if self._text[limit].isspace():
            return limit
        tail = self._text[low:limit]
        word = tail.rsplit(maxsplit=1)[-1] if not tail[-1].isspace() else ""
        return limit - len(word) if len(word) < len(tail) else None

    def _overlap_start(self, piece: Piece) -> int:
        return self._word_start(max(piece.end - self._overlap, piece.start), piece.end)

    def _word_start(self, lowest: int, end: int) -> int:
        """First place from `lowest` on where an overlap that lasts until `end` may begin."""
        whole = self._section.whole.around(lowest)
        if whole is not None:
            return min(whole[1], end)
        if lowest in (self._section.start, end) or self._text[lowest - 1].isspace():
            return lowest
        found = _WORD_START.search(self._text, lowest, end)
        place = found.start() if found else boundary_at_or_after(self._text, lowest)
        whole = self._section.whole.around(place)
        return min(whole[1] if whole else place, end)


def _visible_end(text: str, start: int, end: int) -> int:
    while end > start:
        stride = text[max(start, end - _STRIDE) : end]
        kept = stride.rstrip()
        if kept:
            return end - len(stride) + len(kept)
        end -= len(stride)
    return start
