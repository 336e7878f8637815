"""Which crates there are, as the log says: each begins with its CrateConfigured and is never removed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nats.errors import Error as NatsError
from nats.js import api

from services import topology
from services.kernel.bus import Bus

_log = logging.getLogger("affidavit.steps")
_SUBJECT = f"{topology.SUBJECT_ROOTS[topology.KNOWLEDGE]}.*.ingest.*.crate_configured"
_BATCH = 256
_FETCH_TIMEOUT_S = 2.0
_RESUBSCRIBE_S = 0.5


class Crates:
    """Tells of every crate, the new ones as they come."""

    def __init__(self, *, bus: Bus, found: Callable[[str], None]) -> None:
        """Keep what is needed to follow them.

        Args:
            bus: Log.
            found: Called for each crate, with known ones now and then again.
        """
        self._bus = bus
        self._found = found

    async def follow(self) -> None:
        """Read until cancelled; a server that is away, or a consumer that is gone, means starting over."""
        while True:
            try:
                await self._read()
            except (NatsError, OSError) as error:
                _log.warning("the crates of %s can't be read (%s)", self._bus.role, type(error).__name__)
            except Exception:  # noqa: BLE001  (a role that learns of no new crate would leave it unserved unseen)
                _log.exception("the crates of %s can't be read; it starts over", self._bus.role)
            await asyncio.sleep(_RESUBSCRIBE_S)

    async def _read(self) -> None:
        config = api.ConsumerConfig(
            filter_subject=_SUBJECT,
            deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT,
            ack_policy=api.AckPolicy.NONE,
            inactive_threshold=60,
            mem_storage=True,
            num_replicas=1,
        )
        info = await self._bus.js.add_consumer(topology.KNOWLEDGE, config)
        subscription = await self._bus.js.pull_subscribe_bind(consumer=info.name, stream=topology.KNOWLEDGE)
        while True:
            try:
                messages = await subscription.fetch(_BATCH, timeout=_FETCH_TIMEOUT_S)
            except TimeoutError:
                await subscription.consumer_info()
                continue
            for message in messages:
                self._found(message.subject.split(".")[2])
