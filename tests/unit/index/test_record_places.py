"""Where a record stands in its revision, and which record stands for a chunk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.index.domain.records import MAX_STATEMENTS, Form, LaneHit, hit_order, parts_of, place_of, strongest


@given(st.integers(0, (1 << 22) - 1), st.integers(0, MAX_STATEMENTS))
def test_a_place_is_read_back_and_fits_32_bits(ordinal: int, statement: int) -> None:
    place = place_of(ordinal, statement)
    assert parts_of(place) == (ordinal, statement)
    assert place < 1 << 32
    assert place_of(ordinal, 0) == ordinal


@pytest.mark.parametrize(("ordinal", "statement"), [(1 << 22, 0), (-1, 0), (0, MAX_STATEMENTS + 1), (0, -1)])
def test_what_has_no_place_is_refused(ordinal: int, statement: int) -> None:
    with pytest.raises(ValueError, match="at most"):
        place_of(ordinal, statement)


def hit(document: str, ordinal: int, statement: int, score: float, revision: int = 1) -> LaneHit:
    return LaneHit(document, revision, ordinal, score, Form.TEXT, statement)


def test_a_chunk_is_told_once_by_its_strongest_record() -> None:
    hits = [hit("a", 0, 2, 0.9), hit("a", 0, 1, 0.8), hit("a", 1, 1, 0.7), hit("b", 0, 0, 0.6), hit("a", 0, 2, 0.5, 2)]
    assert strongest(hits) == [hits[0], hits[2], hits[3], hits[4]]
    assert strongest([]) == []


def test_of_equal_records_the_first_statement_stands() -> None:
    hits = sorted([hit("a", 0, 2, 0.9), hit("a", 0, 1, 0.9)], key=hit_order)
    assert strongest(hits) == [hit("a", 0, 1, 0.9)]
