"""Over-long texts: windows and pooling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from services.embedder.domain.windows import Window, padded_groups, pooled, windows


@pytest.mark.parametrize("tokens", [0, 1, 254])
def test_what_fits_is_one_window(tokens: int) -> None:
    assert windows(tokens, size=254, overlap=32) == (Window(0, tokens),)


def test_one_token_too_many_makes_two_windows_of_like_length() -> None:
    assert windows(255, size=254, overlap=32) == (Window(0, 144), Window(112, 255))


def test_long_texts_are_covered_without_a_short_rest() -> None:
    cuts = windows(1_000, size=254, overlap=32)
    assert len(cuts) == 5
    assert cuts[0].start == 0
    assert cuts[-1].end == 1_000
    assert all(earlier.end - later.start == 32 for earlier, later in itertools.pairwise(cuts))
    assert {cut.end - cut.start for cut in cuts} <= {224, 226}


def test_pooling_weighs_windows_by_their_tokens() -> None:
    # Sums over 3 and over 1 tokens: each token counts once.
    sums = [np.array([3.0, 0.0]), np.array([0.0, 1.0])]
    assert pooled(sums, [3, 1]).tolist() == [0.75, 0.25]
    assert sums[0].tolist() == [3.0, 0.0]


def test_one_window_pools_to_its_mean() -> None:
    assert pooled([np.array([4.0, 8.0])], [4]).tolist() == [1.0, 2.0]


def test_groups_hold_like_lengths_within_their_limits() -> None:
    lengths = [256, 10, 12, 11, 256, 60, 64, 9]
    assert list(padded_groups(lengths, rows=3, tokens=128)) == [(7, 1, 3), (2,), (5, 6), (0,), (4,)]


def test_padding_is_not_worth_a_shared_call() -> None:
    assert list(padded_groups([20, 28, 10, 12], rows=8, tokens=128)) == [(2, 3), (0,), (1,)]


def test_no_windows_no_groups() -> None:
    assert list(padded_groups([], rows=3, tokens=128)) == []
