"""A lane as the engine serves it: one shard, its position, and the optimisation of a copy that then takes its place.

Files of a lane: `current.json` names the shard that counts, `position.json` what it has applied, `shard-<n>/` is the shard.
While a copy is being optimised there are also `shard-<n+1>/` and `journal`, and for a rewrite `shard-<n+1>-source/`, which
no crash turns into anything that counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, BinaryIO

from services.index.adapters.edge_engine import frames
from services.index.adapters.edge_engine.conditions import Search
from services.index.adapters.edge_engine.frames import Header, Step
from services.index.adapters.edge_engine.shard import Hit, Stored, VectorShard
from services.index.adapters.lane_position import PositionFile, sync_folder

LAYOUT = "vector-2"
_OLD_LAYOUTS = ("vector-1",)

_FLUSH_AFTER = 20_000
"""Records that the write-ahead log may hold: a flush stops searches for some 100 ms, loading them anew takes seconds."""

_log = logging.getLogger("affidavit.vector_engine")

BuildIndex = Callable[[Path, int, Path | None], Awaitable[None]]
"""Indexes the shard in a folder; given another shard, makes the first one of its points before."""


class LaneError(Exception):
    """A refusal with the code of one of the five outcomes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ServedLane:
    """One lane. Everything but waiting for disks and children happens in the event loop, one thing at a time."""

    def __init__(
        self, folder: Path, *, dimension: int, optimise_at: int, build_index: BuildIndex, turn: asyncio.Semaphore
    ) -> None:
        self._folder = folder
        self._dimension = dimension
        self._optimise_at = optimise_at
        self._build_index = build_index
        self._turn = turn
        self._stored = PositionFile(folder / "position.json", layout=LAYOUT)
        if self._stored.layout() in _OLD_LAYOUTS or _layout(folder) in _OLD_LAYOUTS:
            _delete_old(folder)
        # A damaged file is refused before the shard is open; a new shard starts at 0.
        self._stored.read()
        self._number, self._shard = _open_shard(folder, dimension)
        self._position = self._stored.read()
        # Editions that arrive in several steps stay out of sight until the last one.
        self._hidden: dict[tuple[str, int, int], None] = {}
        self._changing = asyncio.Lock()
        self._journal: BinaryIO | None = None
        self._optimising: asyncio.Task[bool] | None = None
        self._unflushed = 0
        self._deleted = 0
        self._closed = False
        self._next_optimisation = optimise_at

    @property
    def dimension(self) -> int:
        """Components of every vector."""
        return self._dimension

    @property
    def position(self) -> int:
        """KNOWLEDGE position that is durably applied."""
        return self._position

    @property
    def optimising(self) -> bool:
        """True while a copy is being optimised."""
        return self._optimising is not None

    async def apply(self, header: Header, body: bytes) -> None:
        """Apply a frame of steps; searches may come between two of them."""
        async with self._changing:
            self._note(header, body)
            for step in frames.decode_steps(header, body):
                self._apply(step)
                await asyncio.sleep(0)

    async def commit(self, position: int) -> None:
        """Make everything applied durable, then the position."""
        async with self._changing:
            if self._unflushed >= _FLUSH_AFTER:
                self._shard.flush()
                self._unflushed = 0
            else:
                await asyncio.to_thread(self._shard.sync_log)
            await asyncio.to_thread(self._stored.write, position)
            self._position = position
        self.optimise_if_due()

    def optimise_if_due(self) -> None:
        """Start optimising a copy when enough records are without index, unless one is being optimised."""
        if self._due() and self._optimising is None:
            self._start_optimising()

    def search(self, vector: Any, search: Search) -> list[Hit]:
        """Rank records by cosine."""
        return self._shard.search(vector, search, self._hidden)

    def count(self, kind: str | None) -> int:
        """Count records, of one kind or of all."""
        return self._shard.count(kind, self._hidden)

    def stored(self, after: str | None, limit: int) -> tuple[list[Stored], str | None]:
        """Read records page by page, see `VectorShard.stored`."""
        return self._shard.stored(after, limit, self._hidden)

    def unindexed(self) -> int:
        """Number of records that searches still scan one by one."""
        return self._shard.unindexed()

    async def optimise(self) -> bool:
        """Rebuild the index now.

        Returns:
            False when there was nothing to do, or closing ended the attempt.
        """
        if self._optimising is None:
            if not self._shard.unindexed() and not self._deleted:
                return False
            self._start_optimising()
        task = self._optimising
        if task is None:
            return False
        await asyncio.wait({task})
        return not task.cancelled() and task.result()

    async def rewrite(self) -> None:
        """Put a shard of the live points alone in the place of this one; serving goes on.

        Raises:
            LaneError: When closing ended the attempt.
        """
        while self._optimising is not None:
            await asyncio.wait({self._optimising})
        task = self._start_optimising(rewrite=True)
        await asyncio.wait({task})
        if task.cancelled():
            raise LaneError("unavailable", f"{self._folder} was closed before it was written anew")
        task.result()

    async def close(self) -> None:
        """Stop optimising, flush, let go of the files. Closing twice is harmless."""
        if self._optimising is not None:
            self._optimising.cancel()
            await asyncio.gather(self._optimising, return_exceptions=True)
        async with self._changing:
            if not self._closed:
                self._closed = True
                self._shard.flush()
                self._shard.close()

    async def drop(self) -> None:
        """Delete the lane. What a crash leaves is an empty lane at position 0."""
        await self.close()
        (self._folder / "position.json").unlink(missing_ok=True)
        sync_folder(self._folder)
        (self._folder / "current.json").unlink(missing_ok=True)
        sync_folder(self._folder)
        await asyncio.to_thread(shutil.rmtree, self._folder)

    def _apply(self, step: Step) -> None:
        if not step.last:
            self._hidden[step.document_id, step.revision, step.edition] = None
        before = self._shard.points() if step.last else 0
        self._shard.apply(step)
        if step.last and step.moved is None:
            for key in [key for key in self._hidden if key[0] == step.document_id and step.revision in (0, key[1])]:
                del self._hidden[key]
            self._deleted += max(0, before + len(step.records) - self._shard.points())
        self._unflushed += len(step.records) + 1

    def _note(self, header: Header, body: bytes) -> None:
        if self._journal is None:
            return
        try:
            for piece in frames.encode(header, body):
                self._journal.write(piece)
            self._journal.flush()
        except OSError as error:
            # A copy that misses something must not take over.
            _log.warning("no journal for %s: %s", self._folder, error)
            with contextlib.suppress(OSError):
                self._journal.close()
            self._journal = None
            if self._optimising is not None:
                self._optimising.cancel()

    def _due(self) -> bool:
        return self._shard.unindexed() + self._deleted >= self._next_optimisation

    def _start_optimising(self, *, rewrite: bool = False) -> asyncio.Task[bool]:
        task = asyncio.create_task(self._optimise(rewrite=rewrite))
        task.add_done_callback(self._settle)
        self._optimising = task
        return task

    def _settle(self, task: asyncio.Task[bool]) -> None:
        self._optimising = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # Serving goes on without the index; the next try waits for as many records again.
            self._next_optimisation = self._shard.unindexed() + self._deleted + self._optimise_at
            _log.warning("optimising %s failed: %r", self._folder, error)
        else:
            self._next_optimisation = self._optimise_at
            self.optimise_if_due()

    async def _optimise(self, *, rewrite: bool) -> bool:
        async with self._turn:
            await self._optimise_copy(rewrite=rewrite)
        return True

    async def _optimise_copy(self, *, rewrite: bool) -> None:
        target = self._folder / f"shard-{self._number + 1}"
        source = target.with_name(f"{target.name}-source") if rewrite else None
        journal = self._folder / "journal"
        try:
            async with self._changing:
                self._shard.flush()
                self._unflushed = self._deleted = 0
                await asyncio.to_thread(self._shard.copy, source or target)
                self._journal = journal.open("wb")
            await self._build_index(target, self._dimension, source)
            fresh = VectorShard.load(target, self._dimension)
            try:
                await self._catch_up(fresh, journal)
            except BaseException:
                fresh.close()
                raise
        finally:
            if self._journal is not None:
                self._journal.close()
                self._journal = None
            journal.unlink(missing_ok=True)
            if source is not None:
                await asyncio.to_thread(shutil.rmtree, source, ignore_errors=True)
            if not self._is_current(target):
                await asyncio.to_thread(shutil.rmtree, target, ignore_errors=True)

    async def _catch_up(self, fresh: VectorShard, journal: Path) -> None:
        with journal.open("rb") as missed:
            await self._replay(fresh, missed)
            async with self._changing:
                # Nothing can be added any more, so this is the rest.
                await self._replay(fresh, missed)
                await self._swap(fresh)

    async def _replay(self, fresh: VectorShard, missed: BinaryIO) -> None:
        for header, body in frames.read_file(missed):
            for step in frames.decode_steps(header, body):
                fresh.apply(step)
                await asyncio.sleep(0)

    async def _swap(self, fresh: VectorShard) -> None:
        fresh.flush()
        # From here to the last assignment nothing may interrupt, so the disk is waited for in place.
        _write_current(self._folder, self._number + 1, self._dimension)
        old, old_folder = self._shard, self._folder / f"shard-{self._number}"
        self._shard = fresh
        self._number += 1
        self._unflushed = 0
        old.close()
        await asyncio.to_thread(shutil.rmtree, old_folder)

    def _is_current(self, folder: Path) -> bool:
        return folder.name == f"shard-{self._number}"


