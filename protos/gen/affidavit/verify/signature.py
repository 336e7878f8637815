"""One ed25519 rule, pinned: libraries differ on edge cases, a receipt must not.

A signature (R, S) over a message under a public key A is good when all of these hold:
  1. A and R are canonical encodings: y < 2^255 - 19, and no sign bit where x is 0;
  2. neither A nor R is a point of small order;
  3. S < L, the order of the base point;
  4. [S]B = R + [k]A without multiplying by the cofactor, k = SHA-512(R || A || M) mod L over the bytes as they stand.
The first three are checked here whatever the library does; the fourth is libsodium's, through PyNaCl.
Source: RFC 8032 5.1.7 and the survey of validation rules at https://eprint.iacr.org/2020/1244.
"""

from __future__ import annotations

import hashlib

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from affidavit.verify.errors import Refused

PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64
KID_BYTES = 16
STEP = "signature"

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_SIGN_BIT = 1 << 255
# The canonical encodings of the eight points whose order divides the cofactor.
_SMALL_ORDER = frozenset(
    bytes.fromhex(point)
    for point in (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    )
)


def key_id(public_key: bytes) -> bytes:
    """Short name of a key: the first 16 bytes of SHA-256 over its 32 bytes."""
    return hashlib.sha256(public_key).digest()[:KID_BYTES]


def point_fault(point: bytes) -> str | None:
    """What is wrong with the encoding of a curve point, if anything.

    Args:
        point: 32 bytes.

    Returns:
        The fault in words, or None. That the bytes are on the curve at all is left to the library.
    """
    number = int.from_bytes(point, "little")
    y = number & (_SIGN_BIT - 1)
    if y >= _P or (y in (1, _P - 1) and number & _SIGN_BIT):
        return "is not a canonical encoding"
    if point in _SMALL_ORDER:
        return "is a point of small order"
    return None


def check_public_key(public_key: bytes) -> None:
    """Refuse public keys that no honest signer has.

    Args:
        public_key: 32 bytes.

    Raises:
        Refused: When it has another length, isn't canonical, or is of small order.
    """
    if len(public_key) != PUBLIC_KEY_BYTES:
        raise Refused(STEP, f"a public key has {PUBLIC_KEY_BYTES} bytes, this one {len(public_key)}")
    fault = point_fault(public_key)
    if fault:
        raise Refused(STEP, f"the public key {fault}")


def check(public_key: bytes, message: bytes, signature: bytes) -> None:
    """Check a signature by the rule above.

    Args:
        public_key: 32 bytes, from the pinned list and never from the signed thing.
        message: The signed bytes.
        signature: 64 bytes.

    Raises:
        Refused: When it isn't good; the reason says which part of the rule it breaks.
    """
    check_public_key(public_key)
    if len(signature) != SIGNATURE_BYTES:
        raise Refused(STEP, f"a signature has {SIGNATURE_BYTES} bytes, this one {len(signature)}")
    fault = point_fault(signature[:32])
    if fault:
        raise Refused(STEP, f"its point R {fault}")
    if int.from_bytes(signature[32:], "little") >= _L:
        raise Refused(STEP, "its scalar S is not below the group order")
    try:
        VerifyKey(public_key).verify(message, signature)
    except BadSignatureError as error:
        raise Refused(STEP, "was not made over these bytes with this key") from error
