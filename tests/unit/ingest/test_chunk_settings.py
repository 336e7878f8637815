"""Chunk settings: defaults, range, clamping, and the digest in keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.domain.chunking import ChunkPatch, ChunkSettings, configure, limited, settings_digest
from services.ingest.domain.refusals import Refused


def test_defaults_are_1000_with_200_overlap() -> None:
    assert configure(ChunkSettings(), ChunkPatch()) == (ChunkSettings(1_000, 200), ())


def test_overlap_over_half_is_lowered_and_the_notice_names_both_settings_and_the_rule() -> None:
    settings, notices = configure(ChunkSettings(), ChunkPatch(100, 100))
    assert settings == ChunkSettings(100, 50)
    assert notices == ("chunk_overlap 100 was lowered to 50: it can't exceed half of chunk_size 100",)


def test_a_smaller_size_lowers_the_overlap_that_was_set_before() -> None:
    settings, notices = configure(ChunkSettings(1_000, 200), ChunkPatch(size_chars=101))
    assert settings == ChunkSettings(101, 50)
    assert notices == ("chunk_overlap 200 was lowered to 50: it can't exceed half of chunk_size 101",)


def test_negative_overlap_is_raised_to_zero() -> None:
    settings, notices = configure(ChunkSettings(), ChunkPatch(overlap_chars=-1))
    assert settings == ChunkSettings(1_000, 0)
    assert notices == ("chunk_overlap -1 was raised to 0: it can't be negative, whatever chunk_size 1000 is",)


@pytest.mark.parametrize("size", [-1, 0, 49, 100_001])
def test_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(Refused, match=f"chunk_size {size} is out of range: choose 50 to 100000"):
        configure(ChunkSettings(), ChunkPatch(size_chars=size))


@pytest.mark.parametrize("size", [50, 100_000])
def test_the_ends_of_the_range_are_allowed(size: int) -> None:
    assert configure(ChunkSettings(), ChunkPatch(size, 0)) == (ChunkSettings(size, 0), ())


@given(st.integers(50, 100_000), st.integers(-1_000, 200_000))
def test_overlap_always_leaves_room_for_progress(size: int, overlap: int) -> None:
    settings, notices = configure(ChunkSettings(), ChunkPatch(size, overlap))
    assert 0 <= settings.overlap_chars <= settings.size_chars // 2
    assert bool(notices) == (settings.overlap_chars != overlap)


def test_the_provider_limit_lowers_size_and_overlap_only_where_needed() -> None:
    wanted = ChunkSettings(1_000, 200)
    assert limited(wanted, 0) is wanted
    assert limited(wanted, 1_000) is wanted
    assert limited(wanted, 500) == ChunkSettings(500, 200)
    assert limited(wanted, 300) == ChunkSettings(300, 150)


def test_digest_tells_settings_and_occasions_apart() -> None:
    one, other = ChunkSettings(1_000, 200), ChunkSettings(500, 200)
    digests = {settings_digest(one, after=0), settings_digest(other, after=7), settings_digest(one, after=9)}
    assert len(digests) == 3
    assert settings_digest(one, after=9) == settings_digest(ChunkSettings(1_000, 200), after=9)
    assert all(len(digest) == 32 and int(digest, 16) >= 0 for digest in digests)
    # Size and overlap can't be taken for each other.
    assert settings_digest(ChunkSettings(111, 1), after=0) != settings_digest(ChunkSettings(11, 11), after=0)
