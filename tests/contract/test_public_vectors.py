"""Public test vectors: what the verifier takes and refuses is what the wider world expects of it.

The folder comes from AFFIDAVIT_VECTORS; its README says where each file is from.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from affidavit.verify import signature
from affidavit.verify.errors import Refused
from blake3 import blake3
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
PINNED_COUNT = 43
PINNED_SET = "36521713b91ca5d28544f38cd646b5494f5911399bfe4635a8bf2f2a88f13bcf"
BASE_Y = 4 * pow(5, P - 2, P) % P
Point = tuple[int, int]


@pytest.fixture(scope="session")
def vectors() -> Path:
    folder = os.environ.get("AFFIDAVIT_VECTORS")
    if not folder:
        if os.environ.get("CI") == "true":
            pytest.fail("AFFIDAVIT_VECTORS is not set: CI must run the public vectors")
        pytest.skip("AFFIDAVIT_VECTORS is not set")
    return Path(folder)


def accepted(public_key: bytes, message: bytes, signed: bytes) -> bool:
    try:
        signature.check(public_key, message, signed)
    except Refused:
        return False
    return True


def add(one: Point, two: Point) -> Point:
    product = D * one[0] * two[0] * one[1] * two[1] % P
    x = (one[0] * two[1] + one[1] * two[0]) * pow(1 + product, P - 2, P)
    y = (one[1] * two[1] + one[0] * two[0]) * pow(1 - product, P - 2, P)
    return x % P, y % P


def times(number: int, point: Point) -> Point:
    found: Point = (0, 1)
    while number:
        if number & 1:
            found = add(found, point)
        point = add(point, point)
        number >>= 1
    return found


def strict_point(data: bytes) -> Point | None:
    """Decode a canonical point, RFC 8032 5.1.3."""
    number = int.from_bytes(data, "little")
    y, sign = number & (1 << 255) - 1, number >> 255
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return (P - x if x & 1 != sign else x), y


BASE = strict_point(BASE_Y.to_bytes(32, "little"))


def reference(public_key: bytes, message: bytes, signed: bytes) -> bool:
    """The pinned rule, written a second time with plain integers: slow, and independent of libsodium."""
    r, scalar = strict_point(signed[:32]), int.from_bytes(signed[32:], "little")
    a = strict_point(public_key)
    if a is None or r is None or scalar >= L or (0, 1) in (times(8, a), times(8, r)):
        return False
    k = int.from_bytes(hashlib.sha512(signed[:32] + public_key + message).digest(), "little") % L
    assert BASE is not None
    return times(scalar, BASE) == add(r, times(k, a))


def test_edge_case_points_are_taken_by_the_pinned_rule_alone(vectors: Path) -> None:
    cases = json.loads((vectors / "cctv-ed25519" / "ed25519vectors.json").read_text("utf-8"))
    assert len(cases) == 914
    taken = []
    for case in cases:
        key, signed, message = bytes.fromhex(case["key"]), bytes.fromhex(case["sig"]), case["msg"].encode()
        verdict = accepted(key, message, signed)
        flags = set(case["flags"] or [])
        if flags & {"low_order_A", "low_order_R", "non_canonical_A", "non_canonical_R", "low_order_residue"}:
            assert not verdict, case["number"]
        if verdict:
            taken.append(case["number"])
            assert flags <= {"low_order_component_A", "low_order_component_R"}, case["number"]
    # The accepted set is pinned: a change of it is a change of the rule.
    assert len(taken) == PINNED_COUNT
    assert hashlib.sha256(",".join(map(str, taken)).encode()).hexdigest() == PINNED_SET


def test_the_reference_rule_agrees_on_a_sample(vectors: Path) -> None:
    cases = json.loads((vectors / "cctv-ed25519" / "ed25519vectors.json").read_text("utf-8"))
    plain = [case for case in cases if not set(case["flags"] or []) & {"low_order_A", "low_order_R"}]
    agreed = 0
    for case in [*plain[::12], *cases[::150]]:
        key, signed, message = bytes.fromhex(case["key"]), bytes.fromhex(case["sig"]), case["msg"].encode()
        assert accepted(key, message, signed) == reference(key, message, signed), case["number"]
        agreed += accepted(key, message, signed)
    assert agreed >= 2


def test_wycheproof(vectors: Path) -> None:
    groups = json.loads((vectors / "wycheproof" / "ed25519_test.json").read_text("utf-8"))["testGroups"]
    seen = {"valid": 0, "invalid": 0}
    for group in groups:
        key = bytes.fromhex(group["publicKey"]["pk"])
        for case in group["tests"]:
            verdict = accepted(key, bytes.fromhex(case["msg"]), bytes.fromhex(case["sig"]))
            assert verdict == (case["result"] == "valid"), case["tcId"]
            seen[case["result"]] += 1
    assert sum(seen.values()) == 151
    assert min(seen.values()) > 10


def test_the_classic_signatures_are_made_and_taken(vectors: Path) -> None:
    lines = (vectors / "ed25519-signinput" / "sign.input").read_text("ascii").splitlines()
    assert len(lines) == 1024
    for line in lines:
        secret, public, message, signed = (bytes.fromhex(part) for part in line.split(":")[:4])
        key = SigningKey(secret[:32])
        assert bytes(key.verify_key) == public
        assert key.sign(message).signature == signed[:64]
        assert accepted(public, message, signed[:64])
        assert not accepted(public, message + b"\0", signed[:64])


def test_blake3(vectors: Path) -> None:
    known: dict[str, Any] = json.loads((vectors / "blake3" / "test_vectors.json").read_text("utf-8"))
    for case in known["cases"]:
        data = bytes(index % 251 for index in range(case["input_len"]))
        assert blake3(data).hexdigest() == case["hash"][:64]
        assert blake3(data, derive_key_context=known["context_string"]).hexdigest() == case["derive_key"][:64]


def test_libsodium_alone_would_not_be_the_rule() -> None:
    """Each part of the rule is checked here too, so that another libsodium can't widen it."""
    key = SigningKey(bytes(32))
    signed = bytearray(key.sign(b"m").signature)
    signed[32:] = (int.from_bytes(signed[32:], "little") + L).to_bytes(32, "little")
    with pytest.raises(Refused, match="scalar S"):
        signature.check(bytes(key.verify_key), b"m", bytes(signed))
    with pytest.raises(BadSignatureError):
        VerifyKey(bytes(key.verify_key)).verify(b"m", bytes(signed))
