"""Which documents supersede one another in a circle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

Step = Callable[[str], Iterable[str]]


class Cycles:
    """Strongly connected groups of two documents or more, kept while edges come and go.

    Args:
        targets: Documents that one supersedes.
        sources: Documents that supersede one.
    """

    def __init__(self, *, targets: Step, sources: Step) -> None:
        self._targets = targets
        self._sources = sources
        self._groups: dict[str, frozenset[str]] = {}

    def group(self, document_id: str) -> frozenset[str]:
        """The documents in a circle with one, itself included; empty when it is in none."""
        return self._groups.get(document_id, frozenset())

    def update(self, pairs: Collection[tuple[str, str]]) -> frozenset[str]:
        """Look again after edges came or went.

        Args:
            pairs: Source and target of each.

        Returns:
            Documents that are, or were, in a circle through one of them.
        """
        before = {held for source, target in pairs if target in (held := self.group(source))}
        # What is held must be connected by the edges there are before anything is added to it.
        for held in before:
            for member in held:
                del self._groups[member]
        for held in before:
            for component in components(held, partial(self._within, held)):
                self._add(component)
        for source, target in pairs:
            if source != target and target in self._targets(source) and target not in self.group(source):
                forward = reach(target, self._targets)
                if source in forward:
                    self._add(forward & reach(source, self._sources))
        after = {held for source, target in pairs if target in (held := self.group(source))}
        return frozenset().union(*before, *after)

    def rebuild(self, documents: Iterable[str]) -> None:
        """Look at all edges at once."""
        self._groups.clear()
        for component in components(documents, self._targets):
            self._add(component)

    def _within(self, group: frozenset[str], one: str) -> Iterator[str]:
        return (other for other in self._targets(one) if other in group)

    def _add(self, component: Iterable[str]) -> None:
        group = frozenset(component)
        if len(group) > 1:
            self._groups |= dict.fromkeys(group, group)


def reach(start: str, step: Step) -> frozenset[str]:
    """Everything that steps lead to, the start included."""
    seen = {start}
    waiting = [start]
    while waiting:
        for other in step(waiting.pop()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return frozenset(seen)


def components(documents: Iterable[str], step: Step) -> Iterator[list[str]]:
    """Strongly connected components, by Tarjan's algorithm without recursion.

    Args:
        documents: Where to begin.
        step: Edges.

    Yields:
        The documents of each component; most have one.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in documents:
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = []
        _enter(root, index, low, stack, on_stack, work, step)
        while work:
            one, others = work[-1]
            other = next(others, None)
            if other is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[one])
                if low[one] == index[one]:
                    yield _popped(one, stack, on_stack)
            elif other not in index:
                _enter(other, index, low, stack, on_stack, work, step)
            elif other in on_stack:
                low[one] = min(low[one], index[other])


def _enter(  # noqa: PLR0917  (the state of one search)
    one: str,
    index: dict[str, int],
    low: dict[str, int],
    stack: list[str],
    on_stack: set[str],
    work: list[tuple[str, Iterator[str]]],
    step: Step,
) -> None:
    index[one] = low[one] = len(index)
    stack.append(one)
    on_stack.add(one)
    work.append((one, iter(step(one))))


def _popped(one: str, stack: list[str], on_stack: set[str]) -> list[str]:
    component = []
    while True:
        member = stack.pop()
        on_stack.discard(member)
        component.append(member)
        if member == one:
            return component
