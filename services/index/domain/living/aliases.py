"""Which document answers to a name and when, and who waits for an answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
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


Holders: TypeAlias = tuple[tuple[datetime, frozenset[str] | None], ...]
"""Who answers to a name, from each instant on; None for more than two, among whom nobody is meant."""
_FEW = 2


class Aliases:
    """Names of documents, and the names that references of documents look for."""

    def __init__(self) -> None:
        self._owners: dict[str, set[str]] = {}
        self._names: dict[str, Names] = {}
        self._seekers: dict[str, set[str]] = {}
        self._sought: dict[str, frozenset[str]] = {}
        # Of the names that somebody looks for.
        self._holders: dict[str, Holders] = {}

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
        found: set[str] = set()
        for name in before.keys() | names.keys():
            if before.get(name) != names.get(name) and self._moved(name, before.get(name, ()), names.get(name, ())):
                found |= self._seekers.get(name, set())
        return found

    def seek(self, document_id: str, names: Iterable[str]) -> None:
        """Say which names the references of a document look for from now on."""
        before, wanted = self._sought.pop(document_id, frozenset()), frozenset(names)
        if wanted:
            self._sought[document_id] = wanted
        _move(self._seekers, document_id, before, wanted)
        for name in before - wanted:
            if name not in self._seekers:
                self._holders.pop(name, None)

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
        held = [[self._held(name) for name in names] for names in tiers]
        changes = {moment for tier in held for holders in tier for moment, _ in holders}
        within = sorted(moment for moment in changes if moment > start and (until is None or moment < until))
        found: list[tuple[datetime, str]] = []
        for moment in (start, *within):
            named = _named([[_at(holders, moment) for holders in tier] for tier in held], seeker)
            if not found or found[-1][1] != named:
                found.append((moment, named))
        ends = [*(moment for moment, _ in found[1:]), until]
        return tuple(Answer(begin, end, named) for (begin, named), end in zip(found, ends, strict=True))

    def _moved(self, name: str, before: tuple[Stretch, ...], after: tuple[Stretch, ...]) -> bool:
        """Whether others answer to a name now. One more among many changes nothing, which keeps common names cheap."""
        known = self._holders.get(name)
        if name not in self._seekers:
            self._holders.pop(name, None)
            return False
        if known is not None and not before and _crowded(known, after):
            return False
        self._holders.pop(name, None)
        return self._held(name) != known

    def _held(self, name: str) -> Holders:
        if name not in self._holders:
            self._holders[name] = self._swept(name)
        return self._holders[name]

    def _swept(self, name: str) -> Holders:
        events: list[tuple[datetime, int, str]] = []
        for owner in self._owners.get(name, ()):
            for begin, end in self._names[owner][name]:
                events.append((begin, 1, owner))
                if end is not None:
                    events.append((end, -1, owner))
        events.sort()
        counts: dict[str, int] = {}
        found: list[tuple[datetime, frozenset[str] | None]] = []
        for place, (moment, step, owner) in enumerate(events):
            counts[owner] = counts.get(owner, 0) + step
            if not counts[owner]:
                del counts[owner]
            if place + 1 < len(events) and events[place + 1][0] == moment:
                continue
            owners = frozenset(counts) if len(counts) <= _FEW else None
            if not found or found[-1][1] != owners:
                found.append((moment, owners))
        return tuple(found)


def _crowded(holders: Holders, stretches: tuple[Stretch, ...]) -> bool:
    """Whether more than two answer throughout some stretches."""
    for start, until in stretches:
        inside = [owners for moment, owners in holders if moment > start and (until is None or moment < until)]
        if _at(holders, start) is not None or any(owners is not None for owners in inside):
            return False
    return True


def _at(holders: Holders, moment: datetime) -> frozenset[str] | None:
    place = bisect_right(holders, moment, key=lambda held: held[0])
    return holders[place - 1][1] if place else frozenset()


def _named(held: list[list[frozenset[str] | None]], seeker: str) -> str:
    for tier in held:
        owners: set[str] = set()
        for few in tier:
            if few is None:
                return ""
            owners |= few
        if owners:
            others = owners - {seeker}
            if len(others) > 1:
                return ""
            return next(iter(others)) if others else seeker
    return ""


def _move(table: dict[str, set[str]], document_id: str, before: Iterable[str], after: Iterable[str]) -> None:
    before, after = frozenset(before), frozenset(after)
    for name in before - after:
        table[name].discard(document_id)
        if not table[name]:
            del table[name]
    for name in after - before:
        table.setdefault(name, set()).add(document_id)
