"""References to credentials: which variables and files of the operator a crate's owner may name."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 16 * 1024
_ENV = "env"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the operator has set aside for providers.

    Attributes:
        folder: Files below it may be named; links that lead out of it may not.
        prefix: Variables whose names begin so may be named; "" for none.
        names: Further variables that may be named.
    """

    folder: Path
    prefix: str
    names: frozenset[str] = frozenset()

    def problem(self, reference: str) -> str:
        """Look at a reference without reading what it names.

        Args:
            reference: "env:NAME" or "file:path", absolute or below the folder.

        Returns:
            What is wrong and what to do, or "".
        """
        kind, _, place = reference.partition(":")
        if kind == _ENV:
            if (self.prefix and place.startswith(self.prefix)) or place in self.names:
                return ""
            allowed = f"name it {self.prefix}..." if self.prefix else "name another"
            return (
                f"credential {reference} names a variable that isn't set aside for providers: {allowed}, "
                "or let the operator add it to provider_credential_names"
            )
        if self._path(place) is None:
            return (
                f"credential {reference} names a file outside of the operator's folder {self.folder}: put it there, "
                "or let the operator set provider_credentials_dir"
            )
        return ""

    def read(self, reference: str) -> str:
        """Read a credential anew, so that it can be rotated without a restart.

        Args:
            reference: One without a `problem`.

        Returns:
            Its text.

        Raises:
            KeyError: When there is no such variable.
            OSError: When the file can't be read or is none.
            UnicodeDecodeError: When it is no text.
        """
        kind, _, place = reference.partition(":")
        if kind == _ENV:
            return os.environ[place]
        path = self._path(place)
        if path is None:
            raise FileNotFoundError(place)
        # What was resolved has no links; one that was put in its place meanwhile isn't followed, a pipe isn't waited for.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise FileNotFoundError(f"{place} is no file")
            return os.read(handle, MAX_BYTES).decode()
        finally:
            os.close(handle)

    def _path(self, place: str) -> Path | None:
        try:
            folder = self.folder.resolve()
            path = (folder / place).resolve()
        except (OSError, ValueError, RuntimeError):
            return None
        return path if path != folder and path.is_relative_to(folder) else None
