"""The state machine: which state a revision is in at an instant, the first matching rule wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Protocol

from services.index.domain.living import values
from services.index.domain.living.cycles import reach
from services.index.domain.living.nodes import Node, Revision
from services.index.domain.living.values import Edge, Rules, Span, State, Timeline, Verdict
from services.index.domain.living.versions import newer, order

ACTIVE = Verdict(State.ACTIVE, "default")
_NO_WINDOW = values.Window()
_LAST = datetime.max.replace(tzinfo=UTC)


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


class Verdicts:
    """Decides states. Remembers what it worked out, so it serves one state of the graph only."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._force_times: dict[str, frozenset[datetime]] = {}

    def timeline(self, node: Node, revision: Revision) -> Timeline:
        """Compute the timeline of a revision.

        Args:
            node: Its document.
            revision: The revision.

        Returns:
            Its states by time, from its effective time on.
        """
        facts, reading = revision.facts, revision.reading
        later = {moment for moment in self._times(node) if moment > facts.effective_at}
        spans: list[Span] = []
        for moment in (facts.effective_at, *sorted(later)):
            verdict = self._verdict(node, revision, moment)
            if not spans or spans[-1].verdict != verdict:
                spans.append(Span(moment, verdict))
        return Timeline(
            document_id=facts.document_id,
            revision=facts.revision,
            position=facts.position,
            effective_at=facts.effective_at,
            family=reading.version.family,
            version=reading.version.version,
            not_in_force_yet=reading.word is not None and reading.word[1].draft,
            spans=tuple(spans),
        )

    def holds(self, edge: Edge, moment: datetime) -> bool:
        """Whether an edge is in effect at an instant."""
        if edge.until is not None and edge.until <= moment:
            return False
        start = self._view.start(edge)
        return start is not None and start <= moment

    def _verdict(self, node: Node, revision: Revision, moment: datetime) -> Verdict:
        return (
            self._out_of_force(node, revision, moment)
            or self._by_series(node, revision, moment)
            or _by_word(revision, State.DEPRECATED)
            or self._contested(node, moment)
            or self._stale(node, revision, moment)
            or _by_word(revision, State.DORMANT)
            or self._quiet(node, revision, moment, dormant=True)
            or _by_word(revision, State.ACTIVE)
            or ACTIVE
        )

    # ---- 1 and 2: deprecated by an act, superseded

    def _out_of_force(self, node: Node, revision: Revision, moment: datetime) -> Verdict | None:
        return (
            self._act(node, revision, moment)
            or _next_revision(revision, moment)
            or self._superseded(node, moment)
            or self._superseded_by_word(node, revision, moment)
        )

    def _act(self, node: Node, revision: Revision, moment: datetime) -> Verdict | None:
        reading = revision.reading
        for position, at in node.retirements:
            if position > revision.facts.position and at <= moment:
                return Verdict(State.DEPRECATED, values.RETIRED)
        withdrawn = reading.withdrawn_at
        if withdrawn is not None and withdrawn <= moment and not self._replaced_on(node, withdrawn, moment):
            return Verdict(State.DEPRECATED, "withdrawn", detail=reading.withdrawn_detail)
        if reading.notice:
            return Verdict(State.DEPRECATED, "notice", detail=reading.notice)
        for edge in self._holding(self._view.incoming(node.document_id, values.DEPRECATES), moment):
            return Verdict(State.DEPRECATED, "named_by_notice", other=edge.source)
        return self._objection(node, moment)

    def _replaced_on(self, node: Node, withdrawn: datetime, moment: datetime) -> bool:
        """Whether a withdrawal only carries out a replacement: another document supersedes it from that day on."""
        for edge in self._holding(self._view.incoming(node.document_id, values.SUPERSEDES), moment):
            start = self._view.start(edge)
            if start is not None and start.date() == withdrawn.date():
                return True
        return False

    def _objection(self, node: Node, moment: datetime) -> Verdict | None:
        """An objection or erratum has done its work once others superseded all that it was about."""
        one = node.document_id
        shown = node.shown(moment)
        about = {edge.target: "objection" for edge in self._holding(self._out(one, values.CONTRADICTS), moment)}
        for target in [target for target in about if self._contradicts(target, one, moment)]:
            del about[target]
        if shown is not None and shown.reading.erratum:
            about |= {edge.target: "erratum" for edge in self._holding(self._out(one, values.ELABORATES), moment)}
        for edge in self._holding(self._out(one, values.SUPERSEDES), moment):
            about.pop(edge.target, None)
        if not about or not all(self._is_superseded(target, moment) for target in about):
            return None
        target = min(about)
        return Verdict(State.DEPRECATED, about[target], other=target)

    def _contradicts(self, source: str, target: str, moment: datetime) -> bool:
        return any(edge.target == target for edge in self._holding(self._out(source, values.CONTRADICTS), moment))

    def _is_superseded(self, document_id: str, moment: datetime) -> bool:
        node = self._view.nodes.get(document_id)
        shown = node.shown(moment) if node else None
        if node is None or shown is None:
            return False
        return bool(self._superseded(node, moment) or self._superseded_by_word(node, shown, moment))

    def _superseded(self, node: Node, moment: datetime) -> Verdict | None:
        one = node.document_id
        for edge in self._holding(self._view.incoming(one, values.SUPERSEDES), moment):
            if not self._reaches(one, edge.source, moment):
                return Verdict(State.SUPERSEDED, "supersedes", other=edge.source)
        beaten = set(self._beaten(one, moment))
        for edge in self._holding(self._view.incoming(one, values.IS_VERSION_OF), moment):
            if edge.source not in beaten and self._is_newer(edge.source, node, moment, by_edge=True):
                return Verdict(State.SUPERSEDED, "is_version_of", other=edge.source)
        for edge in self._holding(self._out(one, values.IS_VERSION_OF), moment):
            if edge.target not in beaten and self._is_newer(edge.target, node, moment, by_edge=False):
                return Verdict(State.SUPERSEDED, "is_version_of", other=edge.target)
        return None

    def _beaten(self, one: str, moment: datetime) -> Iterator[str]:
        return (edge.target for edge in self._holding(self._out(one, values.SUPERSEDES), moment))

    def _is_newer(self, other: str, node: Node, moment: datetime, *, by_edge: bool) -> bool:
        """Whether another version in force is the newer one: by number, else the edge points from new to old."""
        against = self._view.nodes.get(other)
        if against is None or against.live_from is None or against.live_from > moment:
            return False
        mine, theirs = node.shown(moment), against.shown(moment)
        if mine is None or theirs is None:
            return False
        compared = newer(theirs.reading.version.version, mine.reading.version.version)
        if compared:
            return compared > 0
        return by_edge and (theirs.facts.effective_at, theirs.facts.position) > (
            mine.facts.effective_at,
            mine.facts.position,
        )

    def _superseded_by_word(self, node: Node, revision: Revision, moment: datetime) -> Verdict | None:
        """A word says that, not when: its own date does, else the edge that it speaks of."""
        reading = revision.reading
        if reading.superseded_at is not None:
            if reading.superseded_at <= moment:
                return Verdict(State.SUPERSEDED, "superseded_on", detail=reading.status)
            return None
        verdict = _by_word(revision, State.SUPERSEDED)
        if verdict is None:
            return None
        edges = self._view.incoming(node.document_id, values.SUPERSEDES)
        starts = [start for edge in edges if (start := self._view.start(edge)) is not None]
        return verdict if min(starts, default=moment) <= moment else None

    def _by_series(self, node: Node, revision: Revision, moment: datetime) -> Verdict | None:
        mine = revision.reading.version
        if not self._is_superseding(mine.family):
            return None
        best: tuple[object, ...] | None = None
        leader: Revision | None = None
        for other in self._view.family(mine.family):
            against = self._view.nodes[other]
            shown = against.shown(moment)
            if shown is None or shown.reading.version.family.casefold() != mine.family.casefold():
                continue
            if against.live_from is None or against.live_from > moment:
                continue
            if self._out_of_force(against, shown, moment) or _by_word(shown, State.DEPRECATED):
                continue
            rank = (order(shown.reading.version.version), shown.facts.effective_at, other)
            if best is None or rank > best:
                best, leader = rank, shown
        if leader is None or leader.facts.document_id == node.document_id:
            return None
        if newer(leader.reading.version.version, mine.version) <= 0:
            return None
        return Verdict(State.SUPERSEDED, "series", other=leader.facts.document_id)

    def _is_superseding(self, family: str) -> bool:
        series = self._view.rules.superseding_series
        return bool(family) and bool(series) and ("*" in series or family in series)

    # ---- 4 to 6

    def _contested(self, node: Node, moment: datetime) -> Verdict | None:
        one = node.document_id
        for other in sorted(self._supersedes_within(one, one, moment, sources=True)):
            if self._reaches(one, other, moment):
                return Verdict(State.CONTESTED, "supersedes_cycle", other=other)
        for edge in self._holding(self._view.incoming(one, values.CONTRADICTS), moment):
            if self._stands(edge.source, moment):
                return Verdict(State.CONTESTED, "contradicts", other=edge.source)
        return None

    def _stands(self, document_id: str, moment: datetime) -> bool:
        """Whether a document is effective and neither superseded nor deprecated."""
        node = self._view.nodes.get(document_id)
        shown = node.shown(moment) if node else None
        if node is None or shown is None:
            return False
        return not (
            self._out_of_force(node, shown, moment)
            or self._by_series(node, shown, moment)
            or _by_word(shown, State.DEPRECATED)
        )

    def _stale(self, node: Node, revision: Revision, moment: datetime) -> Verdict | None:
        due = min((entry for entry in revision.reading.stale_at if entry[0] <= moment), default=None)
        if due is not None:
            return Verdict(State.STALE, due[1], detail=due[2])
        return self._quiet(node, revision, moment, dormant=False)

    def _quiet(self, node: Node, revision: Revision, moment: datetime, *, dormant: bool) -> Verdict | None:
        days = self._days(revision, dormant=dormant)
        if not days:
            return None
        last = max((at for at in self._activity(node) if at <= moment), default=moment)
        if _later(last, days) > moment:
            return None
        return Verdict(State.DORMANT if dormant else State.STALE, "window", detail=f"{days} days")

    def _days(self, revision: Revision, *, dormant: bool) -> int:
        windows = self._view.rules.windows
        window = windows.get(revision.reading.document_class) or windows.get("") or _NO_WINDOW
        return window.dormant_after_days if dormant else window.stale_after_days

    def _activity(self, node: Node) -> Iterator[datetime]:
        """When the document got a new revision or relation."""
        for revision in node.revisions:
            yield revision.facts.effective_at
        for kind in values.TYPES:
            for edges in (self._view.incoming(node.document_id, kind), self._out(node.document_id, kind)):
                for edge in edges:
                    start = self._view.start(edge)
                    if start is not None:
                        yield start

    # ---- cycles and edges

    def _reaches(self, one: str, other: str, moment: datetime) -> bool:
        """Whether one supersedes the other, directly or by way of others of the same circle."""
        if other not in self._view.cycle(one):
            return False
        return other in reach(one, lambda step: self._supersedes_within(one, step, moment, sources=False))

    def _supersedes_within(self, circle: str, one: str, moment: datetime, *, sources: bool) -> Iterator[str]:
        group = self._view.cycle(circle)
        edges = self._view.incoming(one, values.SUPERSEDES) if sources else self._out(one, values.SUPERSEDES)
        for edge in edges:
            other = edge.source if sources else edge.target
            if other in group and self.holds(edge, moment):
                yield other

    def _out(self, document_id: str, kind: str) -> tuple[Edge, ...]:
        return self._view.outgoing(document_id, kind)

    def _holding(self, edges: tuple[Edge, ...], moment: datetime) -> list[Edge]:
        """Edges in effect, the earliest first."""
        if not edges:
            return []
        held = [(start, edge) for edge in edges if (start := self._view.start(edge)) is not None and start <= moment]
        held = [pair for pair in held if pair[1].until is None or moment < pair[1].until]
        return [edge for _, edge in sorted(held, key=lambda pair: (pair[0], pair[1].source, pair[1].target))]

    # ---- instants at which a state may change

    def _times(self, node: Node) -> frozenset[datetime]:
        one = node.document_id
        found = set(self._force_moments(one))
        for edge in self._view.incoming(one, values.CONTRADICTS):
            found |= self._edge_times((edge,))
            found |= self._force_moments(edge.source)
        for revision in node.revisions:
            if self._is_superseding(revision.reading.version.family):
                for other in self._view.family(revision.reading.version.family):
                    found |= self._force_moments(other)
            for days in (self._days(revision, dormant=False), self._days(revision, dormant=True)):
                if days:
                    activity = set(self._activity(node))
                    found |= activity | {_later(at, days) for at in activity}
        return frozenset(found)

    def _force_moments(self, one: str) -> frozenset[datetime]:
        """Instants at which a document may come into or go out of force."""
        held = self._force_times.get(one)
        if held is not None:
            return held
        found = set(self._superseded_times(one)) | self._edge_times(self._view.incoming(one, values.DEPRECATES))
        for kind in (values.CONTRADICTS, values.ELABORATES):
            for edge in self._out(one, kind):
                found |= self._edge_times((edge,)) | self._superseded_times(edge.target)
        found |= self._edge_times(self._view.incoming(one, values.CONTRADICTS))
        for other in self._view.cycle(one):
            found |= self._edge_times(self._out(other, values.SUPERSEDES))
        self._force_times[one] = frozenset(found)
        return self._force_times[one]

    def _superseded_times(self, one: str) -> set[datetime]:
        node = self._view.nodes.get(one)
        found = set(node.times()) if node else set()
        found |= self._edge_times(self._view.incoming(one, values.SUPERSEDES))
        found |= self._edge_times(self._out(one, values.SUPERSEDES))
        versions = (*self._view.incoming(one, values.IS_VERSION_OF), *self._out(one, values.IS_VERSION_OF))
        found |= self._edge_times(versions)
        for edge in versions:
            other = self._view.nodes.get(edge.source if edge.target == one else edge.target)
            if other is not None:
                found |= {revision.facts.effective_at for revision in other.revisions}
        for member in self._view.cycle(one):
            found |= self._edge_times(self._out(member, values.SUPERSEDES))
        return found

    def _edge_times(self, edges: tuple[Edge, ...]) -> set[datetime]:
        found = set()
        for edge in edges:
            start = self._view.start(edge)
            if start is not None:
                found.add(start)
                if edge.until is not None:
                    found.add(edge.until)
        return found


def _next_revision(revision: Revision, moment: datetime) -> Verdict | None:
    if revision.until is not None and revision.until <= moment:
        return Verdict(State.SUPERSEDED, "next_revision")
    return None


def _by_word(revision: Revision, state: State) -> Verdict | None:
    word = revision.reading.word
    if word is None or word[1].state is not state:
        return None
    return Verdict(state, "status_word", detail=revision.reading.status or word[0])


def _later(moment: datetime, days: int) -> datetime:
    """Some days later, at most the calendar's end."""
    return moment + timedelta(days=days) if days <= (_LAST - moment).days else _LAST
