"""Keyword lane on tantivy, in process.

Each lane has one index per kind of record, so that documents never count in the statistics of chunks:
`<root>/<crate>/<generation>/keyword/{chunk,document}/`, and the applied position in `position.json` beside them.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from services.index.adapters.lane_position import PositionFile, sync_folder
from services.index.adapters.tantivy_index import IndexRewriter, TantivyIndex
from services.index.domain.records import EVERY_KIND, KeywordChange, Kind, LaneFilter, LaneHit, Reach, TermStatistics
from services.kernel.errors import Corrupt, Failure, Rejected, Unavailable

_LAYOUT = "keyword-2"
_OLD_LAYOUTS = ("keyword-1",)
_CRATE = re.compile(r"[a-z0-9-]{1,40}")
_HEAP_BYTES = {Kind.CHUNK: 64_000_000, Kind.DOCUMENT: 32_000_000}
_MOST_WRITERS = 4
_SWEEPS = 50
_SWEEP_PAUSE_S = 0.1


class TantivyKeywordLane:
    """One crate's generation in the keyword lane. Opened by `TantivyKeywordLanes`."""

    def __init__(self, folder: Path, *, name: str, wrote: Callable[[TantivyKeywordLane], None]) -> None:
        self._folder = folder
        self._name = name
        self._wrote = wrote
        self._closed = False
        # Held by the thread that works, so a cancelled call can't let the next batch in too early.
        self._writing = threading.Lock()
        with self._reported("open"):
            self._stored = PositionFile(folder / "position.json", layout=_LAYOUT)
            if self._stored.layout() in _OLD_LAYOUTS:
                _delete_old(folder)
            self._indexes = {
                kind: TantivyIndex(folder / kind.value, heap_bytes=_HEAP_BYTES[kind]) for kind in EVERY_KIND
            }
            self._position = self._stored.read()
        self._durable = self._position

    async def position(self) -> int:
        """See `ports.Lane.position`."""
        return self._position

    async def count(self, kind: Kind | None = None) -> int:
        """See `ports.Lane.count`."""
        with self._reported("count"):
            return sum(self._indexes[k].count() for k in ((kind,) if kind else EVERY_KIND))

    async def replace(self, changes: Sequence[KeywordChange], position: int) -> None:
        """See `ports.KeywordLane.replace`."""
        await asyncio.to_thread(self._replace, changes, position)

    async def search(self, terms: Sequence[str], lane_filter: LaneFilter, limit: int) -> list[LaneHit]:
        """See `ports.KeywordLane.search`."""
        if limit < 1:
            raise Rejected(f"a search of {self._name} with limit {limit} finds nothing; ask for at least 1 hit")
        if not terms:
            return []
        return await asyncio.to_thread(self._search, Counter(terms), lane_filter, limit)

    async def term_statistics(self, terms: Sequence[str], kind: Kind, reach: Reach = Reach.CURRENT) -> TermStatistics:
        """See `ports.KeywordLane.term_statistics`."""
        return await asyncio.to_thread(self._statistics, dict.fromkeys(terms), kind, reach is Reach.CURRENT)

    async def rewrite(self, pages: AsyncIterator[Sequence[KeywordChange]]) -> None:
        """See `ports.KeywordLane.rewrite`."""
        rewriters = await asyncio.to_thread(self._begin_rewriting)
        try:
            async for changes in pages:
                await asyncio.to_thread(self._add, rewriters, changes)
            await asyncio.to_thread(self._finish_rewriting, rewriters)
        finally:
            for rewriter in rewriters.values():
                rewriter.close()

    async def flush(self) -> None:
        """See `ports.Lane.flush`."""
        await asyncio.to_thread(self._flush)

    async def drop(self) -> None:
        """See `ports.Lane.drop`."""
        await asyncio.to_thread(self._drop)

    async def close(self) -> None:
        """See `ports.Lane.close`."""
        await asyncio.to_thread(self._close)

    @property
    def closed(self) -> bool:
        """True once the lane was closed or dropped."""
        return self._closed

    def finish_merges(self) -> None:
        """Wait for running merges, then let go of writers, their threads and memory; the next batch opens them again."""
        with self._writing:
            for index in self._indexes.values():
                index.finish_merges()

    def _replace(self, changes: Sequence[KeywordChange], position: int) -> None:
        if changes:
            self._wrote(self)
        with self._writing, self._reported("replace"):
            if position <= self._position:
                return
            if changes:
                self._commit(changes)
                self._stored.write(position)
                self._durable = position
            self._position = position

    def _commit(self, changes: Sequence[KeywordChange]) -> None:
        touched = {kind: self._indexes[kind] for change in changes for kind in change.kinds}
        try:
            for change in changes:
                for kind in change.kinds:
                    self._indexes[kind].delete(change.document_id, change.revision)
                    self._indexes[kind].add(r for r in change.records if r.record.kind is kind)
            # Each commit waits for the disk a few times; the waits may overlap.
            with ThreadPoolExecutor(len(touched)) as pool:
                list(pool.map(TantivyIndex.commit, touched.values()))
        except Exception:
            for index in touched.values():
                index.release_writer()
            raise
        for index in touched.values():
            index.refresh()

    def _begin_rewriting(self) -> dict[Kind, IndexRewriter]:
        with self._writing, self._reported("rewrite"):
            return {kind: index.rewriter() for kind, index in self._indexes.items()}

    def _add(self, rewriters: dict[Kind, IndexRewriter], changes: Sequence[KeywordChange]) -> None:
        with self._reported("rewrite"):
            for change in changes:
                for kind in change.kinds:
                    rewriters[kind].add(r for r in change.records if r.record.kind is kind)

    def _finish_rewriting(self, rewriters: dict[Kind, IndexRewriter]) -> None:
        with self._writing, self._reported("rewrite"):
            for kind, index in self._indexes.items():
                rewriters[kind].commit()
                index.refresh()
                # A search that is under way keeps its files for some moments.
                for _ in range(_SWEEPS):
                    left = rewriters[kind].sweep()
                    if not left:
                        break
                    time.sleep(_SWEEP_PAUSE_S)
                else:
                    raise Unavailable(f"{self._name} can't let go of {left} old files; it is tried again")

    def _search(self, terms: Counter[str], lane_filter: LaneFilter, limit: int) -> list[LaneHit]:
        with self._reported("search"):
            return self._indexes[lane_filter.kind].search(terms, lane_filter, limit)

    def _statistics(self, terms: Iterable[str], kind: Kind, current: bool) -> TermStatistics:
        with self._reported("count"):
            index = self._indexes[kind]
            count = index.count_current() if current else index.count()
            return TermStatistics(count, index.statistics(terms, current=current))

    def _flush(self) -> None:
        with self._writing, self._reported("flush"):
            if self._durable != self._position:
                self._stored.write(self._position)
                self._durable = self._position

    def _close(self) -> None:
        if not self._closed:
            self._flush()
            # A merge that this cuts off begins again after a later commit.
            for index in self._indexes.values():
                index.release_writer()
            self._closed = True

    def _drop(self) -> None:
        with self._writing, self._reported("drop"):
            self._closed = True
            for index in self._indexes.values():
                index.release_writer()
            # The position goes first: what a crash leaves behind is then filled anew from the log's beginning.
            (self._folder / "position.json").unlink(missing_ok=True)
            sync_folder(self._folder)
            shutil.rmtree(self._folder)

    @contextmanager
    def _reported(self, action: str) -> Iterator[None]:
        if self._closed:
            raise Unavailable(f"{self._name} is closed; open it again")
        try:
            yield
        except Failure:
            raise
        except OSError as error:
            raise Unavailable(f"{self._name} can't {action}: {error}; check the disk under {self._folder}") from error
        except ValueError as error:
            raise _outcome(f"{self._name} can't {action}: {error}") from error


