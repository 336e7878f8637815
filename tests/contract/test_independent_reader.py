"""A second reader, written from docs/receipt-format.md alone: it finds the same ids and opens the same commitments."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from affidavit.verify.hashing import Purpose
from blake3 import blake3
from nacl.signing import VerifyKey

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "contract" / "golden" / "v0"
FORMAT = (ROOT / "docs" / "receipt-format.md").read_text("utf-8")
CONTEXTS = dict(re.findall(r"^\| ([a-z ]+) \| `(affidavit [^`]+)` \|$", FORMAT, re.MULTILINE))
NAMES = sorted(path.name for path in GOLDEN.glob("*.receipt"))


def read(data: bytes, at: int = 0) -> tuple[Any, int]:
    major, number = data[at] >> 5, data[at] & 31
    at += 1
    if number >= 24:
        size = 1 << number - 24
        number, at = int.from_bytes(data[at : at + size], "big"), at + size
    if major < 2:
        return (number if major == 0 else -1 - number), at
    if major < 4:
        body = data[at : at + number]
        return (body if major == 2 else body.decode()), at + number
    items = []
    for _ in range(number * (major - 3)):
        one, at = read(data, at)
        items.append(one)
    return (items if major == 4 else dict(zip(items[::2], items[1::2], strict=True))), at


def write(value: Any) -> bytes:
    if isinstance(value, int):
        major, number, body = 0, value, b""
    elif isinstance(value, bytes):
        major, number, body = 2, len(value), value
    elif isinstance(value, str):
        major, number, body = 3, len(value.encode()), value.encode()
    else:
        major, number, body = 4, len(value), b"".join(map(write, value))
    if number < 24:
        return bytes([major << 5 | number]) + body
    size = next(size for size in (1, 2, 4, 8) if number < 1 << 8 * size)
    return bytes([major << 5 | 23 + size.bit_length()]) + number.to_bytes(size, "big") + body


def hashed(purpose: str, value: Any) -> bytes:
    return blake3(value if isinstance(value, bytes) else write(value), derive_key_context=CONTEXTS[purpose]).digest()


def test_the_description_lists_every_context() -> None:
    assert set(CONTEXTS.values()) == {purpose.value for purpose in Purpose}


@pytest.mark.parametrize("name", NAMES)
def test_the_second_reader_agrees(name: str) -> None:
    bundle, end = read((GOLDEN / name).read_bytes())
    assert end == (GOLDEN / name).stat().st_size
    protected, unprotected, payload, signature = read(bundle["rcp"])[0]
    line = (GOLDEN / "keys").read_text("ascii").splitlines()[1].split()
    assert unprotected == {}
    assert read(protected)[0] == {
        1: -19,
        3: "application/vnd.affidavit.receipt+cbor",
        4: bytes.fromhex(line[2]),
    }
    signed = write(["Signature1", protected, b"", payload])
    VerifyKey(bytes.fromhex(line[3])).verify(signed, signature)
    expected = json.loads((GOLDEN / "expected.json").read_text("utf-8"))[name]
    assert hashed("receipt id", signed).hex() == expected["receipt_id"]
    body = read(payload)[0]
    assert body["iss"] == line[1]
    pairs = [
        ("question", bundle["qry"], "txt", body["qry"]),
        ("answer as delivered", bundle["ans"]["txt"], "txt", body["ans"]["txt"]),
        ("answer before repair", bundle["ans"]["raw"], "txt", body["ans"]["raw"]),
        ("repairs", bundle["ans"]["rep"], "lst", body["ans"]["rep"]),
        ("candidates", bundle["can"], "lst", body["ret"]["can"]),
    ]
    for purpose, place, key, committed in pairs:
        assert "gon" in place or hashed(purpose, [place["slt"], place[key]]) == committed
    assert len(bundle["evi"]) == len(body["cit"])
    for place, cited in zip(bundle["evi"], body["cit"], strict=True):
        if "gon" not in place:
            fields = [place["slt"], place["doc"], place["rev"], cited["idx"], cited["off"], place["txt"]]
            assert hashed("evidence", fields) == cited["com"]
            assert len(place["txt"]) == cited["len"]


def test_the_keys_file_has_its_fingerprint() -> None:
    above, total = (GOLDEN / "keys").read_bytes().split(b"sum ")
    assert hashed("keys file", above).hex() == total.decode().strip()
