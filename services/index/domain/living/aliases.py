"""Which document answers to a name, and who waits for an answer."""

from __future__ import annotations

from collections.abc import Iterable

from services.index.domain.living.references import Tiers


class Aliases:
    """Names of documents, and the names that references of documents look for."""

    def __init__(self) -> None:
        self._owners: dict[str, set[str]] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._seekers: dict[str, set[str]] = {}
        self._sought: dict[str, frozenset[str]] = {}

    def answer(self, document_id: str, names: frozenset[str]) -> set[str]:
        """Say which names a document answers to from now on.

        Args:
            document_id: Document.
            names: All of them; none for a document that isn't known any more.

        Returns:
            Documents whose references may lead elsewhere now.
        """
        before = self._names.pop(document_id, frozenset())
        if names:
            self._names[document_id] = names
        _move(self._owners, document_id, before, names)
        return {seeker for name in before ^ names for seeker in self._seekers.get(name, ())}

    def seek(self, document_id: str, names: Iterable[str]) -> None:
        """Say which names the references of a document look for from now on."""
        before, wanted = self._sought.pop(document_id, frozenset()), frozenset(names)
        if wanted:
            self._sought[document_id] = wanted
        _move(self._seekers, document_id, before, wanted)

    def resolve(self, tiers: Tiers, seeker: str) -> str:
        """Find the document that a reference names.

        Args:
            tiers: Its names, the exact ones first.
            seeker: Document that it stands in; the answer only where no other one has the same name.

        Returns:
            Document id; empty when none answers, or several others do.
        """
        for tier in tiers:
            found = {owner for name in tier for owner in self._owners.get(name, ())}
            if found:
                others = found - {seeker} or found
                return others.pop() if len(others) == 1 else ""
        return ""


def _move(table: dict[str, set[str]], document_id: str, before: frozenset[str], after: frozenset[str]) -> None:
    for name in before - after:
        table[name].discard(document_id)
        if not table[name]:
            del table[name]
    for name in after - before:
        table.setdefault(name, set()).add(document_id)
