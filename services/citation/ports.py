"""What citation needs from the outside."""

from __future__ import annotations

from typing import Protocol

from services.citation.domain.repair import Repaired


class Signals(Protocol):
    """Tells the rest of the system what was repaired."""

    async def repaired(self, crate_id: str, answer_id: str, result: Repaired) -> None:
        """Record that an answer's markers were repaired; again for the same answer changes nothing.

        Args:
            crate_id: Crate.
            answer_id: 32 hex digits.
            result: What was done.

        Raises:
            Unavailable: When the log doesn't take it.
        """
