"""Whether the cited documents suffice, the smallest set of them that does, and how fragile the answer is.

The constraint has two halves: enough independent source domains, and the whole set's coverage of the question. MiSES
(the smallest set that satisfies it) and fragility (the share of cited documents whose removal breaks it) are worked
out by trying, not by estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A cited document.

    Attributes:
        document_id: Document.
        domain: Its source domain.
        covered: Terms of the question that its cited passages hold.
    """

    document_id: str
    domain: str
    covered: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sufficiency:
    """How much evidence an answer rests on.

    Attributes:
        domains_needed: Source domains that the mode needs.
        domains: Those of the cited documents, sorted.
        sufficient: There are enough.
        minimal: Smallest sufficient set, in the order of citing; empty where even the whole set is not enough.
        fragility: Share of the cited documents whose removal breaks the constraint, 0 to 1.
        load_bearing: Those documents, in the order of citing.
    """

    domains_needed: int
    domains: tuple[str, ...]
    sufficient: bool
    minimal: tuple[str, ...]
    fragility: float
    load_bearing: tuple[str, ...]


def weigh_sufficiency(documents: Sequence[CitedDocument], *, domains_needed: int) -> Sufficiency:
    """Weigh the cited documents.

    Args:
        documents: Each once, in the order of citing.
        domains_needed: At least 1.

    Returns:
        The verdict. Where the whole set lacks domains, every document is load-bearing: without any of them it lacks
        more. Of several smallest sets the one whose documents are cited first is told.
    """
    whole = _coverage(documents)
    domains = tuple(sorted({item.domain for item in documents}))
    sufficient = _holds(documents, whole, domains_needed)
    bearing = tuple(
        item.document_id
        for item in documents
        if not _holds([other for other in documents if other is not item], whole, domains_needed)
    )
    return Sufficiency(
        domains_needed=domains_needed,
        domains=domains,
        sufficient=sufficient,
        minimal=_minimal(documents, whole, domains_needed) if sufficient else (),
        fragility=len(bearing) / len(documents) if documents else 0.0,
        load_bearing=bearing,
    )


def _minimal(documents: Sequence[CitedDocument], whole: frozenset[str], needed: int) -> tuple[str, ...]:
    for size in range(needed, len(documents)):
        for chosen in combinations(documents, size):
            if _holds(chosen, whole, needed):
                return tuple(item.document_id for item in chosen)
    return tuple(item.document_id for item in documents)


def _holds(documents: Sequence[CitedDocument], whole: frozenset[str], needed: int) -> bool:
    return len({item.domain for item in documents}) >= needed and _coverage(documents) >= whole


def _coverage(documents: Sequence[CitedDocument]) -> frozenset[str]:
    return frozenset().union(*(item.covered for item in documents))
