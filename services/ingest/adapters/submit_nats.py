"""Publishers' request-reply on core NATS: nothing of it is stored in a stream, which would keep erased bodies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from services import topology

_log = logging.getLogger("affidavit.ingest")
_QUEUE: Final = "ingest"
# What waits beyond this is dropped by the client, and the publisher sends it again.
_PENDING_MESSAGES: Final = 512
_PENDING_BYTES: Final = 64 * 1024 * 1024

Answer = Callable[[str, bytes], Awaitable[bytes]]


class NatsSubmissions:
    """Listens on `affidavit.submit.<crate>` and answers each request."""

    def __init__(self, *, client: Client, answer: Answer, concurrency: int) -> None:
        """Keep what is needed to listen.

        Args:
            client: Connection.
            answer: Carries out one event: crate and payload to reply.
            concurrency: Events in work at once.
        """
        self._client = client
        self._answer = answer
        self._turns = asyncio.Semaphore(concurrency)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Listen until cancelled; replicas share the load."""
        subscription = await self._client.subscribe(
            f"{topology.SUBMIT_SUBJECT}.*",
            queue=_QUEUE,
            cb=self._accept,
            pending_msgs_limit=_PENDING_MESSAGES,
            pending_bytes_limit=_PENDING_BYTES,
        )
        try:
            await asyncio.Event().wait()
        finally:
            await self._close(subscription.unsubscribe)

    async def _accept(self, message: Msg) -> None:
        await self._turns.acquire()
        task = asyncio.create_task(self._serve(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, message: Msg) -> None:
        try:
            reply = await self._answer(message.subject.rsplit(".", 1)[-1], message.data)
            if message.reply:
                await message.respond(reply)
        except NatsError as error:
            # The fact stands in the log; a publisher that hears nothing sends again and learns so.
            _log.warning("a submission was carried out but its reply was lost: %s", type(error).__name__)
        finally:
            self._turns.release()

    async def _close(self, unsubscribe: Callable[[], Awaitable[None]]) -> None:
        try:
            await unsubscribe()
        except NatsError as error:
            _log.debug("the connection was gone already: %s", type(error).__name__)
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
