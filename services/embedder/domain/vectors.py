"""Checks of what models return, and the layout of vectors as bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
_WIRE = np.dtype("<f4")


def unit_rows(vectors: NDArray[np.floating], *, count: int, dimension: int) -> Vectors:
    """Check a model's output and scale its rows to unit length.

    Args:
        vectors: float[n, d] as the model gave it.
        count: Rows that were asked for.
        dimension: Length that each must have.

    Returns:
        float32[n, d], every number finite, every row of unit length.

    Raises:
        ValueError: When the shape is another, a number isn't finite, or a row is zero.
    """
    if vectors.shape != (count, dimension):
        raise ValueError(f"{count} vectors of {dimension} numbers were due, but the shape is {list(vectors.shape)}")
    wide = vectors.astype(np.float64)
    if not np.isfinite(wide).all():
        raise ValueError("a vector holds a number that isn't finite")
    # Scaling by the largest number first keeps squares of huge and tiny numbers in range.
    largest = np.abs(wide).max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError("a vector is zero")
    wide /= largest
    unit: Vectors = (wide / np.sqrt((wide * wide).sum(axis=1, keepdims=True))).astype(np.float32)
    return unit


def to_bytes(vectors: Vectors) -> bytes:
    """Vectors as little-endian float32[n, d], row by row."""
    return vectors.astype(_WIRE, copy=False).tobytes()


def from_bytes(data: bytes, *, count: int, dimension: int) -> Vectors:
    """Read little-endian float32[n, d].

    Args:
        data: Bytes.
        count: Rows.
        dimension: Numbers per row.

    Returns:
        float32[n, d], read-only.

    Raises:
        ValueError: When the length doesn't fit or a number isn't finite.
    """
    if len(data) != count * dimension * _WIRE.itemsize:
        raise ValueError(f"{count} vectors of {dimension} numbers don't take {len(data)} bytes")
    vectors = np.frombuffer(data, dtype=_WIRE).reshape(count, dimension)
    if not np.isfinite(vectors).all():
        raise ValueError("a vector holds a number that isn't finite")
    return vectors.astype(np.float32, copy=False)
