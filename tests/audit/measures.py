"""Retrieval measures over ranked lists of distinct documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def ndcg(ranked: Sequence[str], relevance: Mapping[str, float], depth: int = 10) -> float:
    """Normalised discounted cumulative gain, gain = relevance, discount log2(rank + 1), as trec_eval's ndcg_cut.

    Args:
        ranked: Document ids, best first, each once.
        relevance: Gain by document id.
        depth: Ranks that count.

    Returns:
        0 to 1.
    """
    gained = sum(relevance.get(name, 0.0) / math.log2(rank + 1) for rank, name in enumerate(ranked[:depth], start=1))
    ideal = sorted(relevance.values(), reverse=True)[:depth]
    possible = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ideal, start=1))
    return gained / possible if possible else 0.0


def recall(ranked: Sequence[str], expected: Mapping[str, float], depth: int = 10) -> float:
    """Share of the expected documents among the first ones.

    Args:
        ranked: Document ids, best first, each once.
        expected: The expected ones.
        depth: Ranks that count.

    Returns:
        0 to 1.
    """
    return len(set(ranked[:depth]) & set(expected)) / len(expected)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0
