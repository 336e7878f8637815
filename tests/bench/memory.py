"""Memory of a process and all its descendants."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

_EVERY_S = 0.5


def tree(pid: int) -> list[int]:
    """Process ids of a process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def proportional_bytes(pid: int) -> int:
    """Proportional set size: shared pages are divided among those who share them."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


class Peak:
    """Highest sum seen so far.

    Attributes:
        size_bytes: The sum.
    """

    def __init__(self) -> None:
        self.size_bytes = 0


@contextlib.contextmanager
def watched(pid: int) -> Iterator[Peak]:
    """Sample a process tree while the block runs."""
    peak, done = Peak(), threading.Event()

    def sample() -> None:
        while not done.wait(_EVERY_S):
            peak.size_bytes = max(peak.size_bytes, sum(proportional_bytes(child) for child in tree(pid)))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
