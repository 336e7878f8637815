"""How much of a document's texts goes to the model in one turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Size of one turn.

    Attributes:
        texts: Most texts.
        size_bytes: Most bytes of UTF-8, unless one text alone has more.
    """

    texts: int
    size_bytes: int


def batch_end(sizes_bytes: Sequence[int], start: int, limits: BatchLimits) -> int:
    """End of the batch that begins at `start`.

    Args:
        sizes_bytes: Size of each text.
        start: First text of the batch.
        limits: Its size.

    Returns:
        Index after its last text; always beyond `start`.
    """
    end, room = start + 1, limits.size_bytes - sizes_bytes[start]
    while end < len(sizes_bytes) and end - start < limits.texts and sizes_bytes[end] <= room:
        room -= sizes_bytes[end]
        end += 1
    return end
