"""Edge 1: with the standard strategy a chunked revision is acknowledged and nothing follows from it."""

from __future__ import annotations

from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb

from services.kernel.envelope import Event
from services.kernel.errors import NotAvailableYet
from services.proposition import codec
from services.proposition.domain import needs_evaluation
from services.proposition.ports import Evaluations, Log

EVENTS = ("DocumentChunked", "DocumentErased")


class Evaluating:
    """The step."""

    def __init__(self, *, log: Log, evaluations: Evaluations) -> None:
        self._log = log
        self._evaluations = evaluations

    async def handle(self, event: Event) -> None:
        """Handle one event; the same event again changes nothing.

        Args:
            event: DocumentChunked or DocumentErased.

        Raises:
            NotAvailableYet: When the crate asks for propositions.
            Unavailable: When the log or the store doesn't answer.
        """
        message = event.message
        if isinstance(message, ingest_pb.DocumentErased):
            await self._evaluations.erase(event.crate, message.document_id, message.revision)
            return
        configured = await self._configured(event)
        if needs_evaluation(codec.strategy(configured.message if configured else None)):
            raise NotAvailableYet(
                f"crate {event.crate} asks for the proposition strategy, which is not available yet: "
                "set retrieval_strategy to standard and ingest the document again"
            )

    async def _configured(self, event: Event) -> Event | None:
        """The configuration that an event is judged by: one that comes again is judged as it was the first time."""
        if not event.repeated:
            return await self._log.recent(crate=event.crate, service="ingest", aggregate="crate")
        found = None
        async for configured in self._log.facts(
            crate=event.crate, service="ingest", aggregate="crate", name="CrateConfigured"
        ):
            if configured.position > event.place:
                break
            found = configured
        return found
