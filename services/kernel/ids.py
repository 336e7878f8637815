"""Random ids, digests and time: the impure things that domain code takes as arguments."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from blake3 import blake3


def random_id() -> str:
    """128 random bits, 32 hex digits."""
    return secrets.token_hex(16)


def utc_now() -> datetime:
    """Now, aware, UTC."""
    return datetime.now(UTC)


def digest(*fields: bytes) -> bytes:
    """BLAKE3 over length-prefixed fields, 32 bytes: no two lists of fields share an input."""
    hasher = blake3()
    for field in fields:
        hasher.update(len(field).to_bytes(8, "big"))
        hasher.update(field)
    return hasher.digest()
