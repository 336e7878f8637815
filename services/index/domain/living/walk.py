"""A bounded walk along relations, and version series in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from services.index.domain.living import values
from services.index.domain.living.graph import Graph
from services.index.domain.living.values import Edge
from services.index.domain.living.versions import order


@dataclass(frozen=True, slots=True)
class Reached:
    """What a walk came across.

    Attributes:
        documents: Without those to begin with, nearest first.
        edges: The edges walked, then those that wait for an unknown document.
    """

    documents: tuple[str, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a walk goes.

    Attributes:
        depth: Steps from where it begins.
        fan_out: Edges followed from one document.
        types: Types that count; empty: all.
        as_of: Edges must be in effect then.
        at: KNOWLEDGE position up to which edges and documents must be known; 0: any.
    """

    depth: int
    fan_out: int
    types: frozenset[str]
    as_of: datetime
    at: int = 0


def walk(graph: Graph, starts: Iterable[str], bounds: Bounds) -> Reached:
    """Follow relations in both directions, the most certain first.

    Args:
        graph: All relations.
        starts: Documents to begin with.
        bounds: How far.

    Returns:
        Documents and edges, each once.
    """
    begin = list(dict.fromkeys(starts))
    seen = dict.fromkeys(begin)
    edges: dict[Edge, None] = {}
    level = begin
    for _ in range(bounds.depth):
        after: list[str] = []
        for one in level:
            for edge, other in _steps(graph, one, bounds):
                edges[edge] = None
                if other not in seen:
                    seen[other] = None
                    after.append(other)
        level = after
    for one in begin:
        for edge in graph.waiting(one):
            if _counts(graph, edge, bounds):
                edges[edge] = None
    return Reached(tuple(list(seen)[len(begin) :]), tuple(edges))


def members(graph: Graph, family: str, as_of: datetime) -> tuple[values.RevisionKey, ...]:
    """A version series in order.

    Args:
        graph: All documents.
        family: Name of the series, any case.
        as_of: Instant; each document counts with the revision that shows then.

    Returns:
        Oldest first: by version, then by effective time and position.
    """
    found = []
    for document_id in graph.family(family):
        shown = graph.nodes[document_id].shown(as_of)
        if shown is None or shown.reading.version.family.casefold() != family.casefold():
            continue
        facts = shown.facts
        rank = (order(shown.reading.version.version), facts.effective_at, facts.position)
        found.append((rank, (document_id, facts.revision)))
    return tuple(key for _, key in sorted(found))


def _steps(graph: Graph, one: str, bounds: Bounds) -> Iterator[tuple[Edge, str]]:
    found: list[tuple[Edge, str]] = []
    for kind in values.TYPES:
        found += [(edge, edge.target) for edge in graph.outgoing(one, kind)]
        found += [(edge, edge.source) for edge in graph.incoming(one, kind)]
    ranked = sorted(
        (-edge.confidence_ppm, other, edge.type, edge.source, edge.position, number)
        for number, (edge, other) in enumerate(found)
        if other != one and _counts(graph, edge, bounds) and _known(graph, other, bounds)
    )
    return (found[entry[-1]] for entry in ranked[: bounds.fan_out])


def _known(graph: Graph, document_id: str, bounds: Bounds) -> bool:
    node = graph.nodes.get(document_id)
    return node is not None and (not bounds.at or any(one.facts.position <= bounds.at for one in node.revisions))


def _counts(graph: Graph, edge: Edge, bounds: Bounds) -> bool:
    """Whether an edge is known and in effect. One whose source never was in force tells of a plan, and counts too."""
    if (bounds.types and edge.type not in bounds.types) or edge.type not in values.TYPES:
        return False
    if bounds.at and edge.position > bounds.at:
        return False
    start = graph.start(edge) or edge.since
    if start is not None and start > bounds.as_of:
        return False
    return edge.until is None or bounds.as_of < edge.until
