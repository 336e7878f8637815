"""What may be asked, and how rare a term is."""

from __future__ import annotations

import math

MAX_LIMIT = 1_000
DEFAULT_PAGE_SIZE = 100


def limit_problem(name: str, value: int) -> str:
    """One rule for every count that a caller gives.

    Args:
        name: Field name.
        value: Its value.

    Returns:
        Empty, or what is wrong with it.
    """
    if 1 <= value <= MAX_LIMIT:
        return ""
    return f"{name} is {value}: give 1 to {MAX_LIMIT:,}"


def idf(record_count: int, document_frequency: int) -> float:
    """Robertson-Sparck Jones weight in the form that never falls below zero, as BM25 engines use it.

    Args:
        record_count: Records in all.
        document_frequency: Records that hold the term.

    Returns:
        Natural logarithm of 1 + (N - n + 0.5) / (n + 0.5); 0 for a term that no record holds.
    """
    if not document_frequency:
        return 0.0
    return math.log1p((record_count - document_frequency + 0.5) / (document_frequency + 0.5))


def page_token(revision: int, ordinal: int) -> str:
    """Token of the page that begins with a chunk: a listing stays with the revision that it began with."""
    return f"{revision}.{ordinal}"


def parse_page_token(token: str) -> tuple[int, int]:
    """Read a page token.

    Args:
        token: From `page_token`.

    Returns:
        Revision and ordinal.

    Raises:
        ValueError: When it isn't one.
    """
    revision, dot, ordinal = token.partition(".")
    if not (dot and revision.isascii() and revision.isdigit() and ordinal.isascii() and ordinal.isdigit()):
        raise ValueError("not a page token")
    if len(token) > 20 or not int(revision):
        raise ValueError("not a page token")
    return int(revision), int(ordinal)
