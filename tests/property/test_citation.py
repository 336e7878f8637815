# ruff: noqa: RUF001  (the signs that models write are the subject here, look-alikes included)
"""Marker repair: any text, any split, the same bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.citation.domain.repair import Repaired, StreamRepairer, repair

FRAGMENTS = (
    *'[]［］【】`~ \t\n\r.!?。,;-–"*)>#a語1239',
    "[1]", "[2, 1]", "[[3]]", "【2】", "［1–3］", "[7]", "[2019]", "[1, 9]", " [1]", ". ", "。", "\n\n", "```", "~~~~", "\n```py\n",
    "`x[1]`", "``", "- ", "1. ", "word", "[[1], [2]]", " [", "] ", "[1-999]", "'",
)  # fmt: skip
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
counts = st.integers(0, 5)
MARKERS = re.compile(r"(?:\[\d{1,3}\])+")


@st.composite
def split(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text and the same text in pieces."""
    text = draw(texts)
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=20)))
    bounds = [0, *places, len(text)]
    return text, [text[start:end] for start, end in pairwise(bounds)]


@st.composite
def spans(draw: st.DrawFn, size: int) -> tuple[tuple[int, int], ...]:
    places = sorted(draw(st.sets(st.integers(0, size), max_size=6)))
    return tuple(zip(places[::2], places[1::2], strict=False))


def streamed(pieces: Sequence[str], count: int, literals: tuple[tuple[int, int], ...] = ()) -> tuple[str, Repaired]:
    repairer = StreamRepairer(source_count=count, literals=literals)
    shown = [repairer.feed(piece) for piece in pieces]
    last, whole = repairer.finish()
    return "".join((*shown, last)), whole


@given(split(), counts)
def test_a_stream_gives_the_bytes_of_the_whole(text: tuple[str, list[str]], count: int) -> None:
    whole, pieces = text
    shown, result = streamed(pieces, count)
    assert shown == result.text
    assert result == repair(whole, count)


@given(st.data(), split(), counts)
def test_a_stream_with_quoted_evidence_too(data: st.DataObject, text: tuple[str, list[str]], count: int) -> None:
    whole, pieces = text
    literals = data.draw(spans(len(whole)))
    shown, result = streamed(pieces, count, literals)
    assert shown == result.text
    assert result == repair(whole, count, literals)
    assert all(whole[start:end] in result.text for start, end in literals)


@given(texts, counts)
def test_one_code_point_at_a_time(text: str, count: int) -> None:
    assert streamed(list(text), count)[1] == repair(text, count)


@given(texts, counts)
def test_the_actions_lead_from_the_raw_text_to_the_text(text: str, count: int) -> None:
    result = repair(text, count)
    pieces: list[str] = []
    at = 0
    for action in result.actions:
        assert text[action.start : action.start + len(action.before)] == action.before
        assert action.start >= at
        assert action.before != action.after
        pieces += text[at : action.start], action.after
        at = action.start + len(action.before)
    assert "".join((*pieces, text[at:])) == result.text


@given(texts, counts)
def test_only_sources_that_exist_are_cited_each_once(text: str, count: int) -> None:
    result = repair(text, count)
    assert len(set(result.cited)) == len(result.cited)
    assert all(1 <= number <= count for number in result.cited)
    assert all(f"[{number}]" in result.text for number in result.cited)


@given(texts, counts)
def test_outside_code_every_marker_that_remains_is_a_citation(text: str, count: int) -> None:
    text = re.sub("[`~]", "", text)
    result = repair(text, count)
    if not result.cited and result.text == text:
        return
    for cluster in MARKERS.findall(result.text):
        numbers = [int(number) for number in re.findall(r"\d+", cluster)]
        assert set(numbers) <= set(result.cited)
        assert len(set(numbers)) == len(numbers)


@given(texts, counts)
def test_repairing_again_changes_no_citation(text: str, count: int) -> None:
    once = repair(text, count)
    if once.cited:
        assert repair(once.text, count).cited == once.cited


@given(texts, counts)
def test_letters_stay(text: str, count: int) -> None:
    def letters(value: str) -> str:
        return re.sub("[^a-z語]", "", value)

    assert letters(repair(text, count).text) == letters(text)


@given(texts, counts)
def test_a_text_that_says_something_never_becomes_empty(text: str, count: int) -> None:
    assert bool(repair(text, count).text.strip()) == bool(text.strip())
