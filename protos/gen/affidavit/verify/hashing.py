"""BLAKE3 with one hard-coded context per purpose, and salted commitments.

A commitment hides its text: without the 32 random bytes of its salt a text can't be guessed from it. It binds its text:
no other text and salt open it. The hashed input is the deterministic CBOR array of salt and fields, so every field
carries its own length and no two lists of fields share an input.
"""

from __future__ import annotations

from enum import Enum

from blake3 import blake3

from affidavit.verify.encoding import Value, encode

DIGEST_BYTES = 32
SALT_BYTES = 32


class Purpose(Enum):
    """Context strings of BLAKE3's derive_key mode; they never change and are never shared."""

    RECEIPT_ID = "affidavit 2026-11-30 receipt: id"
    QUESTION = "affidavit 2026-11-30 receipt: question"
    ANSWER = "affidavit 2026-11-30 receipt: answer as delivered"
    RAW_ANSWER = "affidavit 2026-11-30 receipt: answer before repair"
    REPAIRS = "affidavit 2026-11-30 receipt: repairs"
    CANDIDATES = "affidavit 2026-11-30 receipt: candidates"
    EVIDENCE = "affidavit 2026-11-30 receipt: evidence"
    KEYS_FILE = "affidavit 2026-11-30 receipt: keys file"


def digest(purpose: Purpose, data: bytes) -> bytes:
    """Hash bytes for one purpose.

    Args:
        purpose: What the hash stands for.
        data: Exact bytes.

    Returns:
        32 bytes.
    """
    return blake3(data, derive_key_context=purpose.value).digest()


def commitment(purpose: Purpose, salt: bytes, *fields: Value) -> bytes:
    """Commit to fields.

    Args:
        purpose: What is committed to.
        salt: 32 fresh random bytes.
        *fields: What is committed to, in the order that the format fixes.

    Returns:
        32 bytes.
    """
    return digest(purpose, encode([salt, *fields]))


def evidence_commitment(
    salt: bytes, *, document_id: str, revision: int, ordinal: int, byte_start: int, content: bytes
) -> bytes:
    """Commit to one piece of evidence and to the place that it was cut from.

    Args:
        salt: 32 fresh random bytes.
        document_id: Opaque id of the document.
        revision: Revision of the document, from 1.
        ordinal: Number of the chunk within the revision.
        byte_start: Offset into the revision's original bytes.
        content: The original bytes at that place.

    Returns:
        32 bytes.
    """
    return commitment(Purpose.EVIDENCE, salt, document_id, revision, ordinal, byte_start, content)
