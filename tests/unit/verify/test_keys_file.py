"""The keys file: any change is refused, and the reason says what is wrong."""

from __future__ import annotations

import pytest
from affidavit.verify import keys
from affidavit.verify.errors import Refused
from affidavit.verify.hashing import Purpose, digest
from affidavit.verify.keys import PinnedKey
from nacl.signing import SigningKey

ONE = bytes(SigningKey(b"\x01" * 32).verify_key)
TWO = bytes(SigningKey(b"\x02" * 32).verify_key)
FILE = keys.render([PinnedKey("example.org/a", ONE), PinnedKey("example.org/a", TWO, 5, 9)])


def refusal(file: bytes) -> str:
    with pytest.raises(Refused) as caught:
        keys.parse(file)
    assert caught.value.step == "keys file"
    return caught.value.reason


def resummed(body: str) -> bytes:
    """A file whose sum is right, so that the other rules are reached."""
    above = body.encode()
    return above + f"sum {digest(Purpose.KEYS_FILE, above).hex()}\n".encode()


def line(key: bytes = ONE, kid: str = "", span: str = "0 -") -> str:
    return f"key example.org/a {kid or PinnedKey('', key).kid.hex()} {key.hex()} {span}\n"


def test_what_was_written_is_read() -> None:
    read = keys.parse(FILE)
    assert [(key.issuer, key.public_key, key.first, key.end) for key in read.keys] == [
        ("example.org/a", ONE, 0, None),
        ("example.org/a", TWO, 5, 9),
    ]
    assert read.fingerprint == FILE.decode().splitlines()[-1].removeprefix("sum ")
    assert read.find(PinnedKey("", ONE).kid) == read.keys[0]
    assert read.find(bytes(16)) is None
    assert [key.unlimited for key in read.keys] == [True, False]


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_is_read(bit: int) -> None:
    for position in range(len(FILE)):
        changed = bytearray(FILE)
        changed[position] ^= 1 << bit
        assert bytes(changed) != FILE
        assert refusal(bytes(changed))


def test_no_missing_or_doubled_byte_is_read() -> None:
    for position in range(len(FILE)):
        assert refusal(FILE[:position] + FILE[position + 1 :])
        assert refusal(FILE[:position] + FILE[position : position + 1] + FILE[position:])
        assert refusal(FILE[:position])


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (b"", "no line end"),
        (b"hello\n", "line 1 isn't"),
        (FILE.replace(b"\n", b"\r\n"), "carriage return"),
        (FILE + b"\xff", "not ASCII"),
        (FILE + b"\n", "line 4 isn't 'key"),
        (FILE.replace(b"sum ", b"Sum "), "line 4 isn't 'sum'"),
        (FILE.upper(), "line 1 isn't"),
        (resummed("affidavit keys v1\n" + line()), "line 1 isn't"),
        (resummed("affidavit keys v0\n"), "it holds no key"),
        (resummed("affidavit keys v0\n" + line() + line()), "stands in it twice"),
        (resummed("affidavit keys v0\n" + line(kid="0" * 32)), "doesn't belong"),
        (resummed("affidavit keys v0\n" + line(span="5 5")), "ends before it begins"),
        (resummed("affidavit keys v0\n" + line(span="05 -")), "line 2 isn't"),
        (resummed("affidavit keys v0\n" + line().replace(" 0 -", "  0 -")), "line 2 isn't"),
        (resummed("affidavit keys v0\n" + line(key=bytes(32))), "line 2: the public key is a point of small order"),
        (b"x" * (keys.MAX_KEYS_BYTES + 1), "at most"),
        (FILE[:-65] + b"0" * 64 + b"\n", "its sum says 0000000000000000...: it was changed"),
    ],
)
def test_refusals_name_the_fault(file: bytes, reason: str) -> None:
    assert reason in refusal(file)


def test_an_issuer_with_a_space_is_never_written() -> None:
    with pytest.raises(Refused):
        keys.render([PinnedKey("two words", ONE)])
