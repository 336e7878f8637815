"""Edge 1: facts into lanes and rows, the first generation of a crate, and the signals that follow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from services import topology
from services.index.changes import LaneChanges, Moved, lane_changes
from services.index.codec import facts as codec
from services.index.domain.content import CrateRows
from services.index.domain.documents import Embedded, Erased, Fact, Ingested, Retired, plan
from services.index.domain.generations import (
    FIRST_GENERATION,
    Generation,
    GenerationEnd,
    GenerationStart,
    GenerationStatus,
    advance,
    named,
)
from services.index.domain.records import RevisionKey
from services.index.forces import Counted, LivingForces
from services.index.gate import Gate
from services.index.loading import Loader, assemble, keyword_records
from services.index.ports import KeywordLane, KeywordLanes, ModelCatalogue, Tables, VectorLane, VectorLanes
from services.kernel import retries, tasks, telemetry
from services.kernel.bus import Bus, LogReader
from services.kernel.envelope import Event
from services.kernel.erasures import erased_since
from services.kernel.errors import Failure, NotFound, Rejected
from services.kernel.failures import Failures

PROJECTION_EVENTS = (
    "CrateConfigured",
    "DocumentIngested",
    "DocumentRetired",
    "DocumentErased",
    "RecordsEmbedded",
    "GenerationStarted",
    "GenerationActivated",
    "GenerationFailed",
    "TaskRetried",
    "RelationDeclared",
    "ClockAdvanced",
)
GENERATIONS = "generations"
_STANDARD = "standard"
# Rest between writes, in multiples of what the last one took: writing stays below a fifth of the time.
_SHARE = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """What a batch writes for one crate."""

    rows: CrateRows
    lanes: tuple[LaneChanges, ...]


class GenerationStarter:
    """Gives every crate its first generation."""

    def __init__(self, *, bus: Bus, models: ModelCatalogue) -> None:
        self._bus = bus
        self._models = models

    async def handle(self, event: Event) -> None:
        """Start and activate generation 1, unless the crate has a generation.

        Args:
            event: A CrateConfigured.

        Raises:
            Unavailable: When the embedder or the log doesn't answer.
        """
        last = await self._bus.last(crate=event.crate, service="index", aggregate=GENERATIONS)
        known = codec.fact(last.message, last.position, last.time) if last else None
        if known is None:
            model = await self._models.embedding_model(event.crate)
            strategy = codec.retrieval_strategy(event.message) or _STANDARD
            start = GenerationStart(
                generation=FIRST_GENERATION,
                model_id=model.model_id,
                dimension=model.dimension,
                model_fingerprint=model.fingerprint,
                retrieval_strategy=strategy,
                prompt_version="" if strategy == _STANDARD else topology.PROMPT_VERSION,
                started_at=event.time,
                position=0,
            )
            await self._append(event.crate, codec.generation_started(start), "started")
        elif not isinstance(known, GenerationStart) or known.generation != FIRST_GENERATION:
            return
        await self._append(event.crate, codec.generation_activated(FIRST_GENERATION, event.time), "activated")

    async def _append(self, crate_id: str, message: codec.GenerationMessage, kind: str) -> None:
        await self._bus.append_once(
            crate=crate_id, aggregate=GENERATIONS, message=message, key=f"{GENERATIONS}:{FIRST_GENERATION}:{kind}"
        )


class LaneProjection:
    """Applies facts in log order: first both lanes, durably, then rows and position in one transaction.

    A crash in between leaves the lanes ahead of the rows. Searches check every hit against the rows, and the batch
    comes again, cut at another place perhaps: what the lanes hold afterwards is the same however it is cut.

    Lanes that nobody searches yet are written while the rows are; the commit still waits for them.
    """

    def __init__(
        self,
        *,
        log: LogReader,
        loader: Loader,
        tables: Tables,
        forces: LivingForces,
        keyword_lanes: KeywordLanes,
        vector_lanes: VectorLanes,
        gate: Gate,
        failures: Failures,
        noted: Callable[[], None],
        erased: Callable[[], None],
        batch_records: int,
        spacing_s: float,
        searched: bool = True,
    ) -> None:
        self._log = log
        self._loader = loader
        self._tables = tables
        self._forces = forces
        self._keyword_lanes = keyword_lanes
        self._vector_lanes = vector_lanes
        self._gate = gate
        self._failures = failures
        self._noted = noted
        self._erased = erased
        self._batch_records = batch_records
        self._spacing_s = spacing_s
        self._searched = searched
        self._next_write = 0.0

    async def apply(self, events: Sequence[Event]) -> None:
        """Apply events.

        Args:
            events: In log order.

        Raises:
            Unavailable: When packs, lanes, tables or log don't answer.
        """
        await self._gate.wait()
        handed = [await retries.handed_over(self._log, self._failures, event) for event in events]
        for batch in batches([event for event in handed if event is not None], self._batch_records):
            async with self._gate.changing:
                await self._apply(batch)

    async def _apply(self, events: Sequence[Event]) -> None:
        by_crate: dict[str, list[Event]] = {}
        for event in events:
            by_crate.setdefault(event.crate, []).append(event)
        try:
            prepared = [await self._prepare(crate_id, mine) for crate_id, mine in by_crate.items()]
            await self._write(prepared, events)
        except BaseException:
            for crate_id in by_crate:
                self._forces.dropped(crate_id)
            raise
        for crate in prepared:
            if crate.rows.living is not None:
                self._forces.settled(crate.rows.living)
        self._noted()
        if any(crate.rows.plan.erased for crate in prepared):
            self._erased()

    async def _write(self, prepared: Sequence[_Prepared], events: Sequence[Event]) -> None:
        position = events[-1].place
        lanes = [changes for crate in prepared for changes in crate.lanes]
        small = sum(codec.record_count(event.message) for event in events) < self._batch_records / 2
        if lanes and small:
            await self._space_out()
        began = _now()

        async def write_lanes() -> None:
            await asyncio.gather(*(self._write_lanes(changes, position) for changes in lanes))

        rows = [crate.rows for crate in prepared]
        with self._gate.writing():
            if self._searched:
                # The rows are written first but committed last: so the lanes are ahead of them for a moment only.
                await self._tables.commit(rows, position, write_lanes)
            else:
                written = asyncio.create_task(write_lanes())
                try:
                    await self._tables.commit(rows, position, lambda: written)
                finally:
                    await tasks.cancel([written])
        if lanes and small:
            self._next_write = _now() + min(self._spacing_s, _SHARE * (_now() - began))

    async def _space_out(self) -> None:
        """Let events gather when lanes were written just now.

        A commit costs the lanes about the same for one document as for a hundred. After a pause the next write doesn't
        wait, so a single document is found at once.
        """
        await asyncio.sleep(max(0.0, self._next_write - _now()))

    async def _prepare(self, crate_id: str, events: Sequence[Event]) -> _Prepared:
        told = [(event, codec.fact(event.message, event.place, event.time)) for event in events]
        generation_facts = [fact for _, fact in told if isinstance(fact, GenerationStart | GenerationEnd)]
        generations = advance(await self._tables.generations(crate_id), generation_facts)
        facts = {fact: event for event, fact in told if isinstance(fact, Ingested | Embedded | Retired | Erased)}
        await self._drop_misfits(facts, generations)
        states = await self._tables.states(
            crate_id, [fact.document_id for fact in facts], [fact.revision for fact in facts]
        )
        while True:
            made = plan(states, facts)
            contents, failures = await self._loader.read(crate_id, made)
            if not failures:
                break
            for fact, failure in failures:
                await self._give_up(facts.pop(fact), failure)
        counted = await self._forces.after(crate_id, made, told, contents)
        loaded = await assemble(contents, counted.mine)
        others = [key for key in (*counted.mine, *counted.others) if key not in loaded.contents]
        again = bool(others) and await self._lanes_had(crate_id, generations, events[0].place)
        moved = await self._moved(crate_id, others, counted, again=again)
        lanes = tuple(lane_changes(crate_id, generations, made, loaded, moved))
        rows = CrateRows(
            crate_id=crate_id,
            plan=made,
            contents=loaded.contents,
            forces={
                **{key: counted.mine[key] for key in loaded.contents},
                **{(each.shown.fact.document_id, each.shown.fact.revision): each.shown.force for each in moved},
            },
            living=counted.change,
            generations=tuple(generation_facts),
            lanes_changed=tuple(changes.generation.start.generation for changes in lanes),
        )
        return _Prepared(rows=rows, lanes=lanes)

    async def _moved(self, crate_id: str, keys: Sequence[RevisionKey], counted: Counted, *, again: bool) -> list[Moved]:
        """Revisions that aren't loaded anew but count at other times than the rows have; all of them for `again`."""
        moved = []
        for shown in await self._tables.shown_of(crate_id, keys) if keys else ():
            key = (shown.fact.document_id, shown.fact.revision)
            force = counted.mine.get(key) or replace(counted.others[key], current=shown.force.current)
            if again or force != shown.force:
                after = replace(shown, force=force)
                has_chunks = bool(shown.fact.chunk_count)
                records = await keyword_records(self._tables, crate_id, after) if has_chunks else None
                moved.append(Moved(shown=after, keyword=records))
        return moved

    async def _lanes_had(self, crate_id: str, generations: Sequence[Generation], first: int) -> bool:
        """Whether a lane has applied something of this batch before, so that the rows don't tell what it holds."""
        for generation in generations:
            if generation.status is not GenerationStatus.FAILED:
                for lane in await self._lanes(crate_id, generation):
                    if await lane.position() >= first:
                        return True
        return False

    async def _drop_misfits(self, facts: dict[Fact, Event], generations: Sequence[Generation]) -> None:
        for fact in [fact for fact in facts if isinstance(fact, Embedded)]:
            generation = named(generations, fact.generation)
            if generation is not None and generation.status is GenerationStatus.FAILED:
                # A failed generation never serves, and later successes don't revive it.
                del facts[fact]
                continue
            problem = _misfit(fact, generation)
            if problem:
                await self._give_up(facts.pop(fact), Rejected(problem))

    async def _give_up(self, event: Event, failure: Failure) -> None:
        """Record one event that can't be applied; its neighbours in the batch go on."""
        if isinstance(failure, NotFound) and await erased_since(self._log, event):
            return
        telemetry.failed(self._log.role, event, failure, final=True)
        await self._failures.record(event, failure)

    async def _write_lanes(self, changes: LaneChanges, position: int) -> None:
        keyword, vector = await self._lanes(changes.crate_id, changes.generation)
        await asyncio.gather(keyword.replace(changes.keyword, position), vector.replace(changes.vector, position))

    async def _lanes(self, crate_id: str, generation: Generation) -> tuple[KeywordLane, VectorLane]:
        start = generation.start
        return (
            await self._keyword_lanes.open(crate_id, start.generation),
            await self._vector_lanes.open(crate_id, start.generation, start.dimension),
        )


def _now() -> float:
    return asyncio.get_running_loop().time()


def batches(events: Sequence[Event], most_records: int) -> Iterator[Sequence[Event]]:
    """Cut a batch so that its content fits in memory.

    Args:
        events: In log order.
        most_records: Chunks in one part, unless a single event has more.

    Yields:
        Consecutive parts.
    """
    part: list[Event] = []
    records = 0
    for event in events:
        count = codec.record_count(event.message)
        if part and records + count > most_records:
            yield part
            part, records = [], 0
        part.append(event)
        records += count
    if part:
        yield part


def _misfit(fact: Embedded, generation: Generation | None) -> str:
    name = f"revision {fact.revision} of document {fact.document_id}"
    if generation is None:
        return f"{name} was embedded for generation {fact.generation}, which doesn't exist: ingest the document again"
    start = generation.start
    if fact.chunk_count and (fact.model_id, fact.dimension) != (start.model_id, start.dimension):
        return (
            f"{name} has vectors of {fact.model_id} with {fact.dimension} dimensions, but generation {start.generation} "
            f"is built on {start.model_id} with {start.dimension}: restore that embedding provider and ingest again"
        )
    return ""
