"""The connection to the log, and its two streams with their configuration, owned by us and applied at start."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import secrets
from collections.abc import Iterator

import nats
from nats.aio.client import Client
from nats.errors import ConnectionClosedError, NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext, api
from nats.js.errors import BadRequestError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from services import topology
from services.kernel.errors import Corrupt, Unavailable

_log = logging.getLogger("affidavit.bus")
_INCARNATION = "affidavit-incarnation"
_NAME_IN_USE = 10058
DEDUP_WINDOW_S = 120
# What passes by itself: the server is away, or on its way up.
TRANSIENT = (
    NatsTimeoutError,
    NoStreamResponseError,
    NoRespondersError,
    ServiceUnavailableError,
    ConnectionClosedError,
)


def stream_config(name: str, *, replicas: int, incarnation: str) -> api.StreamConfig:
    """The one configuration of a stream.

    Args:
        name: KNOWLEDGE or SIGNALS.
        replicas: 1 on one machine, 3 in a cluster.
        incarnation: Hex of 16 random bytes; a stream that was made again has another one.

    Returns:
        File storage, no limits, nothing deleted or purged, new messages refused rather than old ones dropped.
    """
    return api.StreamConfig(
        name=name,
        subjects=[f"{topology.SUBJECT_ROOTS[name]}.>"],
        storage=api.StorageType.FILE,
        retention=api.RetentionPolicy.LIMITS,
        discard=api.DiscardPolicy.NEW,
        deny_delete=True,
        deny_purge=True,
        allow_direct=True,
        duplicate_window=DEDUP_WINDOW_S,
        num_replicas=replicas,
        metadata={_INCARNATION: incarnation},
    )


async def ensure_stream(js: JetStreamContext, name: str, *, replicas: int = 1) -> bytes:
    """Create the stream or bring its configuration back to ours.

    Args:
        js: JetStream context.
        name: KNOWLEDGE or SIGNALS.
        replicas: Copies in the cluster.

    Returns:
        The stream's incarnation, 16 bytes.

    Raises:
        Corrupt: When a stream of that name exists that affidavit didn't make.
        Unavailable: When the server stops answering meanwhile.
    """
    with _answering(name):
        info = await _find_or_create(js, name, replicas)
        found = _incarnation_of(info)
        wanted = stream_config(name, replicas=replicas, incarnation=found.hex())
        if _drifted(info.config, wanted):
            await js.update_stream(wanted)
    return found


async def incarnation(js: JetStreamContext, name: str) -> bytes:
    """The incarnation of a stream that exists; nothing is created or changed.

    Args:
        js: JetStream context.
        name: KNOWLEDGE or SIGNALS.

    Returns:
        16 bytes.

    Raises:
        NotFoundError: When there is no such stream.
        Corrupt: When affidavit didn't make it.
        Unavailable: When the server stops answering meanwhile.
    """
    with _answering(name):
        return _incarnation_of(await js.stream_info(name))


@contextlib.contextmanager
def _answering(name: str) -> Iterator[None]:
    try:
        yield
    except TRANSIENT as error:
        raise Unavailable(f"nats-server doesn't answer for stream {name} ({type(error).__name__}): retry") from error


def _incarnation_of(info: api.StreamInfo) -> bytes:
    found = (info.config.metadata or {}).get(_INCARNATION)
    if found is None:
        raise Corrupt(
            f"stream {info.config.name} exists but was not made by affidavit: point to another NATS account or server"
        )
    return bytes.fromhex(found)


async def _find_or_create(js: JetStreamContext, name: str, replicas: int) -> api.StreamInfo:
    try:
        return await js.stream_info(name)
    except NotFoundError:
        pass
    try:
        return await js.add_stream(stream_config(name, replicas=replicas, incarnation=secrets.token_hex(16)))
    except BadRequestError as error:
        if error.err_code != _NAME_IN_USE:
            raise
        # Another role was faster and drew another incarnation: its stream is the one.
        return await js.stream_info(name)


def _drifted(found: api.StreamConfig, wanted: api.StreamConfig) -> bool:
    ours = {field.name for field in dataclasses.fields(wanted) if getattr(wanted, field.name) is not None} - {
        "metadata"
    }
    return any(getattr(found, name) != getattr(wanted, name) for name in ours)


async def connect(url: str, role: str) -> Client:
    """Connect to nats-server, and again whenever the connection is lost.

    Args:
        url: NATS URL.
        role: Role that the connection is named after.

    Returns:
        The connection.

    Raises:
        Unavailable: When the server doesn't answer.
    """

    async def report(error: Exception) -> None:
        # nats-py reports a denied publish or a lost connection only here.
        _log.warning("nats-server at %s: %s; what can be repeated is", url, type(error).__name__)

    try:
        return await nats.connect(
            url, name=f"affidavit-{role}", max_reconnect_attempts=-1, reconnect_time_wait=0.2, error_cb=report
        )
    except (OSError, nats.errors.Error) as error:
        raise Unavailable(f"nats-server at {url} doesn't answer: start it, or correct the address") from error
