"""Signals on the kernel's bus."""

from __future__ import annotations

from services.citation import codec
from services.citation.domain.repair import RULES, Repaired
from services.kernel.bus import Bus


class BusSignals:
    """See `Signals`."""

    def __init__(self, *, bus: Bus) -> None:
        self._bus = bus

    async def repaired(self, crate_id: str, answer_id: str, result: Repaired) -> None:
        """See `Signals`."""
        await self._bus.append_once(
            crate=crate_id,
            aggregate=answer_id,
            message=codec.signal(answer_id, result),
            key=f"{answer_id}:repaired:{RULES}",
        )
