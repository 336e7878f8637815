"""Answers made of the evidence's own sentences: deterministic, each sentence cited where it stands."""

# ruff: noqa: RUF001  (signs and words of other scripts are meant)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from services.query.domain.evidence import Scored
from services.query.domain.living import Role
from services.query.domain.sentences import split_sentences
from services.query.domain.spans import Span, locate
from services.query.domain.units import Unit

NO_ANSWER_TEXT = "The documents hold no answer to this question."
_DIGIT = regex.compile(r"\p{Nd}")
_STOPS = ".!?…。！？｡"


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """One sentence of an answer and the place that it comes from.

    Attributes:
        marker: Number in the text, from 1.
        unit: The evidence.
        span: Where it lies in the original.
        quote: The evidence as the chunk has it.
        body: The sentence of the answer up to its stop, on one line.
        stop: What ends it; the marker stands before.
        role: What it is to the answer.
        lead: What the answer says before the body: words of this engine, not of the evidence.
    """

    marker: int
    unit: Unit
    span: Span
    quote: str
    body: str
    stop: str
    role: Role = Role.SUPPORT
    lead: str = ""


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
        if not any(_same(scored.unit, unit, duplicate) for unit in chosen):
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
        line = " ".join(unit.text.split())
        body = line.rstrip(_STOPS) or line
        quote = unit.passage.text[unit.start : unit.end]
        places.append(CitedPlace(len(places) + 1, unit, span, quote, body, line[len(body) :] or "."))
    return tuple(places)


def answer_text(places: Sequence[CitedPlace], *, markers: bool) -> str:
    """Join the sentences of an answer.

    Args:
        places: Cited places.
        markers: Write the marker of each before its stop.

    Returns:
        The text.
    """
    return " ".join(
        place.lead + (f"{place.body} [{place.marker}]{place.stop}" if markers else place.body + place.stop)
        for place in places
    )


def literal_spans(places: Sequence[CitedPlace]) -> tuple[tuple[int, int], ...]:
    """Tell where an answer's text quotes evidence, so that brackets of the documents are not taken for markers.

    Args:
        places: Cited places.

    Returns:
        Code points into the text with markers, ends exclusive.
    """
    spans: list[tuple[int, int]] = []
    at = 0
    for place in places:
        start = at + len(place.lead)
        spans.append((start, start + len(place.body)))
        at += len(answer_text((place,), markers=True))
        spans.append((at - len(place.stop), at))
        at += 1
    return tuple(spans)


def pieces(text: str) -> tuple[str, ...]:
    """Cut an answer's text for streaming.

    Args:
        text: As delivered.

    Returns:
        Sentence by sentence; joined they are the text.
    """
    cuts = [0, *(sentence.start for sentence in split_sentences(text)[1:]), len(text)]
    return tuple(text[start:end] for start, end in pairwise(cuts) if start < end)


def _same(left: Unit, right: Unit, duplicate: float) -> bool:
    """Two units say the same: one holds the other (chunks overlap), or they share most terms and every number.

    A number makes the difference between a rule and the one that replaced it, and both have to be seen.
    """
    keys = left.passage.key, right.passage.key
    if keys[0].document_id == keys[1].document_id and (left.text in right.text or right.text in left.text):
        return True
    if _numbers(left) != _numbers(right):
        return False
    return len(left.own & right.own) >= duplicate * len(left.own | right.own)


def _numbers(unit: Unit) -> frozenset[str]:
    return frozenset(term for term in unit.own if _DIGIT.search(term))
