"""Which admitted passages are offered to an answer."""

from __future__ import annotations

from collections.abc import Sequence

from services.query.domain.admission import Admitted


def select_contexts(admitted: Sequence[Admitted], *, limit: int) -> tuple[Admitted, ...]:
    """Choose contexts: the best of each document first, then by score.

    Args:
        admitted: Admitted candidates, best first.
        limit: How many contexts at most, at least 1.

    Returns:
        The contexts in that order.
    """
    best: dict[str, Admitted] = {}
    for item in admitted:
        best.setdefault(item.candidate.key.document_id, item)
    first = tuple(best.values())
    rest = tuple(item for item in admitted if best[item.candidate.key.document_id] is not item)
    return (first + rest)[:limit]
