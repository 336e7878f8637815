"""Only finite unit rows pass."""

from __future__ import annotations

import numpy as np
import pytest

from services.embedder.domain.vectors import from_bytes, to_bytes, unit_rows


def test_rows_are_scaled_to_unit_length() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, -2.0]]), count=2, dimension=2)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, -1.0]]


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_huge_and_tiny_numbers_keep_their_direction(scale: float) -> None:
    rows = unit_rows(np.array([[3.0, 4.0]]) * scale, count=1, dimension=2)
    assert rows == pytest.approx(np.array([[0.6, 0.8]]), abs=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="isn't finite"):
        unit_rows(np.array([[1.0, 0.0], [bad, 1.0]]), count=2, dimension=2)


def test_zero_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="is zero"):
        unit_rows(np.array([[1.0, 0.0], [0.0, 0.0]]), count=2, dimension=2)


@pytest.mark.parametrize("shape", [(1, 2), (2, 3), (4,)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="2 vectors of 2 numbers were due"):
        unit_rows(np.ones(shape), count=2, dimension=2)


def test_bytes_are_little_endian_rows() -> None:
    assert to_bytes(np.array([[1.0, -2.0]], dtype=np.float32)) == bytes.fromhex("0000803f000000c0")


def test_bytes_come_back() -> None:
    vectors = np.array([[0.1, 0.2, 0.3], [4.0, 5.0, 6.0]], dtype=np.float32)
    again = from_bytes(to_bytes(vectors), count=2, dimension=3)
    assert again.dtype == np.float32
    assert np.array_equal(again, vectors)


def test_bytes_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="don't take 23 bytes"):
        from_bytes(bytes(23), count=2, dimension=3)


def test_stored_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="isn't finite"):
        from_bytes(to_bytes(np.array([[np.nan]], dtype=np.float32)), count=1, dimension=1)
