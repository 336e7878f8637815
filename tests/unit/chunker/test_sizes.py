"""Sizes: defaults, ranges, clamping and what is said about it."""

from __future__ import annotations

import pytest

from services.chunker.domain.chunking import Sizes, chunk, effective_sizes
from services.chunker.domain.document import NormalizedText


def test_defaults() -> None:
    assert effective_sizes(None, None) == Sizes(1_000, 200)


def test_an_overlap_of_the_whole_size_is_lowered_to_half_of_it() -> None:
    sizes = effective_sizes(100, 100)
    assert (sizes.size_chars, sizes.overlap_chars) == (100, 50)
    assert sizes.notices == ("chunk_overlap 100 was lowered to 50: it can't exceed half of chunk_size 100",)


def test_half_of_the_size_is_allowed() -> None:
    assert effective_sizes(101, 50) == Sizes(101, 50)


def test_the_embedding_provider_lowers_the_size_and_keeps_the_overlap_where_it_fits() -> None:
    sizes = effective_sizes(1_000, 200, max_input_chars=600)
    assert (sizes.size_chars, sizes.overlap_chars) == (600, 200)
    assert sizes.notices == ("chunk_size 1000 was lowered to 600: the embedding provider takes at most 600 characters",)


def test_a_small_bound_lowers_both() -> None:
    sizes = effective_sizes(1_000, 200, max_input_chars=11)
    assert (sizes.size_chars, sizes.overlap_chars) == (11, 5)
    assert len(sizes.notices) == 2


def test_a_bound_above_the_size_changes_nothing() -> None:
    assert effective_sizes(1_000, 200, max_input_chars=1_000) == Sizes(1_000, 200)


@pytest.mark.parametrize("size", [0, 49, 100_001])
def test_sizes_out_of_range_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"chunk_size {size} is out of range: choose 50 to 100000"):
        effective_sizes(size, 0)


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 6), (10, -1)])
def test_chunking_refuses_what_would_not_progress(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="at most half of the size"):
        chunk(NormalizedText("text"), size_chars=size, overlap_chars=overlap)
