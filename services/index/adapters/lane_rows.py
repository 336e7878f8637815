"""Both lanes as rows, to be compared with those of another build. Reads lanes that another process may be writing."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from services.index.adapters.edge_engine.frames import Header
from services.index.adapters.tantivy_index import TantivyIndex
from services.index.adapters.vector_engine_process import EngineConnection
from services.index.domain.generations import Generation
from services.index.domain.records import EVERY_KIND
from services.kernel.digests import Row, Rows
from services.kernel.errors import Unavailable

_PAGE = 200
# Nothing is written, but the engine wants to know.
_HEAP_BYTES = 16_000_000

T = TypeVar("T")
Lanes = Sequence[tuple[str, Generation]]


class Engine(Protocol):
    """A vector engine, our own or another process's."""

    async def run(self, work: Callable[[EngineConnection], Awaitable[T]]) -> T:
        """Do something on a connection."""


class ServedEngine:
    """The engine of a running node, reached from outside."""

    def __init__(self, *, socket: Path) -> None:
        self._socket = socket

    async def run(self, work: Callable[[EngineConnection], Awaitable[T]]) -> T:
        """Do something on a connection.

        Raises:
            Unavailable: When the engine doesn't answer.
        """
        try:
            connection = EngineConnection(*await asyncio.open_unix_connection(self._socket))
            try:
                return await work(connection)
            finally:
                connection.close()
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Unavailable("the node's vector engine doesn't answer: is the node ready? Retry") from error


def served_engine(root: Path) -> ServedEngine | None:
    """Find the engine that serves a folder of lanes.

    Args:
        root: Folder of the lanes.

    Returns:
        The engine; None when none runs there.
    """
    try:
        with (root / ".engine.lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return ServedEngine(socket=Path(lock.read().partition(" ")[2]))
    except FileNotFoundError:
        pass
    return None


class LaneRows:
    """The lanes below one folder.

    Portable rows leave out of a record's force what two histories with the same outcome don't share.
    """

    def __init__(self, *, root: Path, engine: Engine, portable: bool = False) -> None:
        self._root = root
        self._engine = engine
        self._portable = portable

    async def keyword(self, lanes: Lanes, terms: Callable[[str], AsyncIterator[str]]) -> Rows:
        """Read the keyword lanes: a row for each record, and one for each term with how many chunks hold it.

        Args:
            lanes: Crate and generation, in order.
            terms: Terms of a crate that are counted.

        Yields:
            Rows in order.
        """
        for crate, generation in lanes:
            folder = self._root / crate / str(generation.start.generation) / "keyword"
            for kind in EVERY_KIND:
                if not (folder / kind / "meta.json").exists():
                    continue
                index = TantivyIndex(folder / kind, heap_bytes=_HEAP_BYTES)
                start: tuple[str, int, str] = (crate, generation.start.generation, kind)
                records = await asyncio.to_thread(index.records)
                for hit, force in sorted(records, key=lambda of: (of[0].document_id, of[0].revision, of[0].place)):
                    held = [force.effective_from, force.in_force_until, force.position, int(force.current)]
                    content = f"{hit.form}/{self._told(held)}".encode()
                    yield (*start, "record", hit.document_id, hit.revision, hit.place), content
                wanted = sorted({term async for term in terms(crate)})
                counts = await asyncio.to_thread(index.statistics, wanted)
                for term in wanted:
                    yield (*start, "term", term), str(counts[term]).encode()

    async def vector(self, lanes: Lanes) -> Rows:
        """Read the vector lanes: a row for each record.

        Args:
            lanes: Crate and generation, in order.

        Yields:
            Rows in order; the content is a hash of vector, form and source domain, and the force.
        """
        for crate, generation in lanes:
            for row in await self._vector(crate, generation):
                yield row

    async def _vector(self, crate: str, generation: Generation) -> list[Row]:
        start = generation.start
        header: Header = {
            "op": "stored",
            "crate": crate,
            "generation": start.generation,
            "dimension": start.dimension,
            "limit": _PAGE,
        }

        async def read(connection: EngineConnection) -> list[Row]:
            rows: list[Row] = []
            after = None
            while True:
                page = await connection.call({**header, "after": after})
                rows += [
                    (
                        (crate, start.generation, kind, document, revision, place),
                        f"{content}/{self._told([begin, end, position, current])}".encode(),
                    )
                    for document, revision, place, kind, content, (begin, end, _, position, current) in page["records"]
                ]
                after = page["next"]
                if after is None:
                    return rows

        return sorted(await self._engine.run(read))

    def _told(self, held: Sequence[int]) -> str:
        """Effective from, in force until, position, and whether it is current.

        From when on the end is known isn't compared: it may be because of a document that is erased by now.
        """
        return str(held[-1:] if self._portable else held)
