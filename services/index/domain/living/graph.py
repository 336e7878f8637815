"""All that is known of a crate's documents, and the timelines that follow from it.

The timelines are a function of the set of facts: neither their order nor how they were cut into batches matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from services.index.domain.living import edges as relations
from services.index.domain.living import values
from services.index.domain.living.aliases import Aliases
from services.index.domain.living.cycles import Cycles
from services.index.domain.living.edges import Edges, StatementKey
from services.index.domain.living.nodes import Node, node
from services.index.domain.living.reading import Reading, read
from services.index.domain.living.values import (
    Edge,
    Erased,
    Fact,
    Retired,
    RevisionFacts,
    RevisionKey,
    Rules,
    Statement,
    Timeline,
)
from services.index.domain.living.verdicts import Verdicts

# How far a change may travel: who superseded what was objected to decides on the objection, and that on what else it
# contests.
_DEPTH = 3
_MANY = 64


@dataclass(slots=True)
class _Touched:
    """What a batch of facts touches."""

    documents: set[str] = field(default_factory=set)
    statements: set[StatementKey] = field(default_factory=set)
    rules: bool = False


class Graph:
    """Living states of one crate, kept up to date fact by fact."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.rules = Rules()
        self.timelines: dict[RevisionKey, Timeline] = {}
        self.replaced: dict[RevisionKey, Timeline] = {}
        """Timelines that the last call of `apply` replaced or dropped."""
        self._revisions: dict[str, dict[int, RevisionFacts]] = {}
        self._readings: dict[RevisionKey, Reading] = {}
        self._retired: dict[str, set[tuple[int, datetime]]] = {}
        self._erased: dict[str, int] = {}
        self._statements: dict[StatementKey, Statement] = {}
        self._aliases = Aliases()
        self._edges = Edges()
        self._families: dict[str, set[str]] = {}
        self._cycles = Cycles(
            targets=lambda one: (edge.target for edge in self.outgoing(one, values.SUPERSEDES) if edge.target),
            sources=lambda one: (edge.source for edge in self.incoming(one, values.SUPERSEDES) if edge.source),
        )

    # ---- what the rules and the walk see

    def incoming(self, document_id: str, kind: str) -> tuple[Edge, ...]:
        """Edges of a type to a document."""
        return self._edges.incoming(document_id, kind)

    def outgoing(self, document_id: str, kind: str) -> tuple[Edge, ...]:
        """Edges of a type from a document."""
        return self._edges.outgoing(document_id, kind)

    def waiting(self, document_id: str) -> tuple[Edge, ...]:
        """Edges that a document states and whose other end is no known document."""
        return tuple(edge for edge in self._edges.owned(document_id) if not (edge.source and edge.target))

    def cycle(self, document_id: str) -> frozenset[str]:
        """Documents that one is in a circle of supersedes edges with, at some time."""
        return self._cycles.group(document_id)

    def family(self, name: str) -> frozenset[str]:
        """Documents that belong to a version series at some time; any case of its name."""
        return frozenset(self._families.get(name.casefold(), ()))

    def start(self, edge: Edge) -> datetime | None:
        """When an edge takes effect; None: never, since its source isn't known or never came into force."""
        source = self.nodes.get(edge.source)
        if source is None or source.live_from is None:
            return None
        if edge.since is None or edge.since < source.live_from:
            return source.live_from
        return edge.since

    # ---- facts in, timelines out

    def apply(self, facts: Iterable[Fact]) -> dict[RevisionKey, Timeline | None]:
        """Take facts in.

        Args:
            facts: In any order; one that is known already changes nothing.

        Returns:
            The revisions whose timeline changed, with the new one; None for a revision that is gone.
        """
        touched = _Touched()
        for fact in facts:
            self._take(fact, touched)
        if touched.rules:
            self._readings.clear()
            touched.documents |= self._revisions.keys()
        lead_elsewhere: set[str] = set()
        left = {name for document_id in touched.documents for name in _families(self.nodes.get(document_id))}
        for document_id in touched.documents:
            lead_elsewhere |= self._rebuild(document_id)
        changed = self._relate(touched.documents | lead_elsewhere, touched.statements)
        seeds = set(touched.documents)
        if self.rules.superseding_series:
            seeds |= {member for name in left for member in self._families.get(name, ())}
        for edge in changed:
            seeds |= {edge.source, edge.target}
        seeds |= self._circle(changed)
        return self._settle(self._affected(seeds), touched.documents)

    def _take(self, fact: Fact, touched: _Touched) -> None:
        match fact:
            case RevisionFacts():
                held = self._revisions.setdefault(fact.document_id, {})
                known = held.get(fact.revision)
                if fact.revision > self._erased.get(fact.document_id, 0) and (
                    known is None or fact.position < known.position
                ):
                    held[fact.revision] = fact
                    self._readings.pop((fact.document_id, fact.revision), None)
                    touched.documents.add(fact.document_id)
            case Statement():
                key = (fact.source_id, fact.type, fact.target_id)
                last = self._statements.get(key)
                if last is None or fact.position > last.position:
                    self._statements[key] = fact
                    touched.statements.add(key)
            case Retired():
                self._retired.setdefault(fact.document_id, set()).add((fact.position, fact.at))
                touched.documents.add(fact.document_id)
            case Erased():
                self._erase(fact)
                touched.documents.add(fact.document_id)
            case Rules():
                if fact.position > self.rules.position:
                    touched.rules = touched.rules or replace(fact, position=0) != replace(self.rules, position=0)
                    self.rules = fact

    def _erase(self, fact: Erased) -> None:
        gone = max(fact.revision, self._erased.get(fact.document_id, 0))
        self._erased[fact.document_id] = gone
        held = self._revisions.get(fact.document_id, {})
        for revision in [revision for revision in held if revision <= gone]:
            del held[revision]
            self._readings.pop((fact.document_id, revision), None)

    def _rebuild(self, document_id: str) -> set[str]:
        """Put a document together again.

        Returns:
            Documents whose references may lead elsewhere now.
        """
        before = self.nodes.pop(document_id, None)
        for name in _families(before):
            self._families[name].discard(document_id)
            if not self._families[name]:
                del self._families[name]
        held = self._revisions.get(document_id)
        if not held:
            self._revisions.pop(document_id, None)
            self._aliases.seek(document_id, ())
            return self._aliases.answer(document_id, {})
        readings = []
        for facts in held.values():
            key = (document_id, facts.revision)
            if key not in self._readings:
                self._readings[key] = read(facts, self.rules)
            readings.append((facts, self._readings[key]))
        made = self.nodes[document_id] = node(document_id, readings, self._retired.get(document_id, ()))
        for name in _families(made):
            self._families.setdefault(name, set()).add(document_id)
        names = (
            name
            for revision in made.revisions
            for reference in revision.reading.references
            for tier in reference.tiers
            for name in tier
        )
        self._aliases.seek(document_id, names)
        return self._aliases.answer(document_id, made.names())

    def _relate(self, documents: Iterable[str], statements: Iterable[StatementKey]) -> list[Edge]:
        """Work out edges again; those that came or went."""
        changed: list[Edge] = []
        for document_id in documents:
            made = self.nodes.get(document_id)
            own = relations.extracted(made, self._aliases) if made else ()
            changed += self._edges.replace(document_id, own)
        for key in statements:
            changed += self._edges.replace(key, relations.declared(self._statements[key]))
        return changed

    def _circle(self, changed: list[Edge]) -> set[str]:
        pairs = {(edge.source, edge.target) for edge in changed if edge.type == values.SUPERSEDES}
        pairs = {pair for pair in pairs if all(pair)}
        if len(pairs) <= _MANY:
            return set(self._cycles.update(pairs))
        ends = {end for pair in pairs for end in pair}
        before = {one for end in ends for one in self._cycles.group(end)}
        self._cycles.rebuild(self._edges.ends(values.SUPERSEDES))
        return before | {one for end in ends for one in self._cycles.group(end)}

    def _affected(self, seeds: set[str]) -> set[str]:
        """Documents whose state may depend on others."""
        found = set(seeds)
        edge = found
        for _ in range(_DEPTH + bool(self.rules.superseding_series)):
            reached = {other for one in edge for other in self._neighbours(one) if other}
            reached |= self._rivals(edge)
            for group in {self._cycles.group(one) for one in edge}:
                reached |= group
            edge = reached - found
            found |= edge
        return found

    def _neighbours(self, document_id: str) -> Iterator[str]:
        return relations.neighbours(self._edges, self.nodes, document_id, every=bool(self.rules.windows))

    def _rivals(self, documents: set[str]) -> set[str]:
        """Members of the superseding series that documents belong to."""
        if not self.rules.superseding_series:
            return set()
        names = {name for document_id in documents for name in _families(self.nodes.get(document_id))}
        return {member for name in names for member in self._families.get(name, ())}

    def _settle(self, affected: Iterable[str], touched: set[str]) -> dict[RevisionKey, Timeline | None]:
        verdicts = Verdicts(self)
        self.replaced = {}
        changes: dict[RevisionKey, Timeline | None] = {}
        for document_id in affected:
            made = self.nodes.get(document_id)
            if made is None:
                continue
            for revision in made.revisions:
                timeline = verdicts.timeline(made, revision)
                key = (document_id, revision.facts.revision)
                if self.timelines.get(key) != timeline:
                    self._drop(key)
                    self.timelines[key] = changes[key] = timeline
        for document_id in touched & self._erased.keys():
            for gone in range(1, self._erased[document_id] + 1):
                if self._drop((document_id, gone)):
                    changes[document_id, gone] = None
        return changes

    def _drop(self, key: RevisionKey) -> bool:
        held = self.timelines.pop(key, None)
        if held is not None:
            self.replaced[key] = held
        return held is not None


def scratch(facts: Iterable[Fact]) -> Mapping[RevisionKey, Timeline]:
    """The timelines that a set of facts gives, computed at once."""
    graph = Graph()
    graph.apply(facts)
    return graph.timelines


def _families(made: Node | None) -> set[str]:
    if made is None:
        return set()
    return {one.reading.version.family.casefold() for one in made.revisions if one.reading.version.family}
