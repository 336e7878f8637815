"""The pinned ed25519 rule, each part on its own."""

from __future__ import annotations

import pytest
from affidavit.verify import signature
from affidavit.verify.errors import Refused
from nacl.signing import SigningKey

KEY = SigningKey(bytes(range(32)))
PUBLIC = bytes(KEY.verify_key)
MESSAGE = b"what was signed"
GOOD = KEY.sign(MESSAGE).signature
L = 2**252 + 27742317777372353535851937790883648493
P = 2**255 - 19


def refusal(public_key: bytes, signed: bytes, message: bytes = MESSAGE) -> str:
    with pytest.raises(Refused) as caught:
        signature.check(public_key, message, signed)
    return caught.value.reason


def test_a_good_signature_passes() -> None:
    signature.check(PUBLIC, MESSAGE, GOOD)


def test_a_changed_message_key_or_signature_fails() -> None:
    assert "not made over these bytes" in refusal(PUBLIC, GOOD, MESSAGE + b".")
    assert "not made over these bytes" in refusal(bytes(SigningKey(bytes(32)).verify_key), GOOD)
    assert "not made over these bytes" in refusal(PUBLIC, SigningKey(bytes(32)).sign(MESSAGE).signature)


def test_a_scalar_with_the_order_added_fails() -> None:
    scalar = int.from_bytes(GOOD[32:], "little") + L
    forged = GOOD[:32] + scalar.to_bytes(32, "little")
    assert forged != GOOD
    assert refusal(PUBLIC, forged) == "its scalar S is not below the group order"


@pytest.mark.parametrize("size", [0, 31, 33, 63, 65])
def test_wrong_lengths_fail(size: int) -> None:
    assert "has 64 bytes" in refusal(PUBLIC, bytes(size))
    assert "has 32 bytes" in refusal(bytes(size), GOOD)


@pytest.mark.parametrize(
    ("point", "fault"),
    [
        (bytes(32), "is a point of small order"),
        ((1).to_bytes(32, "little"), "is a point of small order"),
        ((P - 1).to_bytes(32, "little"), "is a point of small order"),
        (P.to_bytes(32, "little"), "is not a canonical encoding"),
        ((P + 1).to_bytes(32, "little"), "is not a canonical encoding"),
        ((2**255 - 1).to_bytes(32, "little"), "is not a canonical encoding"),
        ((1 | 1 << 255).to_bytes(32, "little"), "is not a canonical encoding"),
        ((P - 1 | 1 << 255).to_bytes(32, "little"), "is not a canonical encoding"),
    ],
)
def test_odd_points_fail_as_key_and_as_r(point: bytes, fault: str) -> None:
    assert refusal(point, GOOD) == f"the public key {fault}"
    assert refusal(PUBLIC, point + GOOD[32:]) == f"its point R {fault}"


def test_the_key_id_is_sha256_cut_to_16_bytes() -> None:
    assert signature.key_id(bytes(32)).hex() == "66687aadf862bd776c8fc18b8e9f8e20"
