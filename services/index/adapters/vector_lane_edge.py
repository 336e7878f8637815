"""Vector lane on Qdrant Edge, in the engine's process.

Files lie under `<root>/<crate>/<generation>/vector/`; see `edge_engine.served_lane`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from services.index.adapters.edge_engine import frames
from services.index.adapters.edge_engine.frames import Header, Step, StoredForce, StoredRecord
from services.index.adapters.vector_engine_process import EngineConnection, VectorEngineProcess
from services.index.domain.force import Force
from services.index.domain.records import ForceChange, Form, Kind, LaneFilter, LaneHit, Record, VectorChange, parts_of
from services.kernel.errors import Rejected, Unavailable

_CRATE = re.compile(r"[a-z0-9-]{1,40}")
_RECORDS_PER_STEP = 500
_RECORDS_PER_FRAME = 2_000
_EDITIONS_PER_POSITION = 1 << 20

T = TypeVar("T")


class EdgeVectorLane:
    """One crate's generation in the vector lane. Opened by `EdgeVectorLanes`."""

    def __init__(self, *, engine: VectorEngineProcess, crate_id: str, generation: int, dimension: int) -> None:
        self._engine = engine
        self._key: Header = {"crate": crate_id, "generation": generation, "dimension": dimension}
        self._name = f"vector lane of crate {crate_id}, generation {generation}"
        self._dimension = dimension
        self._position = 0
        self._durable = 0
        self._closed = False
        self._writing = asyncio.Lock()

    @property
    def dimension(self) -> int:
        """Components of every vector."""
        return self._dimension

    @property
    def closed(self) -> bool:
        """True once the lane was closed or dropped."""
        return self._closed

    async def load(self) -> None:
        """Open the lane in the engine, creating it when it doesn't exist."""
        answer = await self._call("open")
        self._position = self._durable = answer["position"]

    async def position(self) -> int:
        """See `ports.Lane.position`."""
        return self._position

    async def count(self, kind: Kind | None = None) -> int:
        """See `ports.Lane.count`."""
        return int((await self._call("count", {"kind": kind}))["count"])

    async def replace(self, changes: Sequence[VectorChange | ForceChange], position: int) -> None:
        """See `ports.VectorLane.replace`."""
        for change in changes:
            if isinstance(change, VectorChange):
                self._check_change(change)
        async with self._writing:
            if position <= self._position:
                return
            if changes:
                await self._run(lambda connection: self._replace(connection, changes, position))
                self._durable = position
            self._position = position

    async def search(self, vector: NDArray[np.float32], lane_filter: LaneFilter, limit: int) -> list[LaneHit]:
        """See `ports.VectorLane.search`."""
        if limit < 1:
            raise Rejected(f"a search of the {self._name} with limit {limit} finds nothing; ask for at least 1 hit")
        self._check_rows(vector[np.newaxis, :] if vector.ndim == 1 else vector, 1)
        body = vector.astype("<f4", copy=False).tobytes()
        header = {
            "kind": lane_filter.kind,
            "forms": lane_filter.forms,
            "document_ids": lane_filter.document_ids,
            "source_domains": lane_filter.source_domains,
            "limit": limit,
            "reach": lane_filter.reach,
            "as_of": lane_filter.as_of,
            "at": lane_filter.at,
            "also": lane_filter.also,
            "without": lane_filter.without,
        }
        answer = await self._call("search", header, body)
        return [_hit(*hit) for hit in answer["hits"]]

    async def optimise(self) -> bool:
        """See `ports.VectorLane.optimise`."""
        return bool((await self._call("optimise", timeout_s=None))["optimised"])

    async def rewrite(self) -> None:
        """See `ports.VectorLane.rewrite`."""
        await self._call("rewrite", timeout_s=None)

    async def status(self) -> Header:
        """What the engine says: `unindexed` records, `optimising`, durable `position`."""
        return await self._call("status")

    async def flush(self) -> None:
        """See `ports.Lane.flush`."""
        async with self._writing:
            if self._durable != self._position:
                await self._call("commit", {"position": self._position})
                self._durable = self._position

    async def drop(self) -> None:
        """See `ports.Lane.drop`."""
        async with self._writing:
            await self._call("drop")
            self._closed = True

    async def close(self) -> None:
        """See `ports.Lane.close`."""
        if self._closed:
            return
        # An engine that died with nothing to say is not started for a farewell.
        if self._engine.is_alive() or self._durable != self._position:
            await self.flush()
            await self._call("close")
        self._closed = True

    async def _replace(
        self, connection: EngineConnection, changes: Sequence[VectorChange | ForceChange], position: int
    ) -> None:
        header = {"op": "steps", **self._key}
        for batch in _frames_of(_steps(changes, position, self._dimension)):
            await connection.send(frames.encode_steps(batch, header))
        await connection.call({"op": "commit", **self._key, "position": position})

    async def _call(
        self, operation: str, fields: Header | None = None, body: bytes = b"", *, timeout_s: float | None = 120.0
    ) -> Header:
        header: Header = {"op": operation, **self._key, **(fields or {})}
        return await self._run(lambda connection: connection.call(header, body, timeout_s=timeout_s))

    async def _run(self, work: Callable[[EngineConnection], Awaitable[T]]) -> T:
        if self._closed:
            raise Unavailable(f"the {self._name} is closed; open it again")
        return await self._engine.run(work)

    def _check_change(self, change: VectorChange) -> None:
        if change.vectors is None:
            if change.records:
                raise Rejected(f"{len(change.records)} records of document {change.document_id} come without vectors")
            return
        try:
            self._check_rows(change.vectors, len(change.records))
        except Rejected as error:
            raise Rejected(f"{error.message} (document {change.document_id})") from error

    def _check_rows(self, rows: NDArray[np.float32], count: int) -> None:
        if rows.shape != (count, self._dimension):
            raise Rejected(f"the {self._name} takes float32[{count}, {self._dimension}], not {list(rows.shape)}")
        lengths = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        if not np.isfinite(lengths).all():
            raise Rejected(f"a vector for the {self._name} has a component that isn't finite; embed the text again")
        if not lengths.all():
            raise Rejected(f"a vector for the {self._name} has no length, so it has no cosine; embed the text again")


