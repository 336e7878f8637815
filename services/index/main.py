"""Composition of the index role."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from affidavit.index.v1 import index_service_pb2_grpc as pb_grpc

from services.index.adapters.chunks_postgres import PostgresChunkReader
from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLanes
from services.index.adapters.lane_rows import LaneRows, served_engine
from services.index.adapters.living_postgres import PostgresLivingTables
from services.index.adapters.living_reader_postgres import PostgresLivingReader
from services.index.adapters.models_grpc import GrpcModelCatalogue
from services.index.adapters.outbox_postgres import PostgresOutbox
from services.index.adapters.past_postgres import PostgresPastForces
from services.index.adapters.schema_postgres import CONTENT, MIGRATIONS, PROJECTION, TABLES
from services.index.adapters.tables_postgres import PostgresTables
from services.index.adapters.vector_engine_process import VectorEngineProcess
from services.index.adapters.vector_lane_edge import EdgeVectorLanes
from services.index.domain.generations import Generation, GenerationStatus
from services.index.forces import LivingForces
from services.index.gate import Gate
from services.index.handlers import PROJECTION_EVENTS, GenerationStarter, LaneProjection
from services.index.living import Living
from services.index.loading import Loader
from services.index.rebuild import LaneRebuilder
from services.index.servicer import IndexServicer
from services.index.settings import IndexSettings
from services.index.signals import SignalSender
from services.index.states import LivingAnswers
from services.kernel.bus import Bus, LogReader
from services.kernel.db import Database
from services.kernel.digests import Rows
from services.kernel.failures import Failures, LoggedFailures
from services.kernel.ids import utc_now
from services.kernel.packs import PackStore
from services.kernel.projections import Projection
from services.kernel.replay import ReplayContext, Replica, RowSource
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.kernel.scrub import Scrubber
from services.kernel.settings import NodeSettings
from services.kernel.steps import Step

_CONNECTIONS = 8
_ENGINE_LOOK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What both edges share."""

    log: LogReader
    database: Database
    failures: Failures
    settings: IndexSettings
    tables: PostgresTables
    reader: PostgresChunkReader
    keyword_lanes: TantivyKeywordLanes
    vector_lanes: EdgeVectorLanes
    gate: Gate
    loader: Loader
    living: Living


async def wire(context: Context) -> Role:
    """Pick the adapters and connect the parts.

    Args:
        context: What the role is wired from.

    Returns:
        The role.

    Raises:
        Failure: When a dependency is missing.
    """
    settings = IndexSettings(data_dir=context.settings.data_dir)
    database = await context.database(MIGRATIONS, max_connections=_CONNECTIONS)
    engine = VectorEngineProcess(root=settings.lanes, runtime_dir=settings.data_dir / "run")
    failures = LoggedFailures(bus=context.bus)
    parts = _parts(settings, database, engine, log=context.bus, failures=failures, packs=context.packs)
    sender = SignalSender(bus=context.bus, outbox=PostgresOutbox(database=database))
    rebuilder = _rebuilder(parts, context.bus)
    scrubber = Scrubber(
        database=database, tables=CONTENT, position=parts.tables.position, before=rebuilder.scrub, log=context.bus
    )
    starter = GenerationStarter(bus=context.bus, models=GrpcModelCatalogue(channel=context.channel("embedder")))
    projection = _projection(parts, noted=sender.wake, erased=scrubber.wake, spacing_s=settings.index_spacing_s)

    async def lanes() -> str:
        return parts.gate.problem

    async def vector_engine() -> str:
        return "" if engine.is_alive() else "the vector engine isn't running yet"

    add = pb_grpc.add_IndexServiceServicer_to_server
    return Role(
        name="index",
        servicers=(Servicer("affidavit.index.v1.IndexService", add, _servicer(parts, scrubber)),),
        steps=(Step(name="generations", events=("CrateConfigured",), handle=starter.handle),),
        projections=(
            Projection(
                name=PROJECTION, events=PROJECTION_EVENTS, apply=projection.apply, position=parts.tables.position
            ),
        ),
        background=(rebuilder.run, sender.run, scrubber.run, _keeper(engine)),
        checks={"lanes": lanes, "vector engine": vector_engine},
        close=(parts.keyword_lanes.close, parts.vector_lanes.close),
    )


def _keeper(engine: VectorEngineProcess) -> Callable[[], Awaitable[None]]:
    """The engine runs before it is needed, and again when it died."""

    async def keep() -> None:
        while True:
            await engine.start()
            await asyncio.sleep(_ENGINE_LOOK_S)

    return keep


def _parts(
    settings: IndexSettings,
    database: Database,
    engine: VectorEngineProcess,
    *,
    log: LogReader,
    failures: Failures,
    packs: PackStore,
) -> _Parts:
    return _Parts(
        log=log,
        database=database,
        failures=failures,
        settings=settings,
        tables=PostgresTables(database=database, incarnation=log.incarnation()),
        reader=PostgresChunkReader(database=database),
        keyword_lanes=TantivyKeywordLanes(root=settings.lanes),
        vector_lanes=EdgeVectorLanes(engine=engine),
        gate=Gate(),
        loader=Loader(packs=packs),
        living=Living(tables=PostgresLivingTables(database=database)),
    )


