"""The log as services see it: append a fact, look up the last one, follow it.

Appends carry expected-sequence headers and a message id; see the ADR on where FastStream is used and where it isn't.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.message import Message
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError, BadRequestError
from opentelemetry import propagate

from services import topology
from services.kernel import envelope, streams
from services.kernel.envelope import Event, Poison
from services.kernel.errors import Conflict, Unavailable
from services.kernel.reader import LogReader
from services.kernel.streams import TRANSIENT

__all__ = ["Appended", "Bus", "LogReader", "decode_message"]
_WRONG_LAST_SEQUENCE = 10071
_APPEND_ATTEMPTS = 6
_TAILS = 10_000
# Reply subject of a delivery: $JS.ACK.stream.consumer.deliveries.stream sequence.consumer sequence.time.pending
_ACK = ["$JS", "ACK"]
_ACK_PARTS = 9


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
        try:
            for name in (topology.KNOWLEDGE, topology.SIGNALS):
                bus._incarnations[name] = await streams.ensure_stream(bus.js, name, replicas=replicas)
        except BaseException:
            await bus.close()
            raise
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
        stream = envelope.event_type(name, self.role).stream
        facts = self.facts(crate=crate, service=self.role, aggregate=aggregate, name=name, stream=stream)
        async for fact in facts:
            if fact.key == key:
                return True
        return False

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
            except TRANSIENT:
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
    stream, position, deliveries = _delivery(message)
    return envelope.decode(
        stream=stream,
        subject=message.subject,
        headers=message.headers or {},
        body=message.data,
        position=position,
        deliveries=deliveries or 1,
    )


def _delivery(message: Msg) -> tuple[str, int, int]:
    """Stream, position and number of the delivery.

    nats-py's `metadata` makes three objects and a time with zone of each message, which is as much work as all of the
    rest of reading it.
    """
    parts = message.reply.split(".")
    if len(parts) == _ACK_PARTS and parts[:2] == _ACK:
        _, _, stream, _, deliveries, position, *_ = parts
        return stream, int(position), int(deliveries)
    metadata = message.metadata
    return metadata.stream, metadata.sequence.stream, metadata.num_delivered
