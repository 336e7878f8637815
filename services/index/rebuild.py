"""Rebuilds lanes from the rows: a folder that was lost, an older copy of one, or one that erased content must leave."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from services.index.domain.content import ShownRevision
from services.index.domain.generations import Generation, GenerationStatus
from services.index.domain.records import KeywordChange, Kind, VectorChange
from services.index.gate import Gate
from services.index.loading import Loader, keyword_records
from services.index.ports import KeywordLane, KeywordLanes, Lane, Tables, VectorLane, VectorLanes
from services.kernel import failures
from services.kernel.bus import Bus
from services.kernel.errors import Corrupt, Failure, NotFound, Unavailable
from services.kernel.scrub import Erasure

_log = logging.getLogger("affidavit.index")
_PAGE = 200


class LaneRebuilder:
    """Compares lanes with rows at start, rebuilds what is behind, then opens the gate.

    Rows hold the position of the last batch that changed a generation's lanes. Lanes are written before rows, so a
    lane is never behind them unless its data is gone or older.
    """

    def __init__(
        self,
        *,
        bus: Bus,
        loader: Loader,
        tables: Tables,
        keyword_lanes: KeywordLanes,
        vector_lanes: VectorLanes,
        gate: Gate,
        batch_records: int,
    ) -> None:
        self._bus = bus
        self._loader = loader
        self._tables = tables
        self._keyword_lanes = keyword_lanes
        self._vector_lanes = vector_lanes
        self._gate = gate
        self._batch_records = batch_records

    async def run(self) -> None:
        """Bring every lane up to the rows, once.

        Raises:
            Failure: When lanes, tables, packs or log don't answer; call it again, the gate stays closed.
        """
        try:
            for crate_id in await self._tables.crates():
                for generation in await self._tables.generations(crate_id):
                    if generation.status is not GenerationStatus.FAILED:
                        await self._check(crate_id, generation)
        except Failure as error:
            self._gate.report(error.message)
            raise
        self._gate.open()

    async def scrub(self, erasures: Sequence[Erasure]) -> None:
        """Write the lanes of the crates anew, so that their files hold nothing of documents that were erased.

        Searches go on meanwhile. Changes wait while the keyword lane is written, which the engine can do in one go only.

        Args:
            erasures: Of which the rows are gone.

        Raises:
            Failure: When lanes or tables don't answer, or old files are still in use; call it again.
        """
        await self._gate.wait()
        for crate_id in dict.fromkeys(erasure.crate for erasure in erasures):
            for generation in await self._tables.generations(crate_id):
                start = generation.start
                began = time.monotonic()
                keyword = await self._keyword_lanes.open(crate_id, start.generation)
                async with self._gate.changing:
                    await self._check_not_ahead(keyword)
                    await keyword.rewrite(self._keyword_changes(crate_id, generation))
                halfway = time.monotonic()
                vector = await self._vector_lanes.open(crate_id, start.generation, start.dimension)
                await vector.rewrite()
                took_s = (halfway - began, time.monotonic() - halfway)
                _log.info("lanes of crate %s written anew: keyword %.1f s, vector %.1f s", crate_id, *took_s)

    async def _check_not_ahead(self, lane: Lane) -> None:
        # After a crash between lanes and rows the batch comes again, and the lane, which has it already, would pass over
        # it: rows that don't have it yet must not fill the lane.
        if await lane.position() > await self._tables.position():
            raise Unavailable("the rows are still behind the keyword lane; it is written anew as soon as they aren't")

    async def _check(self, crate_id: str, generation: Generation) -> None:
        start = generation.start
        keyword = await self._keyword_lanes.open(crate_id, start.generation)
        if await self._lost(crate_id, keyword, generation):
            await keyword.drop()
            await self._fill_keyword(await self._keyword_lanes.open(crate_id, start.generation), crate_id, generation)
        vector = await self._vector_lanes.open(crate_id, start.generation, start.dimension)
        if await self._lost(crate_id, vector, generation):
            await vector.drop()
            vector = await self._vector_lanes.open(crate_id, start.generation, start.dimension)
            await self._fill_vector(vector, crate_id, generation)

    async def _lost(self, crate_id: str, lane: Lane, generation: Generation) -> bool:
        """Whether a lane is behind the rows, or empty although its position says otherwise."""
        position, target = await lane.position(), generation.lane_position
        if position != target or await lane.count(Kind.CHUNK):
            return position < target
        return bool(await self._tables.shown(crate_id, generation.start.generation, 0, 1))

    async def _fill_keyword(self, lane: KeywordLane, crate_id: str, generation: Generation) -> None:
        async for page in self._pages(crate_id, generation, "keyword"):
            changes = [await keyword_records(self._tables, crate_id, shown) for shown in page]
            await lane.replace(changes, page[-1].fact.position)
        await _finish(lane, lane.replace, generation.lane_position)

    async def _fill_vector(self, lane: VectorLane, crate_id: str, generation: Generation) -> None:
        async for page in self._pages(crate_id, generation, "vector"):
            changes = [change for shown in page for change in await self._vector_changes(crate_id, shown)]
            await lane.replace(changes, page[-1].fact.position)
        await _finish(lane, lane.replace, generation.lane_position)

    async def _pages(self, crate_id: str, generation: Generation, lane: str) -> AsyncIterator[Sequence[ShownRevision]]:
        """Stored revisions in the order of the log, so that each page ends at a higher position."""
        after = done = 0
        while True:
            if lane:
                self._gate.report(f"rebuilding the {lane} lane of crate {crate_id}: {done:,} revisions done")
            found = await self._tables.shown(crate_id, generation.start.generation, after, _PAGE)
            if not found:
                return
            for page in _parts(found, self._batch_records):
                yield page
            after, done = found[-1].fact.position, done + len(found)

    async def _keyword_changes(self, crate_id: str, generation: Generation) -> AsyncIterator[Sequence[KeywordChange]]:
        async for page in self._pages(crate_id, generation, ""):
            yield [await keyword_records(self._tables, crate_id, shown) for shown in page]

    async def _vector_changes(self, crate_id: str, shown: ShownRevision) -> tuple[VectorChange, ...]:
        try:
            return (await self._loader.vectors(crate_id, shown),)
        except (NotFound, Corrupt) as error:
            # One pack that is damaged must not keep every other document from being found.
            _log.warning("%s has no usable vectors: %s", shown.fact.document_id, error.code)
            event = await self._bus.last_named(
                crate=crate_id, service="embedder", aggregate=shown.fact.document_id, name="RecordsEmbedded"
            )
            if event is not None:
                await failures.record(self._bus, event, error)
            return ()


async def _finish(lane: Lane, replace: Callable[[tuple[()], int], Awaitable[None]], position: int) -> None:
    await replace((), position)
    await lane.flush()


def _parts(found: Sequence[ShownRevision], most_records: int) -> list[list[ShownRevision]]:
    parts: list[list[ShownRevision]] = [[]]
    records = 0
    for shown in found:
        if parts[-1] and records + shown.fact.row_count > most_records:
            parts.append([])
            records = 0
        parts[-1].append(shown)
        records += shown.fact.row_count
    return parts
