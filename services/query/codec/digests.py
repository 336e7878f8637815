"""Digests that a receipt carries: what the answer was made by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from affidavit.verify.encoding import Value, encode
from blake3 import blake3

from services.query.domain.profile import Profile

# Contexts of BLAKE3's derive_key mode; they never change.
_POLICY = "affidavit 2026-11-30 query: profile manifest"
_ENGINE = "affidavit 2026-11-30 query: engine"


def policy_digest(profile: Profile) -> bytes:
    """Digest of a profile's manifest.

    Args:
        profile: The manifest.

    Returns:
        32 bytes: BLAKE3 over the manifest's deterministic CBOR.
    """
    return bytes(blake3(encode(cast("Value", profile.as_map())), derive_key_context=_POLICY).digest())


def engine_digest(build: str, fingerprints: Sequence[str], generation: int) -> bytes:
    """Digest of what computed an answer.

    Args:
        build: Version of the server.
        fingerprints: Of the models in use, sorted.
        generation: Index generation that answered.

    Returns:
        32 bytes: BLAKE3 over the deterministic CBOR of the three.
    """
    parts = encode({"build": build, "models": list(fingerprints), "generation": generation})
    return bytes(blake3(parts, derive_key_context=_ENGINE).digest())
