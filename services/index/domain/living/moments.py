"""What the rules see of the graph, and the instants at which it may change what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Protocol

from services.index.domain.living import values
from services.index.domain.living.nodes import Node
from services.index.domain.living.values import Edge, Rules


class View(Protocol):
    """What the rules see of the graph."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Documents by id."""

    @property
    def rules(self) -> Rules:
        """The crate's rules."""

    def incoming(self, document_id: str, kind: str) -> tuple[Edge, ...]:
        """Edges of a type to a document."""

    def outgoing(self, document_id: str, kind: str) -> tuple[Edge, ...]:
        """Edges of a type from a document."""

    def cycle(self, document_id: str) -> frozenset[str]:
        """Documents that one is in a circle of supersedes edges with, at some time."""

    def family(self, name: str) -> frozenset[str]:
        """Documents that belong to a version series at some time."""

    def start(self, edge: Edge) -> datetime | None:
        """When an edge takes effect; None: never."""


class Moments:
    """Instants. Remembers what it found, so it serves one state of the graph only."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._force: dict[str, frozenset[datetime]] = {}

    def force(self, one: str) -> frozenset[datetime]:
        """Instants at which a document may come into or go out of force, whatever its series says."""
        held = self._force.get(one)
        if held is not None:
            return held
        found = set(self._superseded(one)) | self.edges(self._view.incoming(one, values.DEPRECATES))
        for kind in (values.CONTRADICTS, values.ELABORATES):
            for edge in self._view.outgoing(one, kind):
                found |= self.edges((edge,)) | self._superseded(edge.target)
        found |= self.edges(self._view.incoming(one, values.CONTRADICTS))
        for other in self._view.cycle(one):
            found |= self.edges(self._view.outgoing(other, values.SUPERSEDES))
        self._force[one] = frozenset(found)
        return self._force[one]

    def _superseded(self, one: str) -> set[datetime]:
        node = self._view.nodes.get(one)
        found = set(node.times()) if node else set()
        found |= self.edges(self._view.incoming(one, values.SUPERSEDES))
        found |= self.edges(self._view.outgoing(one, values.SUPERSEDES))
        versions = (*self._view.incoming(one, values.IS_VERSION_OF), *self._view.outgoing(one, values.IS_VERSION_OF))
        found |= self.edges(versions)
        for edge in versions:
            other = self._view.nodes.get(edge.source if edge.target == one else edge.target)
            if other is not None:
                found |= {revision.facts.effective_at for revision in other.revisions}
        for member in self._view.cycle(one):
            found |= self.edges(self._view.outgoing(member, values.SUPERSEDES))
        return found

    def edges(self, edges: tuple[Edge, ...]) -> set[datetime]:
        """Instants at which edges take effect and end."""
        found = set()
        for edge in edges:
            start = self._view.start(edge)
            if start is not None:
                found.add(start)
                if edge.until is not None:
                    found.add(edge.until)
        return found

    def activity(self, node: Node) -> Iterator[datetime]:
        """When the document got a new revision or relation."""
        for revision in node.revisions:
            yield revision.facts.effective_at
        for kind in values.TYPES:
            for edges in (self._view.incoming(node.document_id, kind), self._view.outgoing(node.document_id, kind)):
                for edge in edges:
                    start = self._view.start(edge)
                    if start is not None:
                        yield start


class Held:
    """Relations that are in effect. Remembers their order, so it serves one state of the graph only."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._by_start: dict[tuple[str, str, bool], list[tuple[datetime, Edge]]] = {}

    def to(self, document_id: str, kind: str, moment: datetime) -> Iterator[Edge]:
        """Edges of a type to a document that are in effect, the earliest first."""
        return self._in_effect(document_id, kind, moment, incoming=True)

    def of(self, document_id: str, kind: str, moment: datetime) -> Iterator[Edge]:
        """Edges of a type from a document that are in effect, the earliest first."""
        return self._in_effect(document_id, kind, moment, incoming=False)

    def _in_effect(self, document_id: str, kind: str, moment: datetime, *, incoming: bool) -> Iterator[Edge]:
        key = (document_id, kind, incoming)
        if key not in self._by_start:
            edges = self._view.incoming(document_id, kind) if incoming else self._view.outgoing(document_id, kind)
            starts = [(start, edge) for edge in edges if (start := self._view.start(edge)) is not None]
            self._by_start[key] = sorted(starts, key=lambda pair: (pair[0], pair[1].source, pair[1].target))
        for start, edge in self._by_start[key]:
            if start > moment:
                return
            if edge.until is None or moment < edge.until:
                yield edge
