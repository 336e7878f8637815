"""What proposition needs from the outside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from services.kernel.envelope import Event
from services.topology import KNOWLEDGE


class Log(Protocol):
    """The log, as the kernel's bus gives it."""

    async def recent(self, *, crate: str, service: str, aggregate: str) -> Event | None:
        """The last event of an aggregate as it was within the last second, or None."""

    def facts(
        self, *, crate: str, service: str, aggregate: str, name: str, stream: str = KNOWLEDGE
    ) -> AsyncIterator[Event]:
        """The events of one kind of an aggregate, oldest first."""


class Evaluations(Protocol):
    """Evaluations of chunks."""

    async def erase(self, crate_id: str, document_id: str, revision: int) -> None:
        """Delete the evaluations of this revision and the ones before it; none there is fine.

        Args:
            crate_id: Crate.
            document_id: Document.
            revision: Newest revision that goes.
        """
