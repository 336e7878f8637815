# ruff: noqa: RUF001, RUF002  (the signs that models write are the subject here, look-alikes included)
"""Sentences and code of a text that arrives in pieces.

Where a sentence ends depends on the text alone, never on how it was cut into pieces: a small state machine reads every
code point once, and lets a sentence go when the first code point of the next one is there.

A sentence ends at a line end; before whatever follows `.`, `!`, `?` or `…`, closing quotes, markers and white space;
and right after `。`, `！`, `？`, closing quotes and markers. A line with a backtick is read when it is complete: code spans
are closed by as many backticks as opened them, on the same line. Fences follow CommonMark 0.31 (kind and length of the
marker), at any indentation, since models indent them freely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from services.citation.domain.markers import CLOSING, DASHES, MASK, OPENING, SEPARATORS, SPACES

_FENCE = re.compile(r"[ \t>]*+(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)?(`{3,}+(?=[^`]*+$)|~{3,}+)", re.DOTALL)
_FENCE_END = re.compile(r"[ \t>]*+(`{3,}+|~{3,}+)[ \t\r]*+\n?$")
_BACKTICKS = re.compile("`+")
_NOTABLE = re.compile("[\n`.!?…。！？｡]")


class _State(Enum):
    PREFIX = "start of a line, nothing but list and quote signs so far"
    TEXT = "inside a sentence"
    ENDED = "after a full stop, which white space must confirm"
    ENDED_WIDE = "after a wide full stop, which needs no white space"
    GAP = "after a full stop and white space"
    BRACKET = "in a bracket after a full stop, a marker so far"
    CLOSED = "after such a bracket"


class _Class(Enum):
    OTHER = "other"
    STOP = "full stop"
    WIDE_STOP = "wide full stop"
    CLOSER = "closing quote"
    SPACE = "white space"
    OPEN = "opening bracket"
    CLOSE = "closing bracket"
    SEPARATOR = "separator"
    INNER = "other part of a marker"


_CLASSES = {
    **dict.fromkeys("0123456789０１２３４５６７８９" + DASHES, _Class.INNER),
    **dict.fromkeys(".!?…", _Class.STOP),
    **dict.fromkeys("。！？｡", _Class.WIDE_STOP),
    **dict.fromkeys("\"')}”’»›*_」』）》", _Class.CLOSER),
    **dict.fromkeys(SPACES + "\r", _Class.SPACE),
    **dict.fromkeys(OPENING, _Class.OPEN),
    **dict.fromkeys(CLOSING, _Class.CLOSE),
    **dict.fromkeys(SEPARATORS, _Class.SEPARATOR),
}
_PREFIX_SIGNS = frozenset(" \t>-*+.)0123456789")
# What a code point leads to; a missing row means that a new sentence begins before it.
_MOVES: dict[_State, dict[_Class, _State]] = {
    _State.TEXT: {
        **dict.fromkeys(_Class, _State.TEXT),
        _Class.STOP: _State.ENDED,
        _Class.WIDE_STOP: _State.ENDED_WIDE,
    },
    _State.ENDED: {
        **dict.fromkeys(_Class, _State.TEXT),
        _Class.STOP: _State.ENDED,
        _Class.WIDE_STOP: _State.ENDED_WIDE,
        _Class.CLOSER: _State.ENDED,
        _Class.CLOSE: _State.ENDED,
        _Class.SPACE: _State.GAP,
        _Class.OPEN: _State.BRACKET,
    },
    _State.ENDED_WIDE: {
        _Class.STOP: _State.ENDED_WIDE,
        _Class.WIDE_STOP: _State.ENDED_WIDE,
        _Class.CLOSER: _State.ENDED_WIDE,
        _Class.CLOSE: _State.ENDED_WIDE,
        _Class.SEPARATOR: _State.TEXT,
        _Class.SPACE: _State.GAP,
        _Class.OPEN: _State.BRACKET,
    },
    _State.GAP: {
        _Class.SPACE: _State.GAP,
        _Class.OPEN: _State.BRACKET,
        _Class.CLOSE: _State.CLOSED,
        _Class.SEPARATOR: _State.TEXT,
    },
    _State.BRACKET: {
        **dict.fromkeys(_Class, _State.TEXT),
        _Class.INNER: _State.BRACKET,
        _Class.SPACE: _State.BRACKET,
        _Class.SEPARATOR: _State.BRACKET,
        _Class.OPEN: _State.BRACKET,
        _Class.CLOSE: _State.CLOSED,
        _Class.STOP: _State.ENDED,
        _Class.WIDE_STOP: _State.ENDED_WIDE,
    },
    _State.CLOSED: {
        _Class.STOP: _State.ENDED,
        _Class.WIDE_STOP: _State.ENDED_WIDE,
        _Class.CLOSER: _State.CLOSED,
        _Class.CLOSE: _State.CLOSED,
        _Class.OPEN: _State.BRACKET,
        _Class.SEPARATOR: _State.TEXT,
        _Class.SPACE: _State.GAP,
    },
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A piece of the text that is repaired by itself.

    Attributes:
        raw: As written; the white space after it is part of it.
        masked: The same length, with MASK where no marker may be found.
        start: Its place in the text, code points.
    """

    raw: str
    masked: str
    start: int


