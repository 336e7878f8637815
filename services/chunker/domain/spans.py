"""Where chunks lie in the original: code points and bytes, linear over the whole document."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from services.chunker.domain.document import NormalizedText, Run

_STRIDE = 1 << 20
# Codecs whose bytes for a code point depend on what stands before it.
_STATEFUL = ("iso2022", "hz", "utf-7")
# Codecs that write a byte order mark of their own: the width of a code point is that of the plain codec.
_PLAIN_CODEC = {
    "utf-8-sig": "utf-8",
    "utf-16": "utf-16-le",
    "utf-32": "utf-32-le",
}


def codec_name(charset: str) -> str:
    """Codec whose output has the width of the original's characters.

    Args:
        charset: Python codec name.

    Returns:
        Python codec name.

    Raises:
        ValueError: When there is no such codec, or it doesn't encode text.
    """
    try:
        name = codecs.lookup(charset).name
        "".encode(name)
    except LookupError as error:
        raise ValueError(f"charset {charset!r} is unknown") from error
    return _PLAIN_CODEC.get(name, name)


class _Cursor:
    """Byte position inside runs, for positions that only rise: every code point is measured once."""

    def __init__(self, text: str, width: Callable[[str], int]) -> None:
        self._text = text
        self._width = width
        self._run: Run | None = None
        self._at = 0
        self._byte = 0

    def byte(self, run: Run, at: int) -> int:
        if run is not self._run:
            self._run, self._at, self._byte = run, run.text_start, run.byte_start
        if run.byte_end - run.byte_start == run.text_end - run.text_start:
            return run.byte_start + at - run.text_start
        self._byte += self._width(self._text[self._at : at])
        self._at = at
        return self._byte


class Locator:
    """Finds the runs of chunks; ask for chunks in order."""

    def __init__(self, document: NormalizedText) -> None:
        self._text = document.text
        self._runs = document.runs
        self._codec = codec_name(document.charset)
        self._first = 0
        self._starts = _Cursor(document.text, self._width)
        self._ends = _Cursor(document.text, self._width)
        self._exact: tuple[Run | None, bool] = (None, False)

    def locate(self, start: int, end: int) -> tuple[Run, ...]:
        """Runs of one chunk.

        Args:
            start: First code point in the text; not below that of the chunk before.
            end: Code point after the last; not below that of the chunk before.

        Returns:
            Runs clipped to the chunk; the text side counts from the chunk's start. A run that isn't verbatim keeps
            its whole span of the original: there is no finer truth.
        """
        while self._first < len(self._runs) and self._runs[self._first].text_end <= start:
            self._first += 1
        found: list[Run] = []
        for index in range(self._first, len(self._runs)):
            run = self._runs[index]
            if run.text_start >= end:
                break
            found.append(self._clip(run, start, end))
        return tuple(found)

    def _clip(self, run: Run, start: int, end: int) -> Run:
        left, right = max(run.text_start, start), min(run.text_end, end)
        if (left, right) == (run.text_start, run.text_end):
            return _moved(run, start)
        if not (run.verbatim and self._is_exact(run)):
            return Run(
                left - start, right - start, run.char_start, run.char_end, run.byte_start, run.byte_end, verbatim=False
            )
        return Run(
            left - start,
            right - start,
            run.char_start + left - run.text_start,
            run.char_start + right - run.text_start,
            self._starts.byte(run, left),
            self._ends.byte(run, right),
            verbatim=True,
        )

    def _is_exact(self, run: Run) -> bool:
        """Whether code points can be measured one by one: not so with a state, nor where the lengths differ."""
        if self._codec.startswith(_STATEFUL):
            return False
        if self._exact[0] is not run:
            strides = range(run.text_start, run.text_end, _STRIDE)
            try:
                width = sum(self._width(self._text[at : min(at + _STRIDE, run.text_end)]) for at in strides)
            except UnicodeEncodeError:
                width = -1
            self._exact = (run, width == run.byte_end - run.byte_start)
        return self._exact[1]

    def _width(self, text: str) -> int:
        return len(text) if text.isascii() and self._codec == "utf-8" else len(text.encode(self._codec))


def _moved(run: Run, start: int) -> Run:
    return Run(
        run.text_start - start,
        run.text_end - start,
        run.char_start,
        run.char_end,
        run.byte_start,
        run.byte_end,
        run.verbatim,
    )


def original_span(runs: tuple[Run, ...]) -> tuple[int, int, int, int]:
    """Span of a whole chunk in the original.

    Args:
        runs: The chunk's runs.

    Returns:
        First code point, code point after the last, first byte, byte after the last; zeros when nothing is known.
        Runs that stand for nothing in the original don't widen it.
    """
    known = tuple(run for run in runs if run.byte_end > run.byte_start) or runs[:1]
    if not known:
        return 0, 0, 0, 0
    return (
        min(run.char_start for run in known),
        max(run.char_end for run in known),
        min(run.byte_start for run in known),
        max(run.byte_end for run in known),
    )
