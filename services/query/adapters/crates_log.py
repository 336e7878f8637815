"""Settings of crates, straight from the log: the last CrateConfigured is what holds."""

from __future__ import annotations

from affidavit.ingest.v1 import ingest_events_pb2

from services.kernel.bus import Bus
from services.kernel.errors import Corrupt, NotFound
from services.query.codec import incoming
from services.query.domain.crate import CrateRules

_SERVICE, _AGGREGATE, _EVENT = "ingest", "crate", "CrateConfigured"


class LogCrateBook:
    """See ports.CrateBook."""

    def __init__(self, *, bus: Bus) -> None:
        self._bus = bus

    async def rules(self, crate_id: str) -> CrateRules:
        """See CrateBook."""
        event = await self._bus.last_named(crate=crate_id, service=_SERVICE, aggregate=_AGGREGATE, name=_EVENT)
        if event is None:
            raise NotFound(f"there is no crate {crate_id}: create it with `affidavit crate create {crate_id}`")
        if not isinstance(event.message, ingest_events_pb2.CrateConfigured):
            raise Corrupt(f"the settings of crate {crate_id} at position {event.position} can't be read")
        return incoming.crate_rules(event.message)
