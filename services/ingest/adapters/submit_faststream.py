"""Publishers' request-reply on core NATS: nothing of it is stored in a stream, which would keep erased bodies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from faststream.message import StreamMessage
from faststream.nats import NatsBroker, NatsResponse
from nats.aio.client import Client
from nats.aio.msg import Msg

from services import topology

_log = logging.getLogger("affidavit.ingest")
CONTENT_TYPE: Final = "application/json"
_QUEUE: Final = "ingest"
# What waits beyond this is dropped by the client, and the publisher sends it again.
_PENDING_MESSAGES: Final = 512
_PENDING_BYTES: Final = 64 * 1024 * 1024
_GRACE_S: Final = 2.0

Answer = Callable[[str, bytes, Mapping[str, str]], Awaitable[bytes]]


class SubmitSubject:
    """Listens on `affidavit.submit.<crate>` and answers each request."""

    def __init__(self, *, url: str, answer: Answer, concurrency: int) -> None:
        """Keep what is needed to listen.

        Args:
            url: Of the NATS server.
            answer: Carries out one event: crate, payload and headers (names in lower case) to reply.
            concurrency: Events in work at once.
        """
        self._broker = NatsBroker(
            url,
            name="affidavit-submissions",
            max_reconnect_attempts=-1,
            graceful_timeout=_GRACE_S,
            logger=_log,
            log_level=logging.DEBUG,
            apply_types=False,
        )

        @self._broker.subscriber(
            f"{topology.SUBMIT_SUBJECT}.*",
            queue=_QUEUE,
            max_workers=concurrency,
            decoder=_request,
            pending_msgs_limit=_PENDING_MESSAGES,
            pending_bytes_limit=_PENDING_BYTES,
        )
        async def serve(request: tuple[str, bytes, dict[str, str]]) -> NatsResponse:
            return NatsResponse(await answer(*request), headers={"content-type": CONTENT_TYPE})

        self._client: Client | None = None

    async def run(self) -> None:
        """Listen until cancelled, then answer what was accepted; replicas share the load."""
        try:
            client = await self._broker.connect()
            await self._broker.start()
            # The server has the subscription once it has answered what was sent behind it. Twice, since nats-py writes a
            # ping at once, ahead of what still waits to be written, which the first one gets on its way.
            await client.flush()
            await client.flush()
            self._client = client
            await asyncio.Event().wait()
        finally:
            self._client = None
            await self._broker.stop()

    async def problem(self) -> str:
        """Why publishers would find nobody here; "" when they are heard."""
        if self._client is None:
            return "doesn't listen yet"
        return "" if self._client.is_connected else "lost nats-server and tries to reach it again"


async def _request(message: StreamMessage[Msg]) -> tuple[str, bytes, dict[str, str]]:
    raw = message.raw_message
    headers = {name.lower(): value for name, value in (raw.headers or {}).items()}
    return raw.subject.rsplit(".", 1)[-1], raw.data, headers
