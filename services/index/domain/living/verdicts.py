"""The state machine: which state a revision is in at an instant, the first matching rule wins."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from services.index.domain.living import values
from services.index.domain.living.cycles import reach
from services.index.domain.living.moments import Held, Moments, View
from services.index.domain.living.nodes import Node, Revision
from services.index.domain.living.series import Member, Series, Stretch, Succession
from services.index.domain.living.values import Edge, Span, State, Timeline, Verdict
from services.index.domain.living.versions import newer

ACTIVE = Verdict(State.ACTIVE, "default")
_NO_WINDOW = values.Window()
_LAST = datetime.max.replace(tzinfo=UTC)


class Verdicts:
    """Decides states. Remembers what it worked out, so it serves one state of the graph only."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._policy = frozenset(name.casefold() for name in view.rules.superseding_series)
        self._moments = Moments(view)
        self._held = Held(view)
        self._series: dict[str, Series] = {}
        self._successions: dict[values.RevisionKey, tuple[Succession, ...]] = {}
        self._turns: dict[str, frozenset[datetime]] = {}

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
            or _superseded_by_word(revision, moment)
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
        for edge in self._held.to(node.document_id, values.DEPRECATES, moment):
            return Verdict(State.DEPRECATED, "named_by_notice", other=edge.source)
        return self._objection(node, moment)

    def _replaced_on(self, node: Node, withdrawn: datetime, moment: datetime) -> bool:
        """Whether a withdrawal only carries out a replacement: another document supersedes it from that day on."""
        for edge in self._held.to(node.document_id, values.SUPERSEDES, moment):
            start = self._view.start(edge)
            if start is not None and start.date() == withdrawn.date():
                return True
        return False

    def _objection(self, node: Node, moment: datetime) -> Verdict | None:
        """An objection or erratum has done its work once others superseded all that it was about."""
        one = node.document_id
        if not (self._view.outgoing(one, values.CONTRADICTS) or self._view.outgoing(one, values.ELABORATES)):
            return None
        beaten = set(self._beaten(one, moment))
        about: dict[str, str] = {}
        for target, what in self._about(node, moment):
            if target in beaten:
                continue
            if not self._is_superseded(target, moment):
                return None
            about[target] = what
        if not about:
            return None
        target = min(about)
        return Verdict(State.DEPRECATED, about[target], other=target)

    def _about(self, node: Node, moment: datetime) -> Iterator[tuple[str, str]]:
        """What a document corrects, as an erratum, or objects to; two that object to one another are no objections."""
        one, shown = node.document_id, node.shown(moment)
        errata = set()
        if shown is not None and shown.reading.erratum:
            errata = {edge.target for edge in self._held.of(one, values.ELABORATES, moment)}
            yield from ((target, "erratum") for target in errata)
        for edge in self._held.of(one, values.CONTRADICTS, moment):
            if edge.target not in errata and not self._contradicts(edge.target, one, moment):
                yield edge.target, "objection"

    def _contradicts(self, source: str, target: str, moment: datetime) -> bool:
        return any(edge.target == target for edge in self._held.of(source, values.CONTRADICTS, moment))

    def _is_superseded(self, document_id: str, moment: datetime) -> bool:
        node = self._view.nodes.get(document_id)
        shown = node.shown(moment) if node else None
        if node is None or shown is None:
            return False
        return bool(self._superseded(node, moment) or _superseded_by_word(shown, moment))

    def _superseded(self, node: Node, moment: datetime) -> Verdict | None:
        one = node.document_id
        for edge in self._held.to(one, values.SUPERSEDES, moment):
            if not self._reaches(one, edge.source, moment):
                return Verdict(State.SUPERSEDED, "supersedes", other=edge.source)
        if self._view.incoming(one, values.IS_VERSION_OF) or self._view.outgoing(one, values.IS_VERSION_OF):
            return self._outdated(node, moment)
        return None

    def _outdated(self, node: Node, moment: datetime) -> Verdict | None:
        one = node.document_id
        beaten = set(self._beaten(one, moment))
        for edge in self._held.to(one, values.IS_VERSION_OF, moment):
            if edge.source not in beaten and self._is_newer(edge.source, node, moment, by_edge=True):
                return Verdict(State.SUPERSEDED, "is_version_of", other=edge.source)
        for edge in self._held.of(one, values.IS_VERSION_OF, moment):
            if edge.target not in beaten and self._is_newer(edge.target, node, moment, by_edge=False):
                return Verdict(State.SUPERSEDED, "is_version_of", other=edge.target)
        return None

    def _beaten(self, one: str, moment: datetime) -> Iterator[str]:
        return (edge.target for edge in self._held.of(one, values.SUPERSEDES, moment))

    def _is_newer(self, other: str, node: Node, moment: datetime, *, by_edge: bool) -> bool:
        """Whether another version in force is the newer one: by number, else the edge points from new to old."""
        against = self._view.nodes.get(other)
        mine, theirs = node.shown(moment), against.shown(moment) if against else None
        if against is None or mine is None or theirs is None:
            return False
        if against.live_from is None or against.live_from > moment:
            return False
        compared = newer(theirs.reading.version.version, mine.reading.version.version)
        if compared:
            return compared > 0
        return by_edge and (theirs.facts.effective_at, theirs.facts.position) > (
            mine.facts.effective_at,
            mine.facts.position,
        )

    # ---- 2, by a declared series policy

    def _by_series(self, node: Node, revision: Revision, moment: datetime) -> Verdict | None:
        for one in self._succeeded(node, revision):
            if one.start <= moment and (one.until is None or moment < one.until):
                return Verdict(State.SUPERSEDED, "series", other=one.other)
        return None

    def _succeeded(self, node: Node, revision: Revision) -> tuple[Succession, ...]:
        """When a newer version in force takes the place of a revision."""
        version = revision.reading.version
        if not self._is_superseding(version.family):
            return ()
        key = (node.document_id, revision.facts.revision)
        if key not in self._successions:
            series = self._series_of(version.family.casefold())
            self._successions[key] = series.successions(version.version, self._in_force(node, revision))
        return self._successions[key]

    def _series_of(self, family: str) -> Series:
        if family not in self._series:
            self._series[family] = Series(
                Member(document_id, revision.reading.version.version, self._leading(node, revision))
                for document_id in self._view.family(family)
                for node in (self._view.nodes[document_id],)
                for revision in node.revisions
                if revision.reading.version.family.casefold() == family
            )
        return self._series[family]

    def _leading(self, node: Node, revision: Revision) -> tuple[Stretch, ...]:
        """When a revision is in force such that it retires older versions."""
        live_from = node.live_from
        if live_from is None or _by_word(revision, State.DEPRECATED):
            return ()
        return tuple(
            (max(start, live_from), until)
            for start, until in self._in_force(node, revision)
            if until is None or live_from < until
        )

    def _in_force(self, node: Node, revision: Revision) -> tuple[Stretch, ...]:
        """When a revision shows and is neither deprecated by an act nor superseded, whatever its series says."""
        if not revision.shows:
            return ()
        begin, end = revision.facts.effective_at, revision.until
        moments = {begin, *self._moments.force(node.document_id)}
        inside = sorted(at for at in moments if begin <= at and (end is None or at < end))
        found: list[Stretch] = []
        for start, until in zip(inside, [*inside[1:], end], strict=True):
            if self._out_of_force(node, revision, start):
                continue
            if found and found[-1][1] == start:
                found[-1] = (found[-1][0], until)
            else:
                found.append((start, until))
        return tuple(found)

    def _is_superseding(self, family: str) -> bool:
        return bool(family) and bool(self._policy) and ("*" in self._policy or family.casefold() in self._policy)

    # ---- 4 to 6

    def _contested(self, node: Node, moment: datetime) -> Verdict | None:
        one = node.document_id
        # Whatever supersedes it and isn't itself superseded by it has decided before.
        other = min(self._supersedes_within(one, one, moment, sources=True), default="")
        if other:
            return Verdict(State.CONTESTED, "supersedes_cycle", other=other)
        for edge in self._held.to(one, values.CONTRADICTS, moment):
            if self._stands(edge.source, moment):
                return Verdict(State.CONTESTED, "contradicts", other=edge.source)
        return None

    def _stands(self, document_id: str, moment: datetime) -> bool:
        """Whether a document is effective and neither superseded nor deprecated."""
        node = self._view.nodes.get(document_id)
        shown = node.shown(moment) if node else None
        return (
            node is not None
            and shown is not None
            and not self._out_of_force(node, shown, moment)
            and not self._by_series(node, shown, moment)
            and not _by_word(shown, State.DEPRECATED)
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
        last = max((at for at in self._moments.activity(node) if at <= moment), default=moment)
        if _later(last, days) > moment:
            return None
        return Verdict(State.DORMANT if dormant else State.STALE, "window", detail=f"{days} days")

    def _days(self, revision: Revision, *, dormant: bool) -> int:
        windows = self._view.rules.windows
        window = windows.get(revision.reading.document_class) or windows.get("") or _NO_WINDOW
        return window.dormant_after_days if dormant else window.stale_after_days

    # ---- cycles and edges

    def _reaches(self, one: str, other: str, moment: datetime) -> bool:
        """Whether one supersedes the other, directly or by way of others of the same circle."""
        if other not in self._view.cycle(one):
            return False
        return other in reach(one, lambda step: self._supersedes_within(one, step, moment, sources=False))

    def _supersedes_within(self, circle: str, one: str, moment: datetime, *, sources: bool) -> Iterator[str]:
        group = self._view.cycle(circle)
        edges = self._view.incoming(one, values.SUPERSEDES) if sources else self._view.outgoing(one, values.SUPERSEDES)
        for edge in edges:
            other = edge.source if sources else edge.target
            if other in group and self.holds(edge, moment):
                yield other

    # ---- instants at which a state may change

    def _times(self, node: Node) -> frozenset[datetime]:
        one = node.document_id
        found = set(self._force_moments(one))
        for edge in self._view.incoming(one, values.CONTRADICTS):
            found |= self._moments.edges((edge,))
            found |= self._standing(edge.source)
        for revision in node.revisions:
            for days in (self._days(revision, dormant=False), self._days(revision, dormant=True)):
                if days:
                    activity = set(self._moments.activity(node))
                    found |= activity | {_later(at, days) for at in activity}
        return frozenset(found)

    def _standing(self, one: str) -> frozenset[datetime]:
        """Instants at which a document begins or ceases to stand against what it contradicts."""
        if one not in self._turns:
            turns, stood = set(), False
            for moment in sorted(self._force_moments(one)):
                stands = self._stands(one, moment)
                if stands != stood:
                    turns.add(moment)
                stood = stands
            self._turns[one] = frozenset(turns)
        return self._turns[one]

    def _force_moments(self, one: str) -> frozenset[datetime]:
        """Instants at which a document may come into or go out of force."""
        node = self._view.nodes.get(one)
        if node is None or not self._policy:
            return self._moments.force(one)
        bounds = {
            bound
            for revision in node.revisions
            for succession in self._succeeded(node, revision)
            for bound in (succession.start, succession.until)
            if bound is not None
        }
        return self._moments.force(one) | bounds


def _next_revision(revision: Revision, moment: datetime) -> Verdict | None:
    if revision.until is not None and revision.until <= moment:
        return Verdict(State.SUPERSEDED, "next_revision")
    return None


def _superseded_by_word(revision: Revision, moment: datetime) -> Verdict | None:
    """A word counts from its date; with none, as any word does, unless a header names who takes the place.

    Then the edge says when. What is known of that other document later on must not count before it, so for an edge
    that isn't in effect the word counts from when it was recorded.
    """
    facts, reading = revision.facts, revision.reading
    if reading.superseded_at is not None:
        if reading.superseded_at <= moment:
            return Verdict(State.SUPERSEDED, "superseded_on", detail=reading.status)
        return None
    if reading.names_successor and moment < facts.recorded_at:
        return None
    return _by_word(revision, State.SUPERSEDED)


def _by_word(revision: Revision, state: State) -> Verdict | None:
    word = revision.reading.word
    if word is None or word[1].state is not state:
        return None
    return Verdict(state, "status_word", detail=revision.reading.status or word[0])


def _later(moment: datetime, days: int) -> datetime:
    """Some days later, at most the calendar's end."""
    return moment + timedelta(days=days) if days <= (_LAST - moment).days else _LAST
