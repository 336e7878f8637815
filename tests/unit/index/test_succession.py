"""When the revisions of a document count, by their order alone."""

from __future__ import annotations

import pytest

from services.index.domain.force import NEVER, Force
from services.index.domain.records import LaneFilter, Reach, Within
from services.index.domain.succession import KnownRevision, forces

KEY = ("a" * 32, 1)


def known(revision: int, start: int, *, retired_at: int = NEVER, stored: bool = True) -> KnownRevision:
    return KnownRevision(
        revision=revision, effective_from=start, position=revision * 10, retired_at=retired_at, stored=stored
    )


def intervals(*revisions: KnownRevision, current: int = 0) -> dict[int, tuple[int, int]]:
    found = forces(revisions, current)
    return {number: (force.effective_from, force.in_force_until) for number, force in found.items()}


def test_a_revision_counts_until_the_next_one_does() -> None:
    assert forces([known(1, 5), known(2, 9)], 2) == {
        1: Force(effective_from=5, in_force_until=9, position=10, current=False),
        2: Force(effective_from=9, in_force_until=NEVER, position=20, current=True),
    }


def test_a_later_revision_with_an_earlier_time_is_history_between() -> None:
    assert intervals(known(1, 1), known(2, 9), known(3, 4)) == {1: (1, 4), 3: (4, 9), 2: (9, NEVER)}


def test_of_two_with_one_time_the_later_counts() -> None:
    assert intervals(known(2, 5), known(1, 5)) == {1: (5, 5), 2: (5, NEVER)}


def test_what_is_not_embedded_yet_ends_nothing() -> None:
    assert intervals(known(1, 1), known(2, 5, stored=False)) == {1: (1, NEVER)}


def test_a_retirement_ends_all_that_came_before_and_nothing_after() -> None:
    assert intervals(known(1, 1, retired_at=7), known(2, 20, retired_at=7), known(3, 30)) == {
        1: (1, 7),
        2: (20, 7),
        3: (30, NEVER),
    }


def test_no_revisions_have_no_force() -> None:
    assert forces([], 0) == {}


@pytest.mark.parametrize(
    ("lane_filter", "let_in"),
    [
        (LaneFilter(), False),
        (LaneFilter(also=(KEY,)), True),
        (LaneFilter(reach=Reach.IN_FORCE, as_of=4), False),
        (LaneFilter(reach=Reach.IN_FORCE, as_of=5), True),
        (LaneFilter(reach=Reach.IN_FORCE, as_of=9), False),
        (LaneFilter(reach=Reach.IN_FORCE, as_of=5, without=(KEY,)), False),
        (LaneFilter(reach=Reach.IN_FORCE, as_of=5, at=9), False),
        (LaneFilter(reach=Reach.IN_FORCE, as_of=5, at=10), True),
        (LaneFilter(reach=Reach.EVERY, as_of=4), False),
        (LaneFilter(reach=Reach.EVERY, as_of=9), True),
    ],
)
def test_a_filter_lets_in_what_the_rows_say(lane_filter: LaneFilter, *, let_in: bool) -> None:
    past = Force(effective_from=5, in_force_until=9, position=10, current=False)
    assert Within(lane_filter)(KEY, past) is let_in
