"""Large batches of a stream, for who reads all of it.

nats-py's own `fetch` makes two tasks and a random id for each message, which is more work than the rest of reading it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeoutError

from services.kernel.reader import LogReader

_STATUS = "Status"
_NANOSECONDS = 1_000_000_000


class Deliveries:
    """What a consumer without acknowledgements gives; opened by `deliveries`."""

    def __init__(self, *, log: LogReader, subject: str, inbox: str) -> None:
        self._log = log
        self._subject = subject
        self._inbox = inbox
        self._held: list[Msg] = []
        self._wanted = 0
        self._ready = asyncio.Event()

    async def ask(self, most: int, expires_s: float) -> None:
        """Let the server send messages from now on; `take` waits for them.

        Args:
            most: How many at most.
            expires_s: Seconds after which it gives up.
        """
        self._wanted = most
        self._ready.clear()
        request = {"batch": most, "expires": int(expires_s * _NANOSECONDS)}
        await self._log.nats.publish(self._subject, json.dumps(request).encode(), reply=self._inbox)

    async def take(self, timeout_s: float) -> list[Msg]:
        """Wait until all that was asked for has come, or all that there is.

        Args:
            timeout_s: Seconds.

        Returns:
            In stream order, at least one.

        Raises:
            nats.errors.Error: When nothing comes.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        held, self._held = self._held, []
        if not held:
            raise NatsTimeoutError
        return held

    async def accept(self, message: Msg) -> None:
        """Keep what the server sends."""
        if message.headers and _STATUS in message.headers:
            # Nothing more comes for a request: it ran out, or the consumer is gone.
            self._ready.set()
            return
        self._held.append(message)
        # The last number of the reply subject is that of the messages behind this one.
        if len(self._held) >= self._wanted or message.reply.endswith(".0"):
            self._ready.set()


@contextlib.asynccontextmanager
async def deliveries(log: LogReader, stream: str, consumer: str) -> AsyncIterator[Deliveries]:
    """Read a consumer.

    Args:
        log: Log.
        stream: Its stream.
        consumer: A pull consumer without acknowledgements that nobody else reads.

    Yields:
        What it gives.
    """
    inbox = log.nats.new_inbox()
    found = Deliveries(log=log, subject=f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", inbox=inbox)
    subscription = await log.nats.subscribe(inbox, cb=found.accept)
    try:
        yield found
    finally:
        with contextlib.suppress(NatsError, OSError):
            await subscription.unsubscribe()
