"""The receipt itself: COSE_Sign1 (RFC 9052), untagged, over a body of version 0.

The receipt's id is a hash of the Sig_structure, the bytes that are signed; the signature isn't part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import cbor2

from affidavit.verify.encoding import array, blob, decode, encode, one_of, record, row, text, uint
from affidavit.verify.errors import Refused
from affidavit.verify.hashing import DIGEST_BYTES, Purpose, digest
from affidavit.verify.signature import KID_BYTES, SIGNATURE_BYTES

VERSION = 0
MAX_RECEIPT_BYTES = 64 * 1024
MAX_CITATIONS = 256
CHAIN_BYTES = 16
INCARNATION_BYTES = 16
MAX_ISSUER_CHARS = 255
MAX_NAME_CHARS = 255
NO_PARENT = bytes(DIGEST_BYTES)
ROLES = ("support", "contra", "context")
CONTENT_TYPE = "application/vnd.affidavit.receipt+cbor"

# The one allowed protected header: algorithm Ed25519 (-19, RFC 9864), content type, key id. Labels are integers, as
# COSE has it, so it is compared as bytes and never decoded.
_HEADER_START = cbor2.dumps({1: -19, 3: CONTENT_TYPE, 4: bytes(KID_BYTES)})[:-KID_BYTES]

_DIGEST = blob(DIGEST_BYTES, DIGEST_BYTES)
_ENVELOPE = row(blob(1, 256), record({}), blob(1, MAX_RECEIPT_BYTES), blob(SIGNATURE_BYTES, SIGNATURE_BYTES))
_BODY = record(
    {
        "v": one_of(VERSION),
        "iss": text(1, MAX_ISSUER_CHARS),
        "chn": blob(CHAIN_BYTES, CHAIN_BYTES),
        "seq": uint(),
        "par": _DIGEST,
        "iat": uint(),
        "qry": _DIGEST,
        "ans": record({"raw": _DIGEST, "rep": _DIGEST, "txt": _DIGEST}),
        "cur": record({"inc": blob(INCARNATION_BYTES, INCARNATION_BYTES), "ssq": uint()}),
        "cit": array(
            record({"com": _DIGEST, "idx": uint(), "len": uint(), "off": uint(), "rol": one_of(*ROLES)}),
            MAX_CITATIONS,
        ),
        "ret": record({"can": _DIGEST}),
        "eng": _DIGEST,
        "pol": _DIGEST,
        "mod": record({"app": text(1, MAX_NAME_CHARS), "req": text(1, MAX_NAME_CHARS), "why": text(0, MAX_NAME_CHARS)}),
        "llm": record({"mdl": text(1, MAX_NAME_CHARS), "rid": text(1, MAX_NAME_CHARS)}, optional=("rid",)),
    },
    optional=("llm",),
)


class Receipt(NamedTuple):
    """A receipt whose form is right; says nothing yet about its signature.

    Attributes:
        cose: All of its bytes.
        kid: Which key it says that it was signed with, 16 bytes.
        signed: The Sig_structure: the bytes under the signature.
        signature: 64 bytes.
        body: The decoded payload; see the format description for its fields.
        id: 32 bytes.
    """

    cose: bytes
    kid: bytes
    signed: bytes
    signature: bytes
    body: dict[str, Any]
    id: bytes

    @property
    def issuer(self) -> str:
        """Origin of the log that it belongs to."""
        found: str = self.body["iss"]
        return found

    @property
    def chain(self) -> bytes:
        """Chain id, 16 bytes."""
        found: bytes = self.body["chn"]
        return found

    @property
    def sequence(self) -> int:
        """Place in the chain, from 0."""
        found: int = self.body["seq"]
        return found

    @property
    def parent(self) -> bytes:
        """Id of the receipt before it, 32 zero bytes for the first."""
        found: bytes = self.body["par"]
        return found

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"receipt {self.sequence} ({self.id.hex()[:16]})"


def protected_header(kid: bytes) -> bytes:
    """The protected header of every receipt signed with one key.

    Args:
        kid: Key id, 16 bytes.

    Returns:
        Its bytes.
    """
    return _HEADER_START + kid


def signing_input(kid: bytes, payload: bytes) -> bytes:
    """The Sig_structure: what is signed and what the receipt's id is a hash of.

    Args:
        kid: Key id, 16 bytes.
        payload: The encoded body.

    Returns:
        The bytes to sign.
    """
    return cbor2.dumps(["Signature1", protected_header(kid), b"", payload])


def receipt_id(signed: bytes) -> bytes:
    """Id of a receipt, 32 bytes.

    Args:
        signed: Its Sig_structure.
    """
    return digest(Purpose.RECEIPT_ID, signed)


def body_payload(body: Mapping[str, Any]) -> bytes:
    """Encode a body and make sure that a verifier will read it.

    Args:
        body: Fields of the body.

    Returns:
        The payload.

    Raises:
        Refused: When a verifier would refuse it.
        TypeError: When a field is of a kind that has no encoding.
    """
    payload = encode(dict(body))
    decode(payload, _BODY, step="body", limit=MAX_RECEIPT_BYTES)
    return payload


def assemble(kid: bytes, payload: bytes, signature: bytes) -> bytes:
    """Put a receipt together.

    Args:
        kid: Key id, 16 bytes.
        payload: The encoded body.
        signature: 64 bytes over `signing_input(kid, payload)`.

    Returns:
        COSE_Sign1 bytes.
    """
    return encode([protected_header(kid), {}, payload, signature])


def parse(cose: bytes) -> Receipt:
    """Read a receipt.

    Args:
        cose: COSE_Sign1 bytes.

    Returns:
        The receipt, its signature not yet checked.

    Raises:
        Refused: When size, encoding, header or body isn't exactly what the format says.
    """
    protected, _, payload, signature = decode(cose, _ENVELOPE, step="receipt", limit=MAX_RECEIPT_BYTES)
    if len(protected) != len(_HEADER_START) + KID_BYTES or not protected.startswith(_HEADER_START):
        raise Refused("header", "not the one allowed header: Ed25519 (-19), content type of a receipt, key id")
    body = decode(payload, _BODY, step="body", limit=MAX_RECEIPT_BYTES)
    kid = protected[-KID_BYTES:]
    signed = signing_input(kid, payload)
    return Receipt(cose, kid, signed, signature, body, receipt_id(signed))
