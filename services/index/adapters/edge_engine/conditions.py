"""What the points of a shard say about their records, and which of them a search wants."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import qdrant_edge as edge
from blake3 import blake3

from services.index.adapters.edge_engine.frames import StoredForce, StoredRecord

INDEXED_FIELDS = ("kind", "current_kind", "kind_form", "current_kind_form", "document", "source_domain")
"""Kind with form is a field too, and each once more where the revision is current: where no graph is built yet, a second
condition costs as much as the distances."""
RANGE_FIELDS = ("effective_from", "in_force_until", "until_known_from", "position")
"""The engine compares them as float64: exact for instants up to the year 2255, to some microseconds beyond."""
LOOKUP_FIELDS = ("revision_key",)
"""Document and revision as one number: looking for numbers costs a third of looking for texts."""
KINDS = ("chunk", "document")
NOT_CURRENT = "none"

Hidden = Collection[tuple[str, int, int]]
"""Document, revision and edition."""
SEARCH_FIELDS = ("kind", "forms", "document_ids", "source_domains", "limit", "reach", "as_of", "at", "also", "without")


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for.

    Attributes:
        kind: Level asked for.
        forms: Forms that count; empty for all.
        document_ids: Documents that count; empty for all.
        source_domains: Source domains that count; empty for all.
        limit: Most hits wanted.
        reach: "current", "in_force" or "every".
        as_of: Instant that the reach is about, microseconds since 1970.
        at: Highest log position of a revision; 0 for any.
        also: Document and revision of those that count in any case.
        without: Document and revision of those that don't count otherwise.
    """

    kind: str
    forms: Sequence[str]
    document_ids: Sequence[str]
    source_domains: Sequence[str]
    limit: int
    reach: str = "current"
    as_of: int = 0
    at: int = 0
    also: Sequence[tuple[str, int]] = ()
    without: Sequence[tuple[str, int]] = ()


def payload(document_id: str, edition: int, record: StoredRecord) -> dict[str, Any]:
    """What a point says about its record."""
    revision, ordinal, kind, form, source_domain, force = record
    return {
        "document": document_id,
        "edition": edition,
        "revision": revision,
        "revision_key": revision_key(document_id, revision),
        "ordinal": ordinal,
        "kind": kind,
        "kind_form": f"{kind}/{form}",
        "source_domain": source_domain,
        **force_payload(kind, form, force),
    }


def force_payload(kind: str, form: str, force: StoredForce) -> dict[str, Any]:
    """The part of it that changes when the revision counts at other times."""
    *ranges, current = force
    return {
        **dict(zip(RANGE_FIELDS, ranges, strict=True)),
        "current_kind": kind if current else NOT_CURRENT,
        "current_kind_form": f"{kind}/{form}" if current else NOT_CURRENT,
    }


@lru_cache(maxsize=20_000)
def revision_key(document_id: str, revision: int) -> int:
    """One number for document and revision."""
    # Of 63 bits, since the engine's integers have a sign.
    return int.from_bytes(blake3(f"{document_id}/{revision}".encode()).digest(8)) >> 1


def wanted(search: Search, hidden: Hidden) -> Any:
    """The engine's filter for a search.

    Args:
        search: What is looked for.
        hidden: Editions that aren't complete yet.
    """
    prefix = "current_" if search.reach == "current" and not search.also else ""
    conditions = (
        (f"{prefix}kind", () if search.forms else (search.kind,)),
        (f"{prefix}kind_form", [f"{search.kind}/{form}" for form in search.forms]),
        ("document", search.document_ids),
        ("source_domain", search.source_domains),
    )
    must = [any_of(name, values) for name, values in conditions if values]
    within, without = _ranges(search), []
    if search.without:
        without = [any_of("revision_key", [revision_key(*key) for key in search.without])]
    if search.also:
        if search.reach == "current":
            within.append(is_("current_kind", search.kind))
        also = any_of("revision_key", [revision_key(*key) for key in search.also])
        must.append(edge.Filter(should=[edge.Filter(must=within, must_not=without), also]))
        return edge.Filter(must=must, must_not=editions(hidden))
    return edge.Filter(must=[*must, *within], must_not=[*without, *editions(hidden)])


def _ranges(search: Search) -> list[Any]:
    ranges = []
    if search.reach != "current":
        ranges.append(_range("effective_from", lte=search.as_of))
    if search.reach == "in_force":
        lasts = _range("in_force_until", gt=search.as_of)
        if search.at:
            lasts = edge.Filter(should=[lasts, _range("until_known_from", gt=search.at)])
        ranges.append(lasts)
    if search.at:
        ranges.append(_range("position", lte=search.at))
    return ranges


def _range(name: str, *, lte: int | None = None, gt: int | None = None) -> Any:
    bounds = {side: float(bound) for side, bound in (("lte", lte), ("gt", gt)) if bound is not None}
    return edge.FieldCondition(key=name, range=edge.RangeFloat(**bounds))


def is_(name: str, value: str | int) -> Any:
    """A field has a value."""
    return edge.FieldCondition(key=name, match=edge.MatchValue(value))


def any_of(name: str, values: Sequence[Any]) -> Any:
    """A field has one of some values, at least one."""
    if len(values) == 1:
        return is_(name, values[0])
    return edge.FieldCondition(key=name, match=edge.MatchAny(list(values)))


def editions(hidden: Hidden) -> list[Any]:
    """Points of some editions."""
    return [edge.Filter(must=[is_("document", document), is_("edition", number)]) for document, _, number in hidden]