class SentenceReader:
    """Reads pieces, gives sentences. All sentences joined are all pieces joined."""

    def __init__(self, literals: tuple[tuple[int, int], ...] = ()) -> None:
        """Start a text.

        Args:
            literals: Spans of the text in which nothing is read as code, sentence end or marker: quoted evidence.
                Code points, ends exclusive, by rising start, none overlapping the next.

        Raises:
            ValueError: When they overlap or are out of order.
        """
        before = 0
        for start, end in literals:
            if not before <= start < end:
                raise ValueError(f"literal span {start}-{end} is empty, out of order or overlaps the one before")
            before = end
        self._literals = iter(literals)
        self._literal = next(self._literals, None)
        self._seen = 0
        self._given = 0
        self._raw: list[str] = []
        self._masked: list[str] = []
        self._state = _State.PREFIX
        self._at_line_start = True
        self._whole_line = False
        self._fence = ""

    def feed(self, piece: str) -> Iterator[Sentence]:
        """Read on.

        Args:
            piece: The next piece, of any length.

        Yields:
            Sentences that are complete now.
        """
        masked = self._mask(piece)
        at = begin = 0
        while at < len(masked):
            at = self._next_cut(masked, at)
            if at < 0:
                break
            self._keep(piece[begin:at], masked[begin:at])
            begin = at
            yield from self._give(ends_line=masked[at - 1 : at] == "\n")
        self._keep(piece[begin:], masked[begin:])

    def finish(self) -> Iterator[Sentence]:
        """End the text.

        Yields:
            What is left.
        """
        yield from self._give(ends_line=True)

    def _mask(self, piece: str) -> str:
        start, end = self._seen, self._seen + len(piece)
        self._seen = end
        pieces: list[str] = []
        at = start
        while self._literal is not None and self._literal[0] < end:
            left, right = max(self._literal[0], start), min(self._literal[1], end)
            pieces += piece[at - start : left - start], MASK * (right - left)
            at = right
            if self._literal[1] > end:
                break
            self._literal = next(self._literals, None)
        return "".join((*pieces, piece[at - start :]))

    def _keep(self, raw: str, masked: str) -> None:
        self._raw.append(raw)
        self._masked.append(masked)

    def _next_cut(self, masked: str, at: int) -> int:
        """Where the running sentence or line ends, -1 when it doesn't yet."""
        while not self._whole_line:
            if self._state is _State.TEXT:
                notable = _NOTABLE.search(masked, at)
                if notable is None:
                    return -1
                at = notable.start()
            if at == len(masked):
                return -1
            char = masked[at]
            if char == "\n":
                return at + 1
            if char == "`" or (char == "~" and self._state is _State.PREFIX):
                self._whole_line = True
                break
            if self._begins_sentence(char):
                return at
            at += 1
        return masked.find("\n", at) + 1 or -1

    def _begins_sentence(self, char: str) -> bool:
        self._state, begins = _move(self._state, char)
        return begins

    def _give(self, *, ends_line: bool) -> Iterator[Sentence]:
        raw, masked = "".join(self._raw), "".join(self._masked)
        self._raw, self._masked = [], []
        if raw and self._whole_line:
            yield from self._read_line(raw, masked)
        elif raw:
            yield self._sentence(raw, masked)
        if ends_line:
            self._state = _State.PREFIX
            self._whole_line = bool(self._fence)
        else:
            self._state = _State.TEXT
        self._at_line_start = ends_line

    def _sentence(self, raw: str, masked: str) -> Sentence:
        start = self._given
        self._given += len(raw)
        return Sentence(raw, masked, start)

    def _read_line(self, raw: str, masked: str) -> Iterator[Sentence]:
        if self._fence:
            end = _FENCE_END.match(masked)
            if end and end.group(1).startswith(self._fence):
                self._fence = ""
            yield self._sentence(raw, MASK * len(raw))
            return
        fence = _FENCE.match(masked) if self._at_line_start else None
        if fence:
            self._fence = fence.group(1)
            yield self._sentence(raw, MASK * len(raw))
            return
        masked = mask_code_spans(masked)
        state = _State.PREFIX if self._at_line_start else _State.TEXT
        begin = 0
        for at, char in enumerate(masked):
            state, begins = _move(state, char)
            if begins:
                yield self._sentence(raw[begin:at], masked[begin:at])
                begin = at
        yield self._sentence(raw[begin:], masked[begin:])


def _move(state: _State, char: str) -> tuple[_State, bool]:
    if state is _State.PREFIX:
        if char in _PREFIX_SIGNS:
            return state, False
        state = _State.TEXT
    kind = _CLASSES.get(char, _Class.OTHER)
    following = _MOVES[state].get(kind)
    if following is None:
        return _MOVES[_State.TEXT][kind], True
    return following, False


def mask_code_spans(line: str) -> str:
    """Put MASK in place of every code span.

    Args:
        line: A line; runs of backticks open a span where a run of the same length follows.

    Returns:
        The line, same length.
    """
    runs = tuple(_BACKTICKS.finditer(line))
    closers = _next_of_same_length(runs)
    pieces: list[str] = []
    at = 0
    for run, closer in zip(runs, closers, strict=True):
        if run.start() >= at and closer is not None:
            pieces += line[at : run.start()], MASK * (closer.end() - run.start())
            at = closer.end()
    return "".join((*pieces, line[at:]))


def _next_of_same_length(runs: Iterable[re.Match[str]]) -> list[re.Match[str] | None]:
    latest: dict[int, re.Match[str]] = {}
    found: list[re.Match[str] | None] = []
    for run in reversed(tuple(runs)):
        length = run.end() - run.start()
        found.append(latest.get(length))
        latest[length] = run
    return found[::-1]