def _delete_old(folder: Path) -> None:
    for kind in EVERY_KIND:
        shutil.rmtree(folder / kind.value, ignore_errors=True)
    # The position goes last: what a crash leaves behind still names the old layout.
    (folder / "position.json").unlink()
    sync_folder(folder)


def _outcome(message: str) -> Failure:
    # tantivy reports every fault as ValueError, with its Rust error as text.
    unreadable = ("corrupt", "incompatible", "schema", "doesn't describe", "Expecting", "deserial")
    if any(word in message for word in unreadable):
        return Corrupt(
            f"{message}; stop the node, delete the lane's folder and start again: it is filled from the rows"
        )
    return Unavailable(f"{message}; try again, and check the disk if it stays")


class TantivyKeywordLanes:
    """Opens keyword lanes under one folder. One process at a time may write there; the engine refuses a second."""

    def __init__(self, *, root: Path) -> None:
        self._root = root
        self._lanes: dict[tuple[str, int], TantivyKeywordLane] = {}
        self._writers: OrderedDict[TantivyKeywordLane, None] = OrderedDict()
        self._counting = threading.Lock()
        self._opening = asyncio.Lock()

    async def open(self, crate_id: str, generation: int) -> TantivyKeywordLane:
        """See `ports.KeywordLanes.open`."""
        if not _CRATE.fullmatch(crate_id) or generation < 1:
            raise Rejected(
                f"no lane for crate {crate_id!r}, generation {generation}: ids are [a-z0-9-]{{1,40}} and from 1"
            )
        key = (crate_id, generation)
        async with self._opening:
            lane = self._lanes.get(key)
            if lane is None or lane.closed:
                folder = self._root / crate_id / str(generation) / "keyword"
                name = f"keyword lane of crate {crate_id}, generation {generation}"
                lane = await asyncio.to_thread(TantivyKeywordLane, folder, name=name, wrote=self._make_room)
                self._lanes[key] = lane
            return lane

    async def close(self) -> None:
        """See `ports.KeywordLanes.close`."""
        async with self._opening:
            for lane in self._lanes.values():
                await lane.close()
            self._lanes.clear()

    def _make_room(self, lane: TantivyKeywordLane) -> None:
        # A writer costs threads and memory, so only the lanes written last keep theirs.
        with self._counting:
            self._writers[lane] = None
            self._writers.move_to_end(lane)
            idle = self._writers.popitem(last=False)[0] if len(self._writers) > _MOST_WRITERS else None
        if idle is not None:
            idle.finish_merges()
