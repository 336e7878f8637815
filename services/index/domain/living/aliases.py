"""Which document answers to a name and when, and who waits for an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from services.index.domain.living.references import Tiers
from services.index.domain.living.series import Stretch

Names: TypeAlias = Mapping[str, tuple[Stretch, ...]]
"""Names and when each is answered to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Who answers to a reference for a stretch of time.

    Attributes:
        start: From when on.
        until: When it ends, excluded; None: never.
        document_id: Empty when none answers, or several others do.
    """

    start: datetime
    until: datetime | None
    document_id: str


class Aliases:
    """Names of documents, and the names that references of documents look for."""

    def __init__(self) -> None:
        self._owners: dict[str, set[str]] = {}
        self._names: dict[str, Names] = {}
        self._seekers: dict[str, set[str]] = {}
        self._sought: dict[str, frozenset[str]] = {}

    def answer(self, document_id: str, names: Names) -> set[str]:
        """Say which names a document answers to from now on.

        Args:
            document_id: Document.
            names: All of them; none for a document that isn't known any more.

        Returns:
            Documents whose references may lead elsewhere now.
        """
        before = self._names.pop(document_id, {})
        if names:
            self._names[document_id] = names
        _move(self._owners, document_id, before.keys(), names.keys())
        changed = (name for name in before.keys() | names.keys() if before.get(name) != names.get(name))
        return {seeker for name in changed for seeker in self._seekers.get(name, ())}

    def seek(self, document_id: str, names: Iterable[str]) -> None:
        """Say which names the references of a document look for from now on."""
        before, wanted = self._sought.pop(document_id, frozenset()), frozenset(names)
        if wanted:
            self._sought[document_id] = wanted
        _move(self._seekers, document_id, before, wanted)

    def resolve(self, tiers: Tiers, seeker: str, start: datetime, until: datetime | None) -> tuple[Answer, ...]:
        """Find the documents that a reference names, one after the other: what answers later says nothing of before.

        Args:
            tiers: Its names, the exact ones first.
            seeker: Document that it stands in; the answer only where no other one has the same name.
            start: From when on the reference stands.
            until: When it ends, excluded; None: never.

        Returns:
            By time, without gaps; neighbours differ.
        """
        held: list[dict[str, int]] = [{} for _ in tiers]
        found: list[tuple[datetime, str]] = []
        events = sorted(self._events(tiers, start, until))
        for place, (moment, tier, owner, step) in enumerate(events):
            held[tier][owner] = held[tier].get(owner, 0) + step
            if not held[tier][owner]:
                del held[tier][owner]
            if place + 1 < len(events) and events[place + 1][0] == moment:
                continue
            if not found and moment > start:
                found.append((start, ""))
            named = _named(held, seeker)
            if not found or found[-1][1] != named:
                found.append((moment, named))
        found = found or [(start, "")]
        ends = [*(moment for moment, _ in found[1:]), until]
        return tuple(Answer(begin, end, named) for (begin, named), end in zip(found, ends, strict=True))

    def _events(
        self, tiers: Tiers, start: datetime, until: datetime | None
    ) -> Iterator[tuple[datetime, int, str, int]]:
        """When documents begin and cease to answer to names of each tier, within a stretch of time."""
        for tier, names in enumerate(tiers):
            for name in names:
                for owner in self._owners.get(name, ()):
                    for begin, end in self._names[owner][name]:
                        if (until is not None and begin >= until) or (end is not None and end <= start):
                            continue
                        yield max(begin, start), tier, owner, 1
                        if end is not None and (until is None or end < until):
                            yield end, tier, owner, -1


def _named(held: list[dict[str, int]], seeker: str) -> str:
    for owners in held:
        if owners:
            others = len(owners) - (seeker in owners)
            if others > 1:
                return ""
            return next(owner for owner in owners if owner != seeker) if others else seeker
    return ""


def _move(table: dict[str, set[str]], document_id: str, before: Iterable[str], after: Iterable[str]) -> None:
    before, after = frozenset(before), frozenset(after)
    for name in before - after:
        table[name].discard(document_id)
        if not table[name]:
            del table[name]
    for name in after - before:
        table.setdefault(name, set()).add(document_id)
