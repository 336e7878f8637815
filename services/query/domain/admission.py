"""Admission: which candidates count as evidence at all. What is not admitted can't be cited.

The rule is enforced here, before any answer is made, and not left to a prompt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from services.query.domain.fusion import Fused
from services.query.domain.values import Passage, TermWeight


@dataclass(frozen=True, slots=True)
class Admitted:
    """A candidate that counts.

    Attributes:
        candidate: As fused.
        passage: Its chunk.
        coverage: Share of the query's terms that the chunk covers, by IDF, 0 to 1.
    """

    candidate: Fused
    passage: Passage
    coverage: float


def covered_share(terms: Sequence[TermWeight], held: frozenset[str]) -> float:
    """Work out how much of a query a record covers.

    A term that no record has weighs as much as a term of one record would at least: a query for something unknown
    isn't covered by the rest of its words.

    Args:
        terms: The query's terms with their IDF.
        held: The record's terms.

    Returns:
        Sum of the IDF of covered terms over the sum of all, 0 to 1; 0 for a query without terms.
    """
    unknown = idf_of_unknown(terms)
    total = sum(_weight(term, unknown) for term in terms)
    if not total:
        return 0.0
    return sum(_weight(term, unknown) for term in terms if term.term in held) / total


def common_terms(terms: Sequence[TermWeight], most: float) -> frozenset[str]:
    """Find the terms of a query that tell next to nothing apart.

    Args:
        terms: The query's terms with their IDF.
        most: Share of the IDF of an unknown term up to which one is common.

    Returns:
        Those terms.
    """
    limit = most * idf_of_unknown(terms)
    return frozenset(term.term for term in terms if term.document_frequency and term.idf <= limit)


def admit(
    candidates: Sequence[tuple[Fused, Passage]],
    terms: Sequence[TermWeight],
    *,
    coverage: float,
    cosine: float,
) -> tuple[Admitted, ...]:
    """Let those candidates in whose coverage or cosine reaches its threshold.

    Args:
        candidates: In order of their fused score, with their chunks.
        terms: The query's terms with their IDF; empty when the keyword lane was not used.
        coverage: Threshold of the covered share, 0 to 1.
        cosine: Threshold of the vector lane's cosine.

    Returns:
        Those admitted, order kept.
    """
    found: list[Admitted] = []
    for candidate, passage in candidates:
        share = covered_share(terms, passage.terms)
        if share >= coverage or (candidate.vector_rank and candidate.cosine >= cosine):
            found.append(Admitted(candidate, passage, share))
    return tuple(found)


def idf_of_unknown(terms: Sequence[TermWeight]) -> float:
    """Work out the IDF of a term that no record has: ln(1 + (N + 0.5) / 0.5).

    The number of records N follows from any term whose IDF and frequency are both known, since the IDF is
    ln(1 + (N - df + 0.5) / (df + 0.5)).

    Args:
        terms: The query's terms with their IDF.

    Returns:
        The IDF; 1 where no term is known, so that all weigh the same.
    """
    for term in terms:
        frequency = term.document_frequency
        if frequency:
            records = math.expm1(term.idf) * (frequency + 0.5) + frequency - 0.5
            return math.log1p((records + 0.5) / 0.5)
    return 1.0


def _weight(term: TermWeight, unknown: float) -> float:
    return term.idf if term.document_frequency else unknown
