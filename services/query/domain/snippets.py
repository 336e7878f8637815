"""The part of a chunk that shows why it was found."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from services.query.domain.values import Passage, TermWeight

SNIPPET_CHARS = 300
_WINDOW_CHARS = 200
_MOST_PLACES = 20
# Stems of shorter words are looked up whole: cutting a letter off would find them everywhere.
_LONG_STEM = 5
_BREAK = regex.compile(r"[.!?…]\s+|[。！？｡]|\s*[\r\n]+\s*")  # noqa: RUF001  (signs that end a sentence)


def snippet(passage: Passage, terms: Sequence[TermWeight]) -> str:
    """Cut a snippet. A search makes one for every result, so it looks stems up in the text instead of analysing it.

    Args:
        passage: A chunk.
        terms: The query's terms with their IDF; empty where the keyword lane was not used.

    Returns:
        The proposition by which the chunk was found; without one from the start of the sentence or line where most of
        the query's weight stands together, or from the start of the chunk where none does. One line, at most 300 code
        points.
    """
    if passage.statement:
        return _line(passage.statement)
    text = passage.text
    folded = text.casefold()
    places = [place for term in terms if term.term in passage.terms for place in _places(folded, term)]
    if places and len(folded) == len(text):
        best = max(places, key=lambda place: (_weight_from(place[0], places), -place[0]))
        text = text[_start_of_sentence(text, best[0]) :]
    return _line(text)


def _line(text: str) -> str:
    line = " ".join(text[: 2 * SNIPPET_CHARS].split())
    return line if len(line) <= SNIPPET_CHARS else line[: SNIPPET_CHARS - 1].rstrip() + "…"


def _places(folded: str, term: TermWeight) -> list[tuple[int, TermWeight]]:
    """Where a term's stem begins a word, at most twenty places."""
    stem = term.term if len(term.term) < _LONG_STEM or term.term in folded else term.term[:-1]
    found: list[tuple[int, TermWeight]] = []
    at = folded.find(stem)
    while at >= 0 and len(found) < _MOST_PLACES:
        if at == 0 or not (folded[at - 1].isascii() and folded[at - 1].isalnum()):
            found.append((at, term))
        at = folded.find(stem, at + 1)
    return found


def _weight_from(start: int, places: Sequence[tuple[int, TermWeight]]) -> float:
    return sum(term.idf for term in {term for at, term in places if start <= at < start + _WINDOW_CHARS})


def _start_of_sentence(text: str, place: int) -> int:
    ends = [match.end() for match in _BREAK.finditer(text, max(0, place - _WINDOW_CHARS), place)]
    if ends:
        return ends[-1]
    return 0 if place < _WINDOW_CHARS else place
