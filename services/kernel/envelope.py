"""Events on the wire: CloudEvents over NATS in binary mode, body protobuf.

Source: CloudEvents 1.0.2 and its NATS protocol binding, working draft 1.0.3 (`ce-` headers, percent-encoded values).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from urllib.parse import quote, unquote

from google.protobuf.message import DecodeError, Message

from services import topology
from services.kernel.upcasting import upcast

MAX_EVENT_BYTES = 64 * 1024
CONTENT_TYPE = "application/protobuf"
HEADER_NAMES = (
    "ce-specversion",
    "ce-id",
    "ce-type",
    "ce-source",
    "ce-subject",
    "ce-time",
    "ce-datacontenttype",
    "ce-schemaversion",
    "traceparent",
)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VERSION = re.compile(r"[1-9][0-9]{0,3}")
_HEAD = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event as a handler sees it.

    Attributes:
        key: Idempotency key: the same fact always has the same key, and no two facts share one.
        crate: Crate that it belongs to.
        service: Role that emitted it.
        aggregate: Opaque id of the thing that it is about.
        name: Message name.
        stream: KNOWLEDGE or SIGNALS.
        position: Sequence in the stream, from 1.
        time: When it was appended, by the emitter's clock, UTC.
        message: The protobuf body.
        deliveries: How often this consumer was given it, from 1.
        traceparent: W3C trace context of the emitter, or empty.
        retry: Position of the TaskRetried that hands it over again, 0 for the first time.
        old: Older than its consumer, or than what the broker remembers of appended facts.
    """

    key: str
    crate: str
    service: str
    aggregate: str
    name: str
    stream: str
    position: int
    time: datetime
    message: Message
    deliveries: int = 1
    traceparent: str = ""
    retry: int = 0
    old: bool = False

    @property
    def repeated(self) -> bool:
        """Whether it may have been handled before: only the log can tell then what stands already."""
        return self.deliveries > 1 or self.old

    @property
    def place(self) -> int:
        """Where in KNOWLEDGE it takes effect: its own position, or that of its retry."""
        return self.retry or self.position


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """A stored message that can't be read as an event.

    Attributes:
        retry: As of an event.
    """

    stream: str
    subject: str
    position: int
    reason: str
    retry: int = 0


def subject_token(name: str) -> str:
    """Event name as a subject token: DocumentIngested -> document_ingested."""
    return _HEAD.sub("_", name).lower()


@cache
def event_type(name: str, service: str) -> topology.EventType:
    """Find the topology row of a message.

    Args:
        name: Message name.
        service: Role that wants to emit it; only matters for TaskFailed.

    Returns:
        The row.

    Raises:
        KeyError: When the topology doesn't list the message, or lists it for another role.
    """
    if name == topology.TASK_FAILED:
        return topology.task_failed(service)
    for row in topology.EVENTS:
        if row.name == name and row.service == service:
            return row
    raise KeyError(f"{service} may not emit {name}: add it to services/topology.py first")


@cache
def _message_class(token: str, service: str, stream: str) -> tuple[topology.EventType, type[Message]]:
    for row in (*topology.EVENTS, topology.task_failed(service)):
        if (subject_token(row.name), row.service, row.stream) == (token, service, stream):
            found: type[Message] = getattr(importlib.import_module(row.module), row.name)
            return row, found
    raise KeyError(f"unknown event {token!r} of {service!r} in {stream}")


def check_tokens(*tokens: str) -> None:
    """Refuse what isn't a plain subject token: a wildcard would read other crates.

    Args:
        tokens: Crates, roles or aggregates.

    Raises:
        ValueError: Naming the first that isn't plain.
    """
    for token in tokens:
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"{token[:80]!r} can't stand in a subject: letters, digits, '_' and '-' only, 1 to 64")


def subject(row: topology.EventType, *, crate: str, aggregate: str) -> str:
    """Subject of one event: root, crate, service, aggregate, event.

    Raises:
        ValueError: When crate or aggregate isn't a plain subject token.
    """
    check_tokens(crate, aggregate)
    return f"{topology.SUBJECT_ROOTS[row.stream]}.{crate}.{row.service}.{aggregate}.{subject_token(row.name)}"


def encode(
    message: Message, row: topology.EventType, *, crate: str, aggregate: str, key: str, time: datetime
) -> tuple[dict[str, str], bytes]:
    """Turn an event into NATS headers and body.

    Args:
        message: Body.
        row: Its topology row.
        crate: Crate.
        aggregate: Aggregate id.
        key: Idempotency key, becomes the CloudEvents id.
        time: UTC.

    Returns:
        Headers and body.

    Raises:
        ValueError: When the body is over 64 KiB: content belongs into a pack.
    """
    body = message.SerializeToString(deterministic=True)
    if len(body) > MAX_EVENT_BYTES:
        raise ValueError(f"{row.name} of {aggregate} has {len(body)} bytes; events hold at most {MAX_EVENT_BYTES}")
    headers = {
        "ce-specversion": "1.0",
        "ce-id": quote(key, safe="-_.~:"),
        "ce-type": row.type_uri,
        "ce-source": quote(f"/affidavit/{row.service}", safe="/"),
        "ce-subject": quote(f"{crate}/{aggregate}", safe="/-_.~"),
        "ce-time": time.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "ce-datacontenttype": CONTENT_TYPE,
        "ce-schemaversion": str(row.version),
    }
    return headers, body


def _version(headers: Mapping[str, str]) -> int:
    version = headers.get("ce-schemaversion", "")
    if not _VERSION.fullmatch(version):
        raise ValueError(f"schema version {version[:20]!r} is unknown to this release")
    return int(version)


def decode(
    *, stream: str, subject: str, headers: Mapping[str, str], body: bytes, position: int, deliveries: int = 1
) -> Event | Poison:
    """Read a stored message.

    Args:
        stream: Stream that it was read from.
        subject: Its subject.
        headers: Its NATS headers.
        body: Its body.
        position: Sequence in the stream.
        deliveries: Delivery count of this consumer.

    Returns:
        The event, or what is wrong with it: a poison event must reach the handler's edge, not vanish below it.
    """
    try:
        _, _, crate, service, aggregate, name = subject.split(".")
        row, message_class = _message_class(name, service, stream)
        message = message_class()
        message.ParseFromString(body)
        upcast(message, version=_version(headers), wanted=row.version)
        return Event(
            key=unquote(headers["ce-id"]),
            crate=crate,
            service=service,
            aggregate=aggregate,
            name=message.DESCRIPTOR.name,
            stream=stream,
            position=position,
            time=datetime.fromisoformat(headers["ce-time"]),
            message=message,
            deliveries=deliveries,
            traceparent=headers.get("traceparent", ""),
        )
    except (KeyError, ValueError, DecodeError) as error:
        return Poison(
            stream=stream, subject=subject, position=position, reason=f"{type(error).__name__}: {str(error)[:200]}"
        )
