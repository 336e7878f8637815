"""Limits, page tokens and term weights."""

from __future__ import annotations

import math

import pytest

from services.index.domain.requests import idf, limit_problem, page_token, parse_page_token


@pytest.mark.parametrize("value", [1, 2, 999, 1_000])
def test_limits_in_range_pass(value: int) -> None:
    assert limit_problem("limit", value) == ""


@pytest.mark.parametrize("value", [0, -1, 1_001, 2**32 - 1])
def test_limits_out_of_range_name_the_field_and_the_value(value: int) -> None:
    assert limit_problem("page_size", value) == f"page_size is {value}: give 1 to 1,000"


def test_rare_terms_weigh_more_and_no_weight_is_negative() -> None:
    assert idf(10, 1) > idf(10, 5) > idf(10, 10) > 0
    assert idf(10, 1) == pytest.approx(math.log(1 + 9.5 / 1.5))
    assert idf(10, 0) == 0.0
    assert idf(0, 0) == 0.0


def test_page_tokens_round_trip() -> None:
    assert parse_page_token(page_token(3, 100)) == (3, 100)


@pytest.mark.parametrize(
    "token", ["x", "1", "1.", ".1", "1.2.3", "-1.2", "1.-2", "0.1", "\u0661.\u0662", "1" * 30 + ".1", "1.\u00b2"]
)
def test_foreign_page_tokens_are_refused(token: str) -> None:
    with pytest.raises(ValueError, match="not a page token"):
        parse_page_token(token)