def _layout(folder: Path) -> str:
    try:
        current = json.loads((folder / "current.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return ""
    return str(current.get("layout", "")) if isinstance(current, dict) else ""


def _delete_old(folder: Path) -> None:
    # As when a lane is dropped: what a crash leaves is an empty lane, or still names the old layout.
    for name in ("position.json", "current.json"):
        (folder / name).unlink(missing_ok=True)
        sync_folder(folder)


def _open_shard(folder: Path, dimension: int) -> tuple[int, VectorShard]:
    try:
        current = json.loads((folder / "current.json").read_bytes())
    except FileNotFoundError:
        return _create_shard(folder, dimension)
    if not isinstance(current, dict) or current.get("layout") != LAYOUT:
        raise LaneError("corrupt", f"{folder / 'current.json'} describes no lane of layout {LAYOUT}")
    if current["dimension"] != dimension:
        raise LaneError(
            "conflict",
            f"{folder} holds vectors of {current['dimension']} components, not {dimension}; start another generation",
        )
    number = int(current["number"])
    for part in ("segments", "wal"):
        # Without them the engine would begin anew, and number its operations as if nothing had been.
        if not any((folder / f"shard-{number}").glob(f"{part}/*")):
            raise LaneError("corrupt", f"{folder / f'shard-{number}' / part} is gone; delete {folder} to fill it anew")
    shard = VectorShard.load(folder / f"shard-{number}", dimension)
    _remove_others(folder, number)
    return number, shard


def _create_shard(folder: Path, dimension: int) -> tuple[int, VectorShard]:
    folder.mkdir(parents=True, exist_ok=True)
    # Without a shard that counts nothing is applied, whatever a crash left here.
    (folder / "position.json").unlink(missing_ok=True)
    _remove_others(folder, 0)
    shard = VectorShard.create(folder / "shard-1", dimension)
    _write_current(folder, 1, dimension)
    return 1, shard


def _remove_others(folder: Path, number: int) -> None:
    for left in folder.glob("shard-*"):
        if left.name != f"shard-{number}":
            shutil.rmtree(left)
    (folder / "journal").unlink(missing_ok=True)


def _write_current(folder: Path, number: int, dimension: int) -> None:
    fresh = folder / "current.new"
    with fresh.open("w") as file:
        json.dump({"layout": LAYOUT, "number": number, "dimension": dimension}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / "current.json")
    sync_folder(folder)
