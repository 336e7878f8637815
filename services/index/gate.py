"""Whether the lanes may be used, and when the rows have caught up with them: shared by both edges."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from services.kernel.errors import Unavailable


class Gate:
    """Closed until the lanes were checked against the tables and, where they were lost, rebuilt."""

    def __init__(self) -> None:
        self._problem = "the lanes are being compared with the tables"
        self._opened = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._writes = 0
        self.changing = asyncio.Lock()
        """Held by whoever changes lanes and rows, and while a lane is written anew from the rows."""

    @property
    def writes(self) -> int | None:
        """How often the rows were written so far; None while they are being written."""
        return self._writes if self._settled.is_set() else None

    @property
    def problem(self) -> str:
        """Why the lanes can't be used yet; empty when they can."""
        return self._problem

    def report(self, problem: str) -> None:
        """Say what keeps the gate closed.

        Args:
            problem: In words, with progress.
        """
        self._problem = problem

    def open(self) -> None:
        """Let searches and batches through."""
        self._problem = ""
        self._opened.set()

    def check(self) -> None:
        """Let a search through or refuse it.

        Raises:
            Unavailable: While the gate is closed.
        """
        if self._problem:
            raise Unavailable(f"the index isn't ready: {self._problem}; retry")

    async def wait(self) -> None:
        """Wait until the gate is open."""
        await self._opened.wait()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Mark the time in which the lanes may be ahead of the rows."""
        self._settled.clear()
        try:
            yield
        finally:
            self._writes += 1
            self._settled.set()

    async def settled(self, timeout_s: float) -> None:
        """Wait until rows and lanes agree.

        Args:
            timeout_s: Longest wait, seconds; a batch may take longer than a search can wait.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
