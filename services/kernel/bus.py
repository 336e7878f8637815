"""The log as services see it: append a fact, look up the last one, follow it.

Appends carry expected-sequence headers and a message id; see the ADR on where FastStream is used and where it isn't.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.message import Message
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js.errors import (
    APIError,
    BadRequestError,
    NoStreamResponseError,
    NotFoundError,
    ServiceUnavailableError,
)
from opentelemetry import propagate

from services import topology
from services.kernel import envelope, streams
from services.kernel.envelope import Event, Poison
from services.kernel.errors import Conflict, Corrupt, Unavailable

_WRONG_LAST_SEQUENCE = 10071
_TRANSIENT = (
    NatsTimeoutError,
    NoStreamResponseError,
    NoRespondersError,
    ServiceUnavailableError,
    ConnectionClosedError,
)
_APPEND_TIMEOUT_S = 5.0
_APPEND_ATTEMPTS = 6
_RECENT_S = 1.0
_TAILS = 10_000


@dataclass(frozen=True, slots=True)
class Appended:
    """Where an event stands in its stream.

    Attributes:
        position: Sequence in the stream.
        duplicate: True when the same fact stood there already.
    """

    position: int
    duplicate: bool


def _utc_now() -> datetime:
    return datetime.now(UTC)


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
        self.js = client.jetstream(timeout=_APPEND_TIMEOUT_S)
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
        except _TRANSIENT as error:
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
                f"$JS.API.DIRECT.GET.{stream}", json.dumps(wanted).encode(), timeout=_APPEND_TIMEOUT_S
            )
        except _TRANSIENT as error:
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


class Bus(LogReader):
    """Connection of one role to the log, to append as well.

    Attributes:
        role: Role that events are emitted as.
    """

    def __init__(self, *, role: str, client: Client, url: str, clock: Callable[[], datetime] = _utc_now) -> None:
        super().__init__(role=role, client=client, url=url)
        self._clock = clock
        self._tails: OrderedDict[str, tuple[int, str]] = OrderedDict()

    @classmethod
    async def connect(cls, url: str, *, role: str, replicas: int = 1) -> Bus:
        """Connect and make sure that both streams exist as configured.

        Args:
            url: NATS URL.
            role: Role that events are emitted as.
            replicas: Copies of each stream.

        Returns:
            The bus.

        Raises:
            Unavailable: When the server doesn't answer.
        """
        bus = cls(role=role, client=await streams.connect(url, role), url=url)
        for name in (topology.KNOWLEDGE, topology.SIGNALS):
            bus._incarnations[name] = await streams.ensure_stream(bus.js, name, replicas=replicas)
        return bus

    async def append(
        self, *, crate: str, aggregate: str, message: Message, key: str, expected: int | None = None
    ) -> Appended:
        """Append one event; when it returns, the event is on disk.

        Args:
            crate: Crate.
            aggregate: Opaque id of the thing that the event is about.
            message: Body; its type decides subject and stream.
            key: Idempotency key.
            expected: Position of the aggregate's last event of this role, 0 for none; None doesn't check.

        Returns:
            Its position.

        Raises:
            Conflict: When the aggregate's last event stands elsewhere: somebody was faster.
            Unavailable: When the log doesn't confirm after several attempts.
        """
        row = envelope.event_type(message.DESCRIPTOR.name, self.role)
        subject = envelope.subject(row, crate=crate, aggregate=aggregate)
        headers, body = envelope.encode(message, row, crate=crate, aggregate=aggregate, key=key, time=self._clock())
        propagate.inject(headers)
        headers["Nats-Msg-Id"] = f"{subject}:{headers['ce-id']}"
        if expected is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(expected)
            headers["Nats-Expected-Last-Subject-Sequence-Subject"] = self._wildcard(row.stream, crate, aggregate)
        return await self._publish(row.stream, subject, headers, body)

    async def append_once(self, *, crate: str, aggregate: str, message: Message, key: str) -> Appended:
        """Append unless the aggregate's last event is this very fact: what an idempotent step uses.

        Args:
            crate: Crate.
            aggregate: Aggregate.
            message: Body.
            key: Idempotency key.

        Returns:
            Its position, old or new.

        Raises:
            Conflict: When other writers keep getting in between.
            Unavailable: When the log doesn't answer.
        """
        row = envelope.event_type(message.DESCRIPTOR.name, self.role)
        subject = self._wildcard(row.stream, crate, aggregate)
        # Most aggregates are new, or were written here: a guess that is wrong costs a refusal.
        expected, held = self._tails.pop(subject, (0, ""))
        if held == f"{row.name} {key}":
            self._remember(subject, expected, held)
            return Appended(expected, duplicate=True)
        for _ in range(_APPEND_ATTEMPTS):
            try:
                appended = await self.append(
                    crate=crate, aggregate=aggregate, message=message, key=key, expected=expected
                )
            except Conflict:
                last = await self._last(row.stream, subject)
                if isinstance(last, Event) and last.key == key and last.name == row.name:
                    return Appended(last.position, duplicate=True)
                expected = last.position if last else 0
            else:
                self._remember(subject, appended.position, f"{row.name} {key}")
                return appended
        raise Conflict(f"aggregate {aggregate} of crate {crate} is being written by somebody else: retry")

    async def stands(self, *, crate: str, aggregate: str, name: str, key: str) -> bool:
        """Whether a fact of this role stands in the log, however long ago: for an event that comes again.

        Args:
            crate: Crate.
            aggregate: Aggregate.
            name: Message name.
            key: Idempotency key.

        Returns:
            True when it does.

        Raises:
            Unavailable: When the log doesn't answer.
        """
        row = envelope.event_type(name, self.role)
        subject = envelope.subject(row, crate=crate, aggregate=aggregate)
        position = 0
        while True:
            found = await self._get(row.stream, {"next_by_subj": subject, "seq": position + 1})
            if found is None:
                return False
            if isinstance(found, Event) and found.key == key:
                return True
            position = found.position

    def _remember(self, subject: str, position: int, fact: str) -> None:
        self._tails[subject] = (position, fact)
        if len(self._tails) > _TAILS:
            self._tails.popitem(last=False)

    async def _publish(self, stream: str, subject: str, headers: dict[str, str], body: bytes) -> Appended:
        for attempt in range(_APPEND_ATTEMPTS):
            try:
                # The same Nats-Msg-Id makes a repeated attempt harmless when only the confirmation was lost.
                ack = await self.js.publish(subject, body, headers=headers, stream=stream)
                return Appended(ack.seq, duplicate=bool(ack.duplicate))
            except BadRequestError as error:
                if error.err_code == _WRONG_LAST_SEQUENCE:
                    raise Conflict(f"{subject} was written by somebody else meanwhile: read it again") from error
                raise
            except _TRANSIENT:
                await asyncio.sleep(0.1 * 2**attempt)
            except APIError as error:
                raise Unavailable(f"the log refused {subject}: {error.description}; see `affidavit doctor`") from error
        raise Unavailable(f"the log did not confirm {subject}: is nats-server up and has its disk room?")


def decode_message(message: Msg) -> Event | Poison:
    """Read a delivered JetStream message.

    Args:
        message: As nats-py gives it.

    Returns:
        The event, or what is wrong with it.
    """
    metadata = message.metadata
    return envelope.decode(
        stream=metadata.stream,
        subject=message.subject,
        headers=message.headers or {},
        body=message.data,
        position=metadata.sequence.stream,
        deliveries=metadata.num_delivered or 1,
    )
