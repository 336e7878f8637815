"""What a folder knows of when its documents were in force: read for a reference run, never fed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from tests.audit.feed import Statement, instant

OUT_OF_FORCE = frozenset({"superseded", "deprecated"})
_ENDING_WORDS = frozenset({"superseded", "rejected", "withdrawn"})


def replaced(relations: Iterable[Statement]) -> dict[str, datetime]:
    """When each document was first superseded, of the edges that have a date of their own.

    Args:
        relations: Edges of the folder.

    Returns:
        Instant by id.
    """
    found: dict[str, datetime] = {}
    for edge in relations:
        if edge.type == "supersedes" and edge.effective_at:
            found[edge.target] = min(edge.effective_at, found.get(edge.target, edge.effective_at))
    return found


def ended_at(row: Mapping[str, Any], replaced_at: Mapping[str, datetime]) -> datetime | None:
    """When a document went out of force, by all that its folder says.

    Args:
        row: Its entry in documents.jsonl.
        replaced_at: See `replaced`.

    Returns:
        The earliest such instant; None when there is none.
    """
    ends = [instant(str(row[name])) for name in ("valid_to", "superseded_on", "withdrawn_on") if row.get(name)]
    if row["id"] in replaced_at:
        ends.append(replaced_at[row["id"]])
    history = row.get("status_history") or []
    if history and str(history[-1][1]).lower() in _ENDING_WORDS:
        ends.append(instant(str(history[-1][0])))
    return min(ends, default=None)


def in_force(*, state: str, effective_at: datetime | None, ended: datetime | None, as_of: datetime | None) -> bool:
    """Whether a document was in force.

    Args:
        state: Its state at the folder's date.
        effective_at: When it came into force; None: always was.
        ended: When it went out of force.
        as_of: None: at the folder's date.

    Returns:
        True for one that a reader could rely on then.
    """
    if as_of is None:
        return state not in OUT_OF_FORCE
    return (effective_at is None or effective_at <= as_of) and (ended is None or as_of < ended)
