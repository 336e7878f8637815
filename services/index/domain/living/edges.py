"""Relations by their ends, and by who states them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from services.index.domain.living import values
from services.index.domain.living.aliases import Aliases
from services.index.domain.living.nodes import Node, Revision
from services.index.domain.living.references import Reference
from services.index.domain.living.values import Edge, Statement

StatementKey: TypeAlias = tuple[str, str, str]
Owner: TypeAlias = str | StatementKey
_EVERY = (*values.TYPES, values.DEPRECATES)
_STATEFUL = (values.SUPERSEDES, values.CONTRADICTS, values.IS_VERSION_OF, values.DEPRECATES, values.ELABORATES)
_Ends: TypeAlias = dict[str, dict[str, tuple[Edge, ...]]]


class Edges:
    """All relations of a crate. An owner is a document that states edges itself, or the key of a statement."""

    def __init__(self) -> None:
        self._owned: dict[Owner, tuple[Edge, ...]] = {}
        self._in: _Ends = {}
        self._out: _Ends = {}

    def incoming(self, document_id: str, kind: str) -> tuple[Edge, ...]:
        """Edges of a type to a document."""
        held = self._in.get(document_id)
        return held.get(kind, ()) if held else ()

    def outgoing(self, document_id: str, kind: str) -> tuple[Edge, ...]:
        """Edges of a type from a document."""
        held = self._out.get(document_id)
        return held.get(kind, ()) if held else ()

    def owned(self, owner: Owner) -> tuple[Edge, ...]:
        """What an owner states, waiting ones included."""
        return self._owned.get(owner, ())

    def replace(self, owner: Owner, edges: tuple[Edge, ...]) -> list[Edge]:
        """Let an owner state other edges.

        Args:
            owner: Who states them.
            edges: All of its edges.

        Returns:
            Those that came or went.
        """
        before = self._owned.pop(owner, ())
        if edges:
            self._owned[owner] = edges
        had, has = {_content(edge) for edge in before}, {_content(edge) for edge in edges}
        for edge in before:
            _drop(self._in, edge.target, edge)
            _drop(self._out, edge.source, edge)
        for edge in edges:
            _add(self._in, edge.target, edge)
            _add(self._out, edge.source, edge)
        return [edge for edge in (*before, *edges) if (_content(edge) in had) != (_content(edge) in has)]

    def ends(self, kind: str) -> list[str]:
        """Documents that edges of a type start from."""
        return [document_id for document_id, held in self._out.items() if kind in held]


def declared(statement: Statement) -> tuple[Edge, ...]:
    """The edge that a statement makes; none when it is taken back or leads nowhere."""
    if statement.withdrawn or statement.source_id == statement.target_id:
        return ()
    return (
        Edge(
            source=statement.source_id,
            type=statement.type,
            target=statement.target_id,
            since=statement.effective_at,
            confidence_ppm=statement.confidence_ppm,
            declared=True,
            position=statement.position,
        ),
    )


def extracted(node: Node, aliases: Aliases) -> tuple[Edge, ...]:
    """The edges that a document states itself, each for as long as one of its revisions shows and says so.

    Args:
        node: The document.
        aliases: Who answers to which name.

    Returns:
        By revision, in its order and by time; one that leads to no known document has an empty end.
    """
    return tuple(
        edge
        for revision in node.revisions
        if revision.shows
        for reference in revision.reading.references
        for edge in _stated(node, revision, reference, aliases)
    )


def _stated(node: Node, revision: Revision, reference: Reference, aliases: Aliases) -> Iterator[Edge]:
    """The edges of one reference: one for each document that it leads to in the course of time."""
    one = node.document_id
    for answer in aliases.resolve(reference.tiers, one, revision.facts.effective_at, revision.until):
        other = answer.document_id
        if other == one or (not other and reference.type == values.DEPRECATES):
            continue
        source, target = (other, one) if reference.inward else (one, other)
        yield Edge(
            source=source,
            type=reference.type,
            target=target,
            since=answer.start,
            until=answer.until,
            position=revision.facts.position,
            reference=reference.text,
        )


def neighbours(edges: Edges, nodes: Mapping[str, Node], document_id: str, *, every: bool) -> Iterator[str]:
    """Documents whose state may depend on one, or the other way round.

    Args:
        edges: All relations.
        nodes: Documents by id.
        document_id: The one.
        every: Relations of every type count, since a crate's windows look at them.

    Yields:
        Document ids; empty ones and repeats among them.
    """
    for kind in _EVERY if every else _STATEFUL:
        for edge in edges.incoming(document_id, kind):
            if every or kind != values.ELABORATES or _erratum(nodes, edge.source):
                yield edge.source
        for edge in edges.outgoing(document_id, kind):
            if every or kind != values.ELABORATES or _erratum(nodes, document_id):
                yield edge.target


def _erratum(nodes: Mapping[str, Node], document_id: str) -> bool:
    node = nodes.get(document_id)
    return node is not None and any(revision.reading.erratum for revision in node.revisions)


def _content(edge: Edge) -> tuple[object, ...]:
    return (
        edge.source,
        edge.type,
        edge.target,
        edge.since,
        edge.until,
        edge.confidence_ppm,
        edge.declared,
        edge.position,
        edge.reference,
    )


def _add(ends: _Ends, document_id: str, edge: Edge) -> None:
    if document_id:
        held = ends.setdefault(document_id, {})
        held[edge.type] = (*held.get(edge.type, ()), edge)


def _drop(ends: _Ends, document_id: str, edge: Edge) -> None:
    if document_id:
        held = ends[document_id]
        left = tuple(other for other in held[edge.type] if other is not edge)
        if left:
            held[edge.type] = left
        else:
            del held[edge.type]
            if not held:
                del ends[document_id]
