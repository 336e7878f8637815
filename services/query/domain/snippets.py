"""The part of a chunk that shows why it was found."""

from __future__ import annotations

from collections.abc import Sequence

from services.query.domain.admission import covered_share
from services.query.domain.units import units_of
from services.query.domain.values import Passage, TermWeight

SNIPPET_CHARS = 300


def snippet(passage: Passage, terms: Sequence[TermWeight]) -> str:
    """Cut a snippet.

    Args:
        passage: A chunk.
        terms: The query's terms with their IDF; empty where the keyword lane was not used.

    Returns:
        The unit that covers most of the query, or the start of the chunk where none covers any; one line, at most 300
        code points.
    """
    units = units_of(passage)
    best = max(units, key=lambda unit: covered_share(terms, unit.own), default=None)
    covered = best is not None and covered_share(terms, best.own) > 0
    line = " ".join((best.text if best and covered else passage.text).split())
    return line if len(line) <= SNIPPET_CHARS else line[: SNIPPET_CHARS - 1].rstrip() + "…"
