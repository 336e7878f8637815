"""Channels to services: message sizes and retries in one place, light enough for the command line."""

from __future__ import annotations

import json

import grpc

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)
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
