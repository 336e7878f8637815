"""Sentences of a text, as offsets, so that each can be cited where it stands."""

# ruff: noqa: RUF001, SIM905  (signs and words of other scripts are meant; lists of words read best as text)

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex

# Signs that end a sentence by themselves, and signs that do so before white space.
_ENDS_ALWAYS = "。！？｡"
_ENDS_BEFORE_BLANK = ".!?…"
_CLOSERS = "\"'”’»)]」』）】"
_STOP = regex.compile(rf"[{_ENDS_ALWAYS}{regex.escape(_ENDS_BEFORE_BLANK)}]+[{regex.escape(_CLOSERS)}]*")
_ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof st sr jr vs inc ltd corp ed eds cf al e.g i.e eg ie est incl excl rev dept univ gen gov rep sen
    capt lt col sgt mt ave bldg z.b u.a d.h bzw ggf usw т.е т.п т.к т.н г гг ул руб тыс млн млрд др пр стр им
    """.split()
)
# These stand before a number; elsewhere they are words that may well end a sentence.
_BEFORE_NUMBER = frozenset("no nos nr fig figs sec art ch p pp vol ca approx tel ext max min см".split())
_LAST_TOKEN = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}.]*$")
_FENCE = regex.compile(r"^\s{0,3}(?:```+|~~~+)")
_UNDERLINE = regex.compile(r"^\s*(?:[=\-~^\"'*+#.:_]){3,}\s*$")
_TABLE_RULE = regex.compile(r"^\s*\|?[\s:|\-+=]*[-=]{3,}[\s:|\-+=]*$")
_HEADING = regex.compile(r"^\s{0,3}#{1,6}\s")
_ITEM = regex.compile(r"^\s*(?:[-*+•·‣]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#\.)\s+")
_QUOTED = regex.compile(r"^\s*(?:>\s?)+")
_ROW = regex.compile(r"^\s*\|.*\|\s*$")
_MESSAGE = regex.compile(r"^\s*\[[^\]\n]{3,40}\]\s*\S")
_FIELD = regex.compile(r"^\s*:?[\p{L}][\p{L}\p{N} _/\-]{0,40}:(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, list item, table row, line of a record, or whole code block.

    Attributes:
        start: Code points into the text.
        end: Same, exclusive.
        heading: True for a heading line: it names what follows and answers nothing itself.
    """

    start: int
    end: int
    heading: bool = False


def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Cut a text into sentences.

    Abbreviations, initials, versions and decimal numbers don't end one; CJK stops do without a blank behind them.
    A blank line, a list item, a table row, a heading and a header field always begin a new one; any other line break
    is a soft wrap.

    Args:
        text: Any text.

    Returns:
        Sentences in order, without white space at their ends; what lies between them is white space or markup.
    """
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[Sentence]:
    for start, end, kind in _blocks(text):
        if kind == "prose":
            yield from _cut(text, start, end)
        else:
            trimmed = _trim(text, start, end)
            if trimmed[0] < trimmed[1]:
                yield Sentence(*trimmed, heading=kind == "heading")


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Group lines into blocks of prose, headings and pieces that are kept whole."""
    open_start = open_end = item_indent = -1
    for start, end, fenced in _lines_and_fences(text):
        line = text[start:end]
        skip, kind = (0, "whole") if fenced else _line_kind(line, item_indent if open_start >= 0 else -1)
        if kind != "more" and open_start >= 0:
            underlined = kind == "break" and bool(_UNDERLINE.match(line)) and "\n" not in text[open_start:open_end]
            yield open_start, open_end, "heading" if underlined else "prose"
            open_start = -1
        if kind in {"heading", "whole"}:
            yield start + skip, end, kind
        elif kind != "break":
            if open_start < 0:
                open_start, item_indent = start + skip, _indent(line) if skip else -1
            open_end = end
    if open_start >= 0:
        yield open_start, open_end, "prose"


def _lines_and_fences(text: str) -> Iterator[tuple[int, int, bool]]:
    """Lines one by one, but a fenced block as a whole; one that never closes reaches the end of the text."""
    fence = ""
    fence_start = 0
    for start, end in _lines(text):
        mark = _FENCE.match(text[start:end])
        if not fence and mark:
            fence, fence_start = mark.group().strip(), start
        elif not fence:
            yield start, end, False
        elif mark and mark.group().strip().startswith(fence) and not text[start + mark.end() : end].strip():
            yield fence_start, end, True
            fence = ""
    if fence:
        yield fence_start, len(text), True


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _line_kind(line: str, item_indent: int) -> tuple[int, str]:
    """Say how a line relates to the one before: break, heading, whole, begins a sentence, or more of the same.

    A field that stands deeper than the list item before it belongs to that item, as in lists of records.
    """
    if not line.strip() or _UNDERLINE.match(line) or _TABLE_RULE.match(line):
        return len(line), "break"
    for pattern, kind in ((_HEADING, "heading"), (_ITEM, "begin"), (_QUOTED, "begin")):
        match = pattern.match(line)
        if match:
            return match.end(), kind
    if _ROW.match(line):
        return 0, "whole"
    inside_item = 0 <= item_indent < _indent(line)
    if _MESSAGE.match(line) or (_FIELD.match(line) and not inside_item):
        return 0, "begin"
    return 0, "more"


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in regex.finditer(r"\r\n|\r|\n", text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _cut(text: str, start: int, end: int) -> Iterator[Sentence]:
    begin = start
    for stop in _STOP.finditer(text, start, end):
        if _ends_sentence(text, begin, stop.start(), stop.end(), end):
            yield Sentence(*_trim(text, begin, stop.end()))
            begin = stop.end()
    trimmed = _trim(text, begin, end)
    if trimmed[0] < trimmed[1]:
        yield Sentence(*trimmed)


def _ends_sentence(text: str, begin: int, stop: int, after: int, end: int) -> bool:
    if text[stop] in _ENDS_ALWAYS or after >= end:
        return True
    if not text[after].isspace():
        return False
    if text[stop] != ".":
        return True
    following = text[after:end].lstrip()
    if following[:1].islower():
        return False
    token = _LAST_TOKEN.search(text, begin, stop)
    if token is None:
        return True
    word = token.group().rstrip(".")
    initial = len(word) == 1 and word.isupper() and following[:1].isupper()
    numbered = word.casefold() in _BEFORE_NUMBER and following[:1].isdigit()
    return not (initial or numbered or word.casefold() in _ABBREVIATIONS)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
