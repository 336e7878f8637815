"""The data folder of a node: who owns it, and where the node's parts are."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from services import topology
from services.kernel.errors import Conflict, Unavailable

_FOLDERS = ("nats", "postgres", "blobs", "lanes", "keys", "run")


class DataFolder:
    """The one folder of all state, owned by one process at a time.

    Attributes:
        path: Absolute path.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: IO[str] | None = None
        self._lock_file = self.path / "run" / "owner.lock"

    def __truediv__(self, name: str) -> Path:
        """Path of an entry."""
        return self.path / name

    @property
    def exists(self) -> bool:
        """Whether somebody has claimed it before."""
        return self._lock_file.exists()

    @property
    def owned(self) -> bool:
        """Whether another process owns it now."""
        if self._lock is not None:
            return False
        try:
            with self._lock_file.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def claim(self) -> None:
        """Create the folder where it is missing and become its only owner; nothing when that is so already.

        Raises:
            Conflict: When another process owns it; the message names its pid.
            Unavailable: When it can't be created.
        """
        if self._lock is not None:
            return
        try:
            for name in _FOLDERS:
                (self.path / name).mkdir(parents=True, exist_ok=True)
            (self.path / "keys").chmod(0o700)
            lock = self._lock_file.open("a+")
        except OSError as error:
            raise Unavailable(f"data folder {self.path} can't be written: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise Conflict(
                f"data folder {self.path} belongs to a running affidavit (pid {owner}): "
                "stop it, or choose another folder with --data-dir"
            ) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        """Give the folder free."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a running node's parts are, as written to run/endpoints.json.

    Attributes:
        nats_url: Log.
        postgres_dsn: Tables.
        roles: gRPC address by role; the same one for all when they share a process.
        pid: Process that owns the data folder.
    """

    nats_url: str
    postgres_dsn: str
    roles: dict[str, str]
    pid: int

    @property
    def listen(self) -> str:
        """Address of the first role, the one that clients are told."""
        return self.roles[topology.ROLE_NAMES[0]]

    def write(self, folder: DataFolder) -> None:
        """Publish them for the CLI and for `run ROLE`."""
        target = folder / "run" / "endpoints.json"
        part = target.with_suffix(".part")
        part.write_text(json.dumps(asdict(self), indent=2) + "\n")
        part.rename(target)

    @classmethod
    def read(cls, folder: Path) -> Endpoints:
        """Read what a running node published.

        Args:
            folder: Data folder.

        Raises:
            Unavailable: When nothing is published there.
        """
        target = folder / "run" / "endpoints.json"
        try:
            return cls(**json.loads(target.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise Unavailable(
                f"no affidavit is running on data folder {folder}: start it with `affidavit up --data-dir {folder}`"
            ) from error
