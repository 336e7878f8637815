"""What searches ask the rows again and again, kept in memory until the rows are next written."""

from __future__ import annotations

from collections.abc import Sequence

from services.index.domain.content import Standing
from services.index.domain.generations import Generation
from services.index.gate import Gate
from services.index.ports import ChunkReader

# About 15 MB.
_MOST_DOCUMENTS = 50_000


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
        # 0 stands for a document without a searchable revision.
        self._revisions: dict[tuple[str, str], int] = {}

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

    async def standing(self, crate_id: str, document_ids: Sequence[str]) -> Standing:
        """See ChunkReader."""
        wanted = list(dict.fromkeys(document_ids))
        writes = self._current()
        if writes is not None and wanted:
            held = {name: self._revisions.get((crate_id, name)) for name in wanted}
            if None not in held.values():
                revisions = {name: revision for name, revision in held.items() if revision}
                return Standing(position=self._position, revisions=revisions)
        found = await self._reader.standing(crate_id, wanted)
        if self._holds(writes):
            if len(self._revisions) + len(wanted) > _MOST_DOCUMENTS:
                self._revisions.clear()
            self._position = found.position
            self._revisions |= {(crate_id, name): found.revisions.get(name, 0) for name in wanted}
        return found

    def _current(self) -> int | None:
        """The number of writes so far, with what was kept before the last one forgotten; None during a write."""
        writes = self._gate.writes
        if writes != self._writes:
            self._generations.clear()
            self._revisions.clear()
            self._writes = writes
        return writes

    def _holds(self, writes: int | None) -> bool:
        """Whether an answer may be kept that was asked for after this many writes."""
        return writes is not None and writes == self._gate.writes == self._writes
