"""Channels to services: message sizes and retries in one place, light enough for the command line."""

from __future__ import annotations

import json

import grpc

from services.kernel.errors import Rejected

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)
_MAX_PORT = 65_535
# Without it, two processes may listen on one port and share its calls at random.
SERVER_OPTIONS = (*OPTIONS, ("grpc.so_reuseport", 0))
_RETRIES = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}


def channel(address: str) -> grpc.aio.Channel:
    """Open a channel to a role; calls are retried while it is unavailable.

    Args:
        address: host:port.

    Returns:
        The channel.
    """
    options = (*OPTIONS, ("grpc.service_config", json.dumps(_RETRIES)))
    return grpc.aio.insecure_channel(address, options=options)


def check_port(address: str) -> None:
    """Refuse what is no address; gRPC itself takes ports modulo 65536.

    Args:
        address: host:port.

    Raises:
        Rejected: When the port isn't a number from 0 to 65535, or there is no host.
    """
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > _MAX_PORT:
        raise Rejected(f"{address!r} is no address: write host:port with a port of at most {_MAX_PORT}")