async def replica(context: ReplayContext) -> Replica:
    """Put the projection together once more, into other tables and lanes.

    Args:
        context: What a replay offers.

    Returns:
        The projection, and what is compared.
    """
    settings = IndexSettings(data_dir=context.settings.data_dir).model_copy(
        update={"lanes_dir": context.folder / "lanes"}
    )
    database = await context.database(MIGRATIONS, max_connections=_CONNECTIONS)
    engine = VectorEngineProcess(root=settings.lanes, runtime_dir=context.folder)
    # Like the other servers it is up before the first event.
    await engine.start()
    parts = _parts(settings, database, engine, log=context.log, failures=context.failures, packs=context.packs)
    # New lanes have nothing to be compared with.
    parts.gate.open()
    projection = _projection(parts, noted=_nobody, erased=_nobody, spacing_s=0, searched=False)
    used, close = _lane_rows(context.settings, parts.tables, context.folder / "live")
    built = _rows_of(LaneRows(root=settings.lanes, engine=engine), parts.tables)
    return Replica(
        name="index",
        projections=(
            Projection(
                name=PROJECTION, events=PROJECTION_EVENTS, apply=projection.apply, position=parts.tables.position
            ),
        ),
        tables=TABLES,
        lanes=tuple(RowSource(name=name, live=used[name], replayed=built[name]) for name in used),
        close=(parts.keyword_lanes.close, parts.vector_lanes.close, close),
    )


def lanes_in_use(
    settings: NodeSettings, database: Database, folder: Path
) -> tuple[Mapping[str, Callable[[], Rows]], Callable[[], Awaitable[None]]]:
    """Both lanes of a node as rows that other histories with the same outcome share.

    Args:
        settings: The node's.
        database: The index's schema, which says what lanes there are.
        folder: For the socket of an engine, where the node runs none.

    Returns:
        What reads each lane, by name, and what to call at the end.
    """
    return _lane_rows(settings, PostgresTables(database=database, incarnation=b""), folder, portable=True)


def _lane_rows(
    settings: NodeSettings, tables: PostgresTables, folder: Path, *, portable: bool = False
) -> tuple[Mapping[str, Callable[[], Rows]], Callable[[], Awaitable[None]]]:
    root = IndexSettings(data_dir=settings.data_dir).lanes
    # A running node's engine is the only one that may open its lanes.
    idle = VectorEngineProcess(root=root, runtime_dir=folder)
    return _rows_of(LaneRows(root=root, engine=served_engine(root) or idle, portable=portable), tables), idle.stop


def _rows_of(rows: LaneRows, tables: PostgresTables) -> Mapping[str, Callable[[], Rows]]:
    async def keyword() -> Rows:
        async for row in rows.keyword(await _lanes(tables), tables.terms):
            yield row

    async def vector() -> Rows:
        async for row in rows.vector(await _lanes(tables)):
            yield row

    return {"keyword lane": keyword, "vector lane": vector}


async def _lanes(tables: PostgresTables) -> list[tuple[str, Generation]]:
    return [
        (crate_id, generation)
        for crate_id in await tables.crates()
        for generation in await tables.generations(crate_id)
        if generation.status is not GenerationStatus.FAILED
    ]


def _nobody() -> None:
    """Wakes nobody."""


def _projection(
    parts: _Parts, *, noted: Callable[[], None], erased: Callable[[], None], spacing_s: float, searched: bool = True
) -> LaneProjection:
    return LaneProjection(
        log=parts.log,
        loader=parts.loader,
        tables=parts.tables,
        forces=LivingForces(tables=parts.tables, living=parts.living),
        keyword_lanes=parts.keyword_lanes,
        vector_lanes=parts.vector_lanes,
        gate=parts.gate,
        failures=parts.failures,
        noted=noted,
        erased=erased,
        batch_records=parts.settings.index_batch_records,
        spacing_s=spacing_s,
        searched=searched,
    )


def _rebuilder(parts: _Parts, bus: Bus) -> LaneRebuilder:
    return LaneRebuilder(
        bus=bus,
        loader=parts.loader,
        tables=parts.tables,
        keyword_lanes=parts.keyword_lanes,
        vector_lanes=parts.vector_lanes,
        gate=parts.gate,
        batch_records=parts.settings.index_batch_records,
    )


def _servicer(parts: _Parts, scrubber: Scrubber) -> IndexServicer:
    return IndexServicer(
        reader=parts.reader,
        past=PostgresPastForces(database=parts.database),
        keyword_lanes=parts.keyword_lanes,
        vector_lanes=parts.vector_lanes,
        gate=parts.gate,
        scrubber=scrubber,
        incarnation=parts.log.incarnation(),
        clock=utc_now,
        states=LivingAnswers(living=parts.living, reader=PostgresLivingReader(database=parts.database), now=utc_now),
    )
