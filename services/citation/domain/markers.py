# ruff: noqa: RUF001  (the signs that models write are the subject here, look-alikes included)
"""Markers of one sentence: found in any of their forms, brought to `[n]`.

Forms: ASCII, fullwidth and lenticular brackets, up to three deep; one to three digits; lists by comma or semicolon;
ranges by hyphen or dash. Numbers of four digits and more are text (years, part numbers), and so is whatever else
stands in brackets. All patterns are possessive: a bracket is read at most four times, so time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

MAX_SOURCES = 100
# Stands for text in which no marker may be found: code, quoted evidence.
MASK = "\x00"
OPENING = "[［【"
CLOSING = "]］】"
SEPARATORS = ",;、，；"
DASHES = "-‐‑‒–—−－"
SPACES = " \t\u00a0\u2009\u202f\u3000"
_W = f"[{SPACES}]*+"
_OPEN = f"[{re.escape(OPENING)}]"
_CLOSE = f"[{re.escape(CLOSING)}]"
_SEPARATOR = f"[{SEPARATORS}]"
_NUMBER = "[0-9０-９]{1,3}+"
_ITEM = f"{_NUMBER}(?:{_W}[{re.escape(DASHES)}]{_W}{_NUMBER})?+"
_FLAT = f"{_OPEN}{_W}{_ITEM}(?:{_W}{_SEPARATOR}{_W}{_ITEM})*+{_W}{_CLOSE}"


def _nested(inner: str) -> str:
    return f"{_OPEN}{_W}(?:{inner})(?:{_W}{_SEPARATOR}?+{_W}(?:{inner}))*+{_W}{_CLOSE}"


_TWICE = f"{_nested(_FLAT)}|{_FLAT}"
_MARKER = re.compile(f"{_nested(_TWICE)}|{_TWICE}")
_RANGE = re.compile(f"({_NUMBER})(?:{_W}[{re.escape(DASHES)}]{_W}({_NUMBER}))?+")
# After these a removed marker takes the white space before it along.
_SPACE_EATERS = frozenset(".,;:!?)]}…。、，；：！？）］】」』\"'”’»*_")


class RepairKind(Enum):
    """What was done to a marker; of several things the first of these."""

    REMOVED = "removed"
    COLLAPSED = "collapsed"
    NORMALIZED = "normalized"


@dataclass(frozen=True, slots=True)
class Repair:
    """One change: `before`, at `start` of the raw text, became `after`.

    Attributes:
        kind: What was done.
        before: As it stood, dropped white space included.
        after: As it stands; empty when nothing is left.
        start: Code points into the raw text.
    """

    kind: RepairKind
    before: str
    after: str
    start: int


@dataclass(frozen=True, slots=True)
class RepairedSentence:
    """A sentence after its repairs.

    Attributes:
        text: As it stands.
        cited: Numbers of its markers in order, repetitions included.
        repairs: What was done, in order.
        unsupported: True when a marker was removed and none is left.
    """

    text: str
    cited: tuple[int, ...]
    repairs: tuple[Repair, ...]
    unsupported: bool


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    after: str
    kind: RepairKind | None


def repair_sentence(raw: str, masked: str, start: int, source_count: int) -> RepairedSentence:
    """Repair the markers of one sentence.

    Args:
        raw: The sentence as written.
        masked: The same with MASK in every place where no marker may be found.
        start: Its place in the raw text, code points.
        source_count: Markers 1 to source_count exist.

    Returns:
        The sentence as it should be.
    """
    edits: list[_Edit] = []
    cited: list[int] = []
    for cluster in _clusters(masked):
        changed, kept = _repair_cluster(cluster, masked, source_count)
        edits += changed
        cited += kept
    pieces: list[str] = []
    repairs: list[Repair] = []
    at = 0
    for edit in edits:
        pieces += raw[at : edit.start], edit.after
        at = edit.end
        if edit.kind is not None:
            repairs.append(Repair(edit.kind, raw[edit.start : edit.end], edit.after, start + edit.start))
    pieces.append(raw[at:])
    text = "".join(pieces)
    removed = any(edit.kind is RepairKind.REMOVED for edit in edits)
    says_something = any(char.isalnum() for char in text)
    return RepairedSentence(text, tuple(cited), tuple(repairs), removed and not cited and says_something)


def _clusters(masked: str) -> Iterator[tuple[re.Match[str], ...]]:
    """Markers with nothing but white space between them."""
    cluster: list[re.Match[str]] = []
    for marker in _MARKER.finditer(masked):
        if cluster and masked[cluster[-1].end() : marker.start()].strip(SPACES):
            yield tuple(cluster)
            cluster = []
        cluster.append(marker)
    if cluster:
        yield tuple(cluster)


def _repair_cluster(
    cluster: tuple[re.Match[str], ...], masked: str, source_count: int
) -> tuple[list[_Edit], tuple[int, ...]]:
    edits: list[_Edit] = []
    seen: dict[int, None] = {}
    at = cluster[0].start()
    for marker in cluster:
        numbers, missing = _numbers(marker.group(), source_count)
        fresh = tuple(dict.fromkeys(number for number in numbers if number not in seen))
        seen |= dict.fromkeys(fresh)
        after = "".join(f"[{number}]" for number in fresh)
        kind = None
        if missing:
            kind = RepairKind.REMOVED
        elif len(fresh) < len(numbers):
            kind = RepairKind.COLLAPSED
        elif masked[at : marker.end()] != after:
            kind = RepairKind.NORMALIZED
        edits.append(_Edit(at, marker.end(), after, kind))
        at = marker.end()
    if not seen:
        edits = _close_gap(edits, masked)
    return edits, tuple(seen)


def _numbers(marker: str, source_count: int) -> tuple[list[int], bool]:
    """Numbers that exist, and whether others were named. A range never grows beyond the sources."""
    found: list[int] = []
    missing = False
    for first, last in _RANGE.findall(marker):
        low, high = sorted((int(first), int(last or first)))
        missing = missing or low < 1 or high > source_count
        found += range(max(low, 1), min(high, source_count) + 1)
    return found, missing


def _close_gap(edits: list[_Edit], masked: str) -> list[_Edit]:
    """Where a whole cluster goes, one side of its white space goes too."""
    first, last = edits[0], edits[-1]
    before = masked[: first.start]
    kept = before.rstrip(SPACES)
    if not kept:
        after = masked[last.end :]
        eaten = len(after) - len(after.lstrip(SPACES))
        return [*edits[:-1], _Edit(last.start, last.end + eaten, last.after, last.kind)]
    following = masked[last.end : last.end + 1]
    if following and not following.isspace() and following not in _SPACE_EATERS:
        return edits
    return [_Edit(len(kept), first.end, first.after, first.kind), *edits[1:]]
