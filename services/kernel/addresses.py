"""Addresses to listen on: read, and found free or taken before anything is started."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from services.kernel.errors import Conflict, Rejected, Unavailable

_MAX_PORT = 65_535
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that listens on a port.

    Attributes:
        pid: Its id.
        command: Its arguments, the program first.
    """

    pid: int
    command: tuple[str, ...]

    def __str__(self) -> str:
        """Name for a person: the program, and what it was told first."""
        words = [Path(word).name if word.startswith("/") else word for word in self.command]
        return f"{' '.join(words[:3])[:80] or 'a process'} (pid {self.pid})"


def parse(address: str) -> tuple[str, int]:
    """Read an address to listen on.

    Args:
        address: host:port; port 0 stands for any free one.

    Returns:
        Host without brackets, and port.

    Raises:
        Rejected: When it is no loopback address with a port.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if host not in _LOOPBACK:
        raise Rejected(
            f"--listen {address} is not a loopback address: tokens are not available yet, "
            "so this version serves 127.0.0.1 and [::1] only"
        )
    if not (port.isascii() and port.isdecimal() and int(port) <= _MAX_PORT):
        raise Rejected(f"--listen {address} has no port of 1 to {_MAX_PORT}: write 127.0.0.1:7401, or port 0 for any")
    return host, int(port)


def check_free(address: str) -> None:
    """Find out whether an address can be listened on.

    Args:
        address: host:port.

    Raises:
        Rejected: When it is no loopback address with a port.
        Conflict: When somebody listens there; the message says who, where that can be seen.
        Unavailable: When it can't be listened on for another reason.
    """
    host, port = parse(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As the server does: connections of a process that has ended are no reason to wait.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            # Two sockets may be bound to one port with SO_REUSEADDR; only one of them may listen.
            probe.listen(1)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Unavailable(f"address {address} can't be used ({error.strerror}): use --listen") from error
            found = holder(port)
            by = f" by {found}" if found else ""
            raise Conflict(
                f"address {address} is taken{by}: stop that program, or choose another address with --listen"
            ) from error


def holder(port: int) -> Holder | None:
    """Find who listens on a port of this machine.

    Args:
        port: TCP port.

    Returns:
        The process; None when nobody listens, or when it belongs to another user.
    """
    inodes = _listening(port)
    for entry in Path("/proc").iterdir() if inodes else ():
        if entry.name.isdecimal():
            # Processes end while they are looked at, and those of other users are closed.
            with contextlib.suppress(OSError):
                if any(os.readlink(handle) in inodes for handle in (entry / "fd").iterdir()):  # noqa: PTH115  (no path)
                    command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    return Holder(int(entry.name), tuple(filter(None, command)))
    return None


def _listening(port: int) -> set[str]:
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (Path("/proc/net") / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    found.add(f"socket:[{fields[9]}]")
    return found
