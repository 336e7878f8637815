"""Evaluations in the kernel's pack store."""

from __future__ import annotations

from services.kernel.packs import PackStore


class PackEvaluations:
    """See `Evaluations`."""

    def __init__(self, *, packs: PackStore) -> None:
        self._packs = packs

    async def erase(self, crate_id: str, document_id: str, revision: int) -> None:
        """See `Evaluations`."""
        for number in range(1, revision + 1):
            await self._packs.erase(f"{crate_id}/{document_id}/{number}/propositions")