class EdgeVectorLanes:
    """Opens vector lanes in an engine that it starts with the first and stops at the end."""

    def __init__(self, *, engine: VectorEngineProcess) -> None:
        self._engine = engine
        self._lanes: dict[tuple[str, int], EdgeVectorLane] = {}
        self._opening = asyncio.Lock()

    async def open(self, crate_id: str, generation: int, dimension: int) -> EdgeVectorLane:
        """See `ports.VectorLanes.open`."""
        if not _CRATE.fullmatch(crate_id) or generation < 1 or dimension < 1:
            raise Rejected(f"no lane for crate {crate_id!r}, generation {generation}, {dimension} components")
        async with self._opening:
            lane = self._lanes.get((crate_id, generation))
            if lane is None or lane.closed or lane.dimension != dimension:
                lane = EdgeVectorLane(
                    engine=self._engine, crate_id=crate_id, generation=generation, dimension=dimension
                )
                await lane.load()
                self._lanes[(crate_id, generation)] = lane
            return lane

    async def close(self) -> None:
        """See `ports.VectorLanes.close`."""
        async with self._opening:
            try:
                for lane in self._lanes.values():
                    await lane.close()
            finally:
                self._lanes.clear()
                await self._engine.stop()


def _steps(changes: Sequence[VectorChange | ForceChange], position: int, dimension: int) -> Iterator[Step]:
    none = np.empty((0, dimension), dtype=np.float32)
    for index, change in enumerate(changes):
        edition = position * _EDITIONS_PER_POSITION + index
        if isinstance(change, ForceChange):
            moved = (change.form.value, _stored(change.force))
            yield Step(change.document_id, change.revision, edition, (), (), none, last=True, moved=moved)
            continue
        kinds = tuple(kind.value for kind in change.kinds)
        rows = none if change.vectors is None else change.vectors
        starts = range(0, max(1, len(change.records)), _RECORDS_PER_STEP)
        for start in starts:
            end = start + _RECORDS_PER_STEP
            records = tuple(map(_row, change.records[start:end]))
            last = start == starts[-1]
            yield Step(change.document_id, change.revision, edition, kinds, records, rows[start:end], last)


def _frames_of(steps: Iterator[Step]) -> Iterator[list[Step]]:
    batch: list[Step] = []
    size = 0
    for step in steps:
        batch.append(step)
        size += len(step.records) + 1
        if size >= _RECORDS_PER_FRAME:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _hit(document_id: str, revision: int, place: int, score: float, form: str) -> LaneHit:
    ordinal, statement = parts_of(place)
    return LaneHit(document_id, revision, ordinal, score, Form(form), statement)


def _row(record: Record) -> StoredRecord:
    return (
        record.revision,
        record.place,
        record.kind.value,
        record.form.value,
        record.source_domain,
        _stored(record.force),
    )


def _stored(force: Force) -> StoredForce:
    return force.effective_from, force.in_force_until, force.until_known_from, force.position, int(force.current)
