"""A document with its revisions in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from services.index.domain.living.reading import Reading
from services.index.domain.living.series import Stretch
from services.index.domain.living.values import RevisionFacts


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision in its document.

    Attributes:
        facts: As recorded.
        reading: What it says of itself.
        until: From when on a newer revision takes its place; None: never.
    """

    facts: RevisionFacts
    reading: Reading
    until: datetime | None

    @property
    def shows(self) -> bool:
        """Whether there is an instant that shows it."""
        return self.until is None or self.facts.effective_at < self.until


@dataclass(frozen=True, slots=True)
class Node:
    """A document.

    Attributes:
        document_id: Its id.
        revisions: By number.
        retirements: KNOWLEDGE position and instant of each.
        live_from: Since when it has been in force, or was for the first time; None: it never was.
    """

    document_id: str
    revisions: tuple[Revision, ...]
    retirements: tuple[tuple[int, datetime], ...]
    live_from: datetime | None

    @property
    def latest(self) -> Revision:
        """Its newest revision."""
        return self.revisions[-1]

    def names(self) -> dict[str, tuple[Stretch, ...]]:
        """Every name that it answers to, and when: for as long as the revision that shows has it."""
        found: dict[str, tuple[Stretch, ...]] = {}
        shown = sorted((one for one in self.revisions if one.shows), key=lambda one: one.facts.effective_at)
        for revision in shown:
            start, until = revision.facts.effective_at, revision.until
            stretches = ((start, until),)
            if not found:
                found = dict.fromkeys(revision.reading.aliases, stretches)
                continue
            for name in revision.reading.aliases:
                before = found.get(name)
                if before is None:
                    found[name] = stretches
                elif before[-1][1] == start:
                    found[name] = (*before[:-1], (before[-1][0], until))
                else:
                    found[name] = (*before, *stretches)
        return found

    def shown(self, moment: datetime) -> Revision | None:
        """The newest revision that is effective at an instant."""
        for revision in reversed(self.revisions):
            if revision.facts.effective_at <= moment:
                return revision
        return None

    def times(self) -> Iterator[datetime]:
        """Every instant at which the document alone may change its state."""
        for _, at in self.retirements:
            yield at
        for revision in self.revisions:
            yield revision.facts.effective_at
            if revision.until is not None:
                yield revision.until
            reading = revision.reading
            if reading.names_successor:
                yield revision.facts.recorded_at
            if reading.withdrawn_at is not None:
                yield reading.withdrawn_at
            if reading.superseded_at is not None:
                yield reading.superseded_at
            for moment, _, _ in reading.stale_at:
                yield moment


def node(
    document_id: str, revisions: Iterable[tuple[RevisionFacts, Reading]], retirements: Iterable[tuple[int, datetime]]
) -> Node:
    """Put a document together.

    Args:
        document_id: Its id.
        revisions: At least one, in any order.
        retirements: Position and instant of each, in any order.

    Returns:
        The document. An older revision gives way as soon as any newer one is effective.
    """
    chain: list[Revision] = []
    until: datetime | None = None
    for facts, reading in sorted(revisions, key=lambda pair: pair[0].revision, reverse=True):
        chain.append(Revision(facts, reading, until))
        until = facts.effective_at if until is None else min(until, facts.effective_at)
    live = [one.facts.effective_at for one in chain if one.shows and one.reading.came_into_force]
    return Node(document_id, tuple(reversed(chain)), tuple(sorted(retirements)), min(live, default=None))
