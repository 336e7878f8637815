"""Which newer version takes the place of each in a series, by time, without comparing each with each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from services.index.domain.living.versions import is_prerelease, order

Stretch: TypeAlias = tuple[datetime, datetime | None]
"""From an instant on, up to another one, excluded; None: for ever."""


@dataclass(frozen=True, slots=True)
class Member:
    """A version of a series.

    Attributes:
        document_id: Its document.
        version: As written.
        in_force: When it is in force, by time.
    """

    document_id: str
    version: str
    in_force: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Succession:
    """A stretch in which another document takes the place of a version."""

    start: datetime
    until: datetime | None
    other: str


class Series:
    """The versions of a series, oldest first, with the earliest instant at which any from each place on is in force.

    Args:
        members: In any order.
    """

    def __init__(self, members: Iterable[Member]) -> None:
        ranked = sorted(
            (order(member.version), member.in_force[0][0], member.document_id, number, member)
            for number, member in enumerate(members)
            if member.in_force
        )
        self._members = [entry[-1] for entry in ranked]
        self._orders = [entry[0] for entry in ranked]
        self._first: list[datetime] = []
        for member in reversed(self._members):
            start = member.in_force[0][0]
            self._first.append(min(start, self._first[-1]) if self._first else start)
        self._first.reverse()

    def successions(self, version: str, while_in_force: tuple[Stretch, ...]) -> tuple[Succession, ...]:
        """Find the next newer version that is in force, at every instant. A pre-release takes no release's place.

        Args:
            version: The version to replace; an empty one is older than none.
            while_in_force: The stretches to look at, by time.

        Returns:
            By time; nothing for the stretches in which no newer version is in force.
        """
        rank, left = order(version), while_in_force
        found: list[Succession] = []
        for place in range(bisect_right(self._orders, rank) if rank else len(self._orders), len(self._orders)):
            if not left or (left[-1][1] is not None and left[-1][1] <= self._first[place]):
                break
            member = self._members[place]
            if is_prerelease(member.version) and not is_prerelease(version):
                continue
            taken, left = _split(left, member.in_force)
            found += [Succession(start, until, member.document_id) for start, until in taken]
        return tuple(sorted(found, key=lambda one: one.start))


def _split(stretches: Iterable[Stretch], by: tuple[Stretch, ...]) -> tuple[tuple[Stretch, ...], tuple[Stretch, ...]]:
    """The parts of stretches that lie within others, and those that don't."""
    within: list[Stretch] = []
    beside: list[Stretch] = []
    for start, until in stretches:
        reached: datetime | None = start
        for from_, to in by:
            if reached is None or (until is not None and from_ >= until):
                break
            if to is not None and to <= reached:
                continue
            if from_ > reached:
                beside.append((reached, from_))
                reached = from_
            end = until if to is None or (until is not None and until < to) else to
            within.append((reached, end))
            reached = None if end == until else end
        if reached is not None:
            beside.append((reached, until))
    return tuple(within), tuple(beside)
