"""The log to read: look up the last fact of an aggregate, walk through those that came before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from services import topology
from services.kernel import envelope, streams
from services.kernel.envelope import Event, Poison
from services.kernel.errors import Corrupt, Unavailable
from services.kernel.streams import TRANSIENT

_TIMEOUT_S = 5.0
_RECENT_S = 1.0


class LogReader:
    """Connection of one role to the log that can look facts up and follow them, and has no way to append one.

    Attributes:
        role: Role that it reads as.
        nats: The NATS connection, for request-reply.
    """

    def __init__(self, *, role: str, client: Client, url: str) -> None:
        self.role = role
        self.nats = client
        self.url = url
        self.js = client.jetstream(timeout=_TIMEOUT_S)
        self._incarnations: dict[str, bytes] = {}
        self._recent: dict[tuple[str, str, str], tuple[float, Event | None]] = {}

    @classmethod
    async def open(cls, url: str, *, role: str) -> LogReader:
        """Connect to a log that exists, and change nothing there.

        Args:
            url: NATS URL.
            role: Role to read as.

        Returns:
            The reader.

        Raises:
            Unavailable: When the server doesn't answer or has no log.
        """
        reader = cls(role=role, client=await streams.connect(url, role), url=url)
        for name in (topology.KNOWLEDGE, topology.SIGNALS):
            try:
                reader._incarnations[name] = await streams.incarnation(reader.js, name)
            except NotFoundError as error:
                await reader.close()
                raise Unavailable(f"nats-server at {url} has no stream {name}: start the node once") from error
            except BaseException:
                await reader.close()
                raise
        return reader

    async def close(self) -> None:
        """Flush and close the connection."""
        await self.nats.close()

    def incarnation(self, stream: str = topology.KNOWLEDGE) -> bytes:
        """Random id of the stream, 16 bytes: another one after the stream was deleted and made again."""
        return self._incarnations[stream]

    async def last_position(self, stream: str = topology.KNOWLEDGE) -> int:
        """Sequence of the newest event of a stream, 0 when it is empty."""
        try:
            return int((await self.js.stream_info(stream)).state.last_seq)
        except TRANSIENT as error:
            raise Unavailable(f"the log doesn't answer for stream {stream}: retry") from error

    async def recent(self, *, crate: str, service: str, aggregate: str) -> Event | None:
        """The last event of an aggregate of KNOWLEDGE as it was within the last second, for what rarely changes.

        Args:
            crate: Crate.
            service: Role that owns the aggregate.
            aggregate: Its id.

        Returns:
            See `last`.

        Raises:
            Corrupt: See `last`.
            Unavailable: See `last`.
        """
        key = (crate, service, aggregate)
        now = asyncio.get_running_loop().time()
        read_at, event = self._recent.get(key, (-_RECENT_S, None))
        if now - read_at >= _RECENT_S:
            event = await self.last(crate=crate, service=service, aggregate=aggregate)
            self._recent[key] = (now, event)
        return event

    async def last(self, *, crate: str, service: str, aggregate: str, stream: str | None = None) -> Event | None:
        """The last event of an aggregate, straight from the log.

        Args:
            crate: Crate.
            service: Role that owns the aggregate.
            aggregate: Its id.
            stream: KNOWLEDGE by default.

        Returns:
            The event, or None when there is none.

        Raises:
            Corrupt: When it can't be read.
            Unavailable: When the log doesn't answer.
        """
        return await self._readable(stream or topology.KNOWLEDGE, crate, service, aggregate, ">")

    async def last_named(
        self, *, crate: str, service: str, aggregate: str, name: str, stream: str | None = None
    ) -> Event | None:
        """The last event of one kind of an aggregate.

        Args:
            crate: Crate.
            service: Role that owns the aggregate.
            aggregate: Its id.
            name: Message name.
            stream: KNOWLEDGE by default.

        Returns:
            The event, or None when there is none.

        Raises:
            Corrupt: When it can't be read.
            Unavailable: When the log doesn't answer.
        """
        token = envelope.subject_token(name)
        return await self._readable(stream or topology.KNOWLEDGE, crate, service, aggregate, token)

    async def at(self, stream: str, position: int) -> Event | Poison | None:
        """The event at a position.

        Args:
            stream: KNOWLEDGE or SIGNALS.
            position: Stream sequence.

        Returns:
            The event, what is wrong with it, or None when nothing stands there.

        Raises:
            Unavailable: When the log doesn't answer.
        """
        return await self._get(stream, {"seq": position})

    async def facts(
        self, *, crate: str, service: str, aggregate: str, name: str, stream: str = topology.KNOWLEDGE
    ) -> AsyncIterator[Event]:
        """Walk through the events of one kind of an aggregate, oldest first; what can't be read is passed over.

        Args:
            crate: Crate.
            service: Role that owns the aggregate.
            aggregate: Its id.
            name: Message name.
            stream: KNOWLEDGE or SIGNALS.

        Yields:
            Each of them, one question to the log each.

        Raises:
            Unavailable: When the log doesn't answer.
        """
        envelope.check_tokens(crate, service, aggregate)
        token = envelope.subject_token(name)
        subject = f"{topology.SUBJECT_ROOTS[stream]}.{crate}.{service}.{aggregate}.{token}"
        found = await self._get(stream, {"next_by_subj": subject, "seq": 1})
        while found is not None:
            if isinstance(found, Event):
                yield found
            found = await self._get(stream, {"next_by_subj": subject, "seq": found.position + 1})

    async def _readable(self, stream: str, crate: str, service: str, aggregate: str, tail: str) -> Event | None:
        envelope.check_tokens(crate, service, aggregate)
        found = await self._last(stream, f"{topology.SUBJECT_ROOTS[stream]}.{crate}.{service}.{aggregate}.{tail}")
        if isinstance(found, Poison):
            raise Corrupt(f"event {found.position} of {stream} can't be read ({found.reason}): see `affidavit doctor`")
        return found

    def _wildcard(self, stream: str, crate: str, aggregate: str) -> str:
        return f"{topology.SUBJECT_ROOTS[stream]}.{crate}.{self.role}.{aggregate}.>"

    async def _last(self, stream: str, subject: str) -> Event | Poison | None:
        return await self._get(stream, {"last_by_subj": subject})

    async def _get(self, stream: str, wanted: dict[str, str | int]) -> Event | Poison | None:
        try:
            reply = await self.nats.request(
                f"$JS.API.DIRECT.GET.{stream}", json.dumps(wanted).encode(), timeout=_TIMEOUT_S
            )
        except TRANSIENT as error:
            raise Unavailable(f"the log doesn't answer for {wanted}: retry") from error
        headers = reply.headers or {}
        if headers.get("Status") == "404":
            return None
        return envelope.decode(
            stream=stream,
            subject=headers["Nats-Subject"],
            headers=headers,
            body=reply.data,
            position=int(headers["Nats-Sequence"]),
        )
