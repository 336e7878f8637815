"""The keys file: which keys a reader trusts, fetched once and kept apart from receipts.

Plain text, so that a person can read, compare and publish it:

    affidavit keys v0
    key <issuer> <key id, hex> <public key, hex> <first position> <end position or ->
    sum <BLAKE3 of all lines above, hex>

The sum is the file's fingerprint: it finds accidental changes, and a reader who wrote it down finds deliberate ones.
Positions count in the receipts log, the end exclusive; receipts of version 0 are in no log yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from affidavit.verify.errors import Refused
from affidavit.verify.hashing import Purpose, digest
from affidavit.verify.signature import check_public_key, key_id

STEP = "keys file"
MAX_KEYS_BYTES = 1024 * 1024
_FIRST_LINE = "affidavit keys v0"
_POSITION = "0|[1-9][0-9]{0,15}"
_KEY = re.compile(rf"key ([!-~]{{1,255}}) ([0-9a-f]{{32}}) ([0-9a-f]{{64}}) ({_POSITION}) (-|{_POSITION})", re.ASCII)
_SUM = re.compile(r"sum ([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class PinnedKey:
    """A key that the reader trusts for one issuer.

    Attributes:
        issuer: Origin whose receipts it may sign.
        public_key: 32 bytes.
        first: First position in the receipts log that it may sign.
        end: First position that it may no longer sign, None while it is in use.
    """

    issuer: str
    public_key: bytes
    first: int = 0
    end: int | None = None

    @property
    def kid(self) -> bytes:
        """Key id, 16 bytes."""
        return key_id(self.public_key)

    @property
    def unlimited(self) -> bool:
        """True when it is good at every position, so that no position has to be shown."""
        return self.first == 0 and self.end is None


@dataclass(frozen=True, slots=True)
class PinnedKeys:
    """A keys file that was read.

    Attributes:
        keys: Its keys, unique by their bytes.
        fingerprint: Hex of its sum.
    """

    keys: tuple[PinnedKey, ...]
    fingerprint: str

    def find(self, kid: bytes) -> PinnedKey | None:
        """The key with this id, if it is pinned."""
        return next((key for key in self.keys if key.kid == kid), None)


def render(keys: Iterable[PinnedKey]) -> bytes:
    """Write a keys file.

    Args:
        keys: At least one, each public key once.

    Returns:
        The file.

    Raises:
        Refused: When a reader would refuse it.
    """
    lines = [_FIRST_LINE]
    for key in keys:
        end = "-" if key.end is None else str(key.end)
        lines.append(f"key {key.issuer} {key.kid.hex()} {key.public_key.hex()} {key.first} {end}")
    above = "".join(f"{line}\n" for line in lines).encode()
    file = above + f"sum {digest(Purpose.KEYS_FILE, above).hex()}\n".encode()
    parse(file)
    return file


def parse(file: bytes) -> PinnedKeys:
    """Read a keys file.

    Args:
        file: Its bytes.

    Returns:
        Its keys and its fingerprint.

    Raises:
        Refused: When one byte isn't as it was written; the reason names the line.
    """
    lines = _lines(file)
    if lines[0] != _FIRST_LINE:
        raise Refused(STEP, f"line 1 isn't {_FIRST_LINE!r}: not a keys file of this version")
    keys = tuple(_key(number, line) for number, line in enumerate(lines[1:-1], 2))
    if not keys:
        raise Refused(STEP, "it holds no key")
    if len({key.public_key for key in keys}) != len(keys):
        raise Refused(STEP, "the same public key stands in it twice")
    stated = _SUM.fullmatch(lines[-1])
    if not stated:
        raise Refused(STEP, f"line {len(lines)} isn't 'sum' and 64 lower-case hex digits")
    above = file[: -len(lines[-1]) - 1]
    fingerprint = digest(Purpose.KEYS_FILE, above).hex()
    if stated[1] != fingerprint:
        raise Refused(
            STEP, f"its lines hash to {fingerprint[:16]}..., its sum says {stated[1][:16]}...: it was changed"
        )
    return PinnedKeys(keys, fingerprint)


def _lines(file: bytes) -> list[str]:
    if len(file) > MAX_KEYS_BYTES:
        raise Refused(STEP, f"{len(file)} bytes, at most {MAX_KEYS_BYTES} are read")
    if b"\r" in file:
        raise Refused(STEP, "a carriage return stands in it: its line ends were changed on the way, fetch it again")
    try:
        body = file.decode("ascii")
    except UnicodeDecodeError as error:
        raise Refused(STEP, f"byte {error.start} is not ASCII") from error
    if not body.endswith("\n"):
        raise Refused(STEP, "its last line has no line end: it was cut off or changed")
    return body[:-1].split("\n")


def _key(number: int, line: str) -> PinnedKey:
    found = _KEY.fullmatch(line)
    if not found:
        raise Refused(STEP, f"line {number} isn't 'key ISSUER ID PUBLIC-KEY FIRST END', single spaces, lower-case hex")
    issuer, kid, public_key, first, end = found.groups()
    key = PinnedKey(issuer, bytes.fromhex(public_key), int(first), None if end == "-" else int(end))
    try:
        check_public_key(key.public_key)
    except Refused as error:
        raise Refused(STEP, f"line {number}: {error.reason}") from error
    if key.kid.hex() != kid:
        raise Refused(STEP, f"line {number}: the id {kid} doesn't belong to the public key beside it")
    if key.end is not None and key.end <= key.first:
        raise Refused(STEP, f"line {number}: it ends before it begins")
    return key
