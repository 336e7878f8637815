"""What searches ask the rows again and again, kept in memory until the rows are next written."""

from __future__ import annotations

from collections.abc import Sequence

from services.index.domain.content import Standing
from services.index.domain.force import Force
from services.index.domain.generations import Generation
from services.index.domain.records import RevisionKey
from services.index.gate import Gate
from services.index.ports import ChunkReader

# About 25 MB.
_MOST_REVISIONS = 50_000


class RememberedRows:
    """Generations and standing as the rows have them.

    Only this process writes the rows, and always behind the gate, so what was read between two writes holds until the
    second one begins. During a write every question goes to the rows.
    """

    def __init__(self, *, reader: ChunkReader, gate: Gate) -> None:
        self._reader = reader
        self._gate = gate
        self._writes: int | None = None
        self._position = 0
        self._generations: dict[str, tuple[Generation, ...]] = {}
        # None stands for a revision that isn't stored.
        self._forces: dict[tuple[str, RevisionKey], Force | None] = {}

    async def generations(self, crate_id: str) -> tuple[Generation, ...]:
        """See ChunkReader."""
        writes = self._current()
        held = self._generations.get(crate_id)
        if writes is not None and held is not None:
            return held
        found = await self._reader.generations(crate_id)
        # A crate without generations is not kept: anyone can name one.
        if found and self._holds(writes):
            self._generations[crate_id] = found
        return found

    async def standing(self, crate_id: str, keys: Sequence[RevisionKey]) -> Standing:
        """See ChunkReader."""
        asked = list(dict.fromkeys(keys))
        writes = self._current()
        if writes is not None and asked and all((crate_id, key) in self._forces for key in asked):
            held = {key: self._forces[crate_id, key] for key in asked}
            forces = {key: force for key, force in held.items() if force is not None}
            return Standing(position=self._position, forces=forces)
        found = await self._reader.standing(crate_id, asked)
        if self._holds(writes):
            if len(self._forces) + len(asked) > _MOST_REVISIONS:
                self._forces.clear()
            self._position = found.position
            self._forces |= {(crate_id, key): found.forces.get(key) for key in asked}
        return found

    def _current(self) -> int | None:
        """The number of writes so far, with what was kept before the last one forgotten; None during a write."""
        writes = self._gate.writes
        if writes != self._writes:
            self._generations.clear()
            self._forces.clear()
            self._writes = writes
        return writes

    def _holds(self, writes: int | None) -> bool:
        """Whether an answer may be kept that was asked for after this many writes."""
        return writes is not None and writes == self._gate.writes == self._writes
