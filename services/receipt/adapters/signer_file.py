"""The signing key as a file of the data folder.

Two files: the key itself, readable by its owner only, and the public keys file that verifiers pin. The public file stays
when the key is lost, so that a loss is told apart from a beginning and no new key ever takes the place of a lost one.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from affidavit.verify import keys as keys_files
from affidavit.verify.errors import Refused
from affidavit.verify.keys import PinnedKey
from affidavit.verify.signature import key_id
from nacl.signing import SigningKey

from services.kernel.errors import Rejected, Unavailable

KEY_FILE = "receipt.key"
PUBLIC_FILE = "receipt.keys"
_FIRST_LINE = "affidavit signing key v0"
_KEY = re.compile(rf"{_FIRST_LINE}\nissuer ([!-~]{{1,255}})\nseed ([0-9a-f]{{64}})\n", re.ASCII)
DEFAULT_ISSUER = "affidavit.localhost/"


class KeyState(Enum):
    """What a key folder holds."""

    ABSENT = "absent"
    READY = "ready"
    LOST = "lost"
    DAMAGED = "damaged"
    EXPOSED = "exposed"


@dataclass(frozen=True, slots=True)
class KeyReport:
    """What was found in a key folder.

    Attributes:
        state: In one word.
        problem: What is wrong and what to do; empty when nothing is.
    """

    state: KeyState
    problem: str = ""


class FileSigner:
    """A signing key that was read.

    Attributes:
        issuer: Origin that it signs for.
        kid: Its id, 16 bytes.
        keys_file: What a verifier pins.
        problem: Empty.
    """

    def __init__(self, *, issuer: str, seed: bytes) -> None:
        self._key = SigningKey(seed)
        public_key = bytes(self._key.verify_key)
        self.issuer = issuer
        self.kid = key_id(public_key)
        self.keys_file = keys_files.render([PinnedKey(issuer, public_key)])
        self.problem = ""

    def check(self) -> None:
        """See Signer."""

    def sign(self, message: bytes) -> bytes:
        """See Signer."""
        return self._key.sign(message).signature


class AbsentSigner:
    """Stands where the key should be: old receipts can still be read and checked, nothing can be signed.

    Attributes:
        issuer: Empty.
        kid: Empty.
        keys_file: The public file, where it is still there.
        problem: Why nothing can be signed.
    """

    def __init__(self, *, problem: str, keys_file: bytes) -> None:
        self.problem = problem
        self.issuer = ""
        self.kid = b""
        self.keys_file = keys_file

    def check(self) -> None:
        """See Signer."""
        raise Unavailable(f"signing is down: {self.problem}")

    def sign(self, message: bytes) -> bytes:
        """See Signer."""
        raise Unavailable(f"signing is down, {len(message)} bytes stay unsigned: {self.problem}")


class KeyFolder:
    """The folder that holds the key."""

    def __init__(self, *, path: Path) -> None:
        self._key = path / KEY_FILE
        self._public = path / PUBLIC_FILE
        self._path = path

    def report(self) -> KeyReport:
        """Look at the folder without changing anything.

        Returns:
            Its state and what to do about it.
        """
        if not self._key.exists():
            if not self._public.exists():
                return KeyReport(KeyState.ABSENT)
            return KeyReport(
                KeyState.LOST, f"{self._key} is gone, but receipts were signed with it: restore it from a backup"
            )
        if stat.S_IMODE(self._key.stat().st_mode) & 0o077:
            return KeyReport(KeyState.EXPOSED, f"{self._key} can be read by others: run `chmod 600 {self._key}`")
        try:
            signer = self._read()
            public = self._public.read_bytes() if self._public.exists() else signer.keys_file
            keys_files.parse(public)
        except (OSError, ValueError, Refused) as error:
            return KeyReport(KeyState.DAMAGED, f"{self._path} can't be used: {error}; restore it from a backup")
        if public != signer.keys_file:
            problem = f"{self._key} doesn't belong to {self._public.name} beside it: restore both from one backup"
            return KeyReport(KeyState.DAMAGED, problem)
        return KeyReport(KeyState.READY)

    def create(self, *, issuer: str, seed: bytes) -> FileSigner:
        """Make the folder's first key, on disk when it returns.

        Args:
            issuer: Origin; empty for one made of the key's id.
            seed: 32 random bytes.

        Returns:
            The signer.

        Raises:
            Rejected: When there is or was a key, or the issuer can't stand in a keys file.
            Unavailable: When it can't be written.
        """
        if self.report().state is not KeyState.ABSENT:
            raise Rejected(f"{self._path} holds a signing key, or held one: no second one is made")
        name = issuer or DEFAULT_ISSUER + key_id(bytes(SigningKey(seed).verify_key)).hex()
        try:
            signer = FileSigner(issuer=name, seed=seed)
        except Refused as refusal:
            raise Rejected(
                f"{name!r} is no issuer: printable ASCII without spaces, at most 255 characters"
            ) from refusal
        try:
            self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_once(self._key, f"{_FIRST_LINE}\nissuer {name}\nseed {seed.hex()}\n".encode(), 0o600)
            _write_once(self._public, signer.keys_file, 0o644)
        except OSError as error:
            raise Unavailable(f"the signing key can't be written to {self._path}: {error.strerror}") from error
        return signer

    def open(self) -> FileSigner | AbsentSigner:
        """Read the key.

        Returns:
            The signer, or one that refuses to sign and says why.
        """
        report = self.report()
        if report.state is KeyState.READY:
            signer = self._read()
            if not self._public.exists():
                _write_once(self._public, signer.keys_file, 0o644)
            return signer
        problem = report.problem or f"{self._key} is missing, but receipts were issued: restore it from a backup"
        try:
            keys_file = self._public.read_bytes()
            keys_files.parse(keys_file)
        except (OSError, Refused):
            keys_file = b""
        return AbsentSigner(problem=problem, keys_file=keys_file)

    def _read(self) -> FileSigner:
        found = _KEY.fullmatch(self._key.read_text("ascii"))
        if not found:
            raise ValueError(f"{self._key.name} isn't a signing key of this version")
        return FileSigner(issuer=found[1], seed=bytes.fromhex(found[2]))


def _write_once(path: Path, content: bytes, mode: int) -> None:
    # Complete before it gets its name, and never over a file that is there.
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.link(part, path)
    part.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
