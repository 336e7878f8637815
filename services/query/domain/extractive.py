"""Answers made of the evidence's own sentences: deterministic, each sentence cited where it stands."""

# ruff: noqa: RUF001  (signs and words of other scripts are meant)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from services.query.domain.evidence import Scored
from services.query.domain.sentences import split_sentences
from services.query.domain.spans import Span, locate
from services.query.domain.units import Unit

NO_ANSWER_TEXT = "The documents hold no answer to this question."
_MARKER_LIKE = regex.compile(r"(?:\[\[|\[|【|［|〔|〖)(\s*\d[\d\s,;、，\-–—−]*)(?:\]\]|\]|】|］|〕|〗)")
_MARKER = regex.compile(r" ?\[\d+\]")
_STOPS = ".!?…。！？｡"


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """One sentence of an answer and the place that it comes from.

    Attributes:
        marker: Number in the text, from 1.
        unit: The evidence.
        span: Where it lies in the original.
        quote: The evidence as the chunk has it.
        sentence: The sentence of the answer, marker included.
    """

    marker: int
    unit: Unit
    span: Span
    quote: str
    sentence: str


def choose(ranked: Sequence[Scored], *, most: int, margin: float, duplicate: float) -> tuple[Unit, ...]:
    """Choose the units that make the answer.

    Args:
        ranked: Best first.
        most: How many at most.
        margin: How far below the best score a companion may lie.
        duplicate: Overlap of terms (Jaccard) from which two units say the same.

    Returns:
        Those whose score answers, near-duplicates once; empty when none does.
    """
    chosen: list[Unit] = []
    for scored in ranked:
        if scored.score < 0 or scored.score < ranked[0].score - margin or len(chosen) == most:
            break
        if all(_overlap(scored.unit.own, unit.own) < duplicate for unit in chosen):
            chosen.append(scored.unit)
    return tuple(chosen)


def compose(units: Sequence[Unit]) -> tuple[CitedPlace, ...]:
    """Write the answer.

    Args:
        units: In the order of the answer.

    Returns:
        The cited places, numbered from 1. A unit whose place in the original isn't known is left out: it could not
        be cited.
    """
    places: list[CitedPlace] = []
    for unit in units:
        span = locate(unit.passage.text, unit.passage.runs, unit.start, unit.end, charset=unit.passage.charset)
        if span is None:
            continue
        marker = len(places) + 1
        sentence = _sentence(unit.text, marker)
        quote = unit.passage.text[unit.start : unit.end]
        places.append(CitedPlace(marker, unit, span, quote, sentence))
    return tuple(places)


def answer_text(places: Sequence[CitedPlace]) -> str:
    """Join the sentences of an answer.

    Args:
        places: Cited places.

    Returns:
        The text.
    """
    return " ".join(place.sentence for place in places)


def without_markers(text: str) -> str:
    """Take the markers out of an answer's text.

    Args:
        text: Repaired text, markers of the form [n].

    Returns:
        The text without them and without the blank before each.
    """
    return _MARKER.sub("", text)


def pieces(text: str) -> tuple[str, ...]:
    """Cut an answer's text for streaming.

    Args:
        text: As delivered.

    Returns:
        Sentence by sentence; joined they are the text.
    """
    cuts = [0, *(sentence.start for sentence in split_sentences(text)[1:]), len(text)]
    return tuple(text[start:end] for start, end in pairwise(cuts) if start < end)


def _sentence(text: str, marker: int) -> str:
    """One line, with brackets that would read as markers turned into parentheses, the marker before the stop."""
    line = _MARKER_LIKE.sub(r"(\1)", " ".join(text.split()))
    body = line.rstrip(_STOPS)
    stop = line[len(body) :] or "."
    return f"{body} [{marker}]{stop}"


def _overlap(left: frozenset[str], right: frozenset[str]) -> float:
    union = left | right
    return len(left & right) / len(union) if union else 1.0
