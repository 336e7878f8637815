"""How much goes to the model in one turn."""

from __future__ import annotations

import pytest

from services.embedder.domain.batches import BatchLimits, batch_end

LIMITS = BatchLimits(texts=3, size_bytes=10)


@pytest.mark.parametrize(
    ("sizes", "start", "end"),
    [
        ([1, 1, 1, 1], 0, 3),
        ([1, 1, 1, 1], 3, 4),
        ([5, 5, 1], 0, 2),
        ([5, 6, 1], 0, 1),
        ([99, 1], 0, 1),
        ([0, 0, 0, 0], 1, 4),
    ],
)
def test_batches_end_at_the_first_limit(sizes: list[int], start: int, end: int) -> None:
    assert batch_end(sizes, start, LIMITS) == end
