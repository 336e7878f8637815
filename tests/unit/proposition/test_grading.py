"""A statement is accepted only when every single score is 8 to 10."""

from __future__ import annotations

import itertools

import pytest

from services.proposition.domain.grading import Scores, Statement, graded, ungraded


@pytest.mark.parametrize("scores", list(itertools.product((7, 8, 10), repeat=4)))
def test_every_score_counts_and_none_makes_up_for_another(scores: tuple[int, int, int, int]) -> None:
    assert Statement(1, "x", Scores(*scores)).accepted == (min(scores) >= 8)


@pytest.mark.parametrize("score", [0, 1, 7, 11, 99])
def test_one_score_outside_is_enough(score: int) -> None:
    for place in range(4):
        scores = [10, 10, 10, 10]
        scores[place] = score
        assert not Scores(*scores).good


def test_what_wasn_t_graded_isn_t_accepted() -> None:
    assert [statement.accepted for statement in ungraded(["a", "b"])] == [False, False]


def test_scores_are_put_to_their_statements() -> None:
    good, bad = Scores(8, 8, 8, 8), Scores(10, 10, 10, 7)
    assert graded(["a", "b"], {2: good, 1: bad}) == (Statement(1, "a", bad), Statement(2, "b", good))
