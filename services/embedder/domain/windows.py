"""Texts longer than a model takes at once: overlapping windows, pooled by their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Window:
    """A run of a text's tokens.

    Attributes:
        start: First token.
        end: After the last token.
    """

    start: int
    end: int


def windows(token_count: int, *, size: int, overlap: int) -> tuple[Window, ...]:
    """Cut a text into windows of nearly equal length.

    Equal windows weigh every part of the text alike; a full window and a short rest would not.

    Args:
        token_count: Tokens of the text.
        size: Most tokens of one window.
        overlap: Tokens that neighbours share, less than `size`.

    Returns:
        As few windows as cover the text; a single one when it fits.
    """
    if token_count <= size:
        return (Window(0, token_count),)
    count = -(-(token_count - overlap) // (size - overlap))
    length = -(-(token_count + (count - 1) * overlap) // count)
    step = length - overlap
    return tuple(Window(index * step, min(token_count, index * step + length)) for index in range(count))


def pooled(sums: Sequence[NDArray[np.float64]], tokens: Sequence[int]) -> NDArray[np.float64]:
    """Token-weighted mean of a text's windows.

    Args:
        sums: Sum over the tokens of each window, float64[d] each.
        tokens: Tokens of each window.

    Returns:
        float64[d].
    """
    total = sums[0].copy()
    for more in sums[1:]:
        total += more
    return total / sum(tokens)


def padded_groups(lengths: Sequence[int], *, rows: int, tokens: int) -> Iterator[tuple[int, ...]]:
    """Put windows of like length together: a call has its cost, and so has every padded token.

    Args:
        lengths: Tokens of each window.
        rows: Most windows in one call.
        tokens: Most tokens in one call, padding included, unless one window alone has more.

    Yields:
        Indices of the windows of one call.
    """
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda each: (lengths[each], each)):
        if group:
            full = len(group) == rows or (len(group) + 1) * lengths[index] > tokens
            if full or lengths[index] > lengths[group[0]] * 5 // 4 + 2:
                yield tuple(group)
                group = []
        group.append(index)
    if group:
        yield tuple(group)
