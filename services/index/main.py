"""Composition of the index role."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from affidavit.index.v1 import index_service_pb2_grpc as pb_grpc

from services.index.adapters.chunks_postgres import PostgresChunkReader
from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLanes
from services.index.adapters.models_grpc import GrpcModelCatalogue
from services.index.adapters.schema_postgres import CONTENT, MIGRATIONS, PROJECTION
from services.index.adapters.tables_postgres import PostgresTables
from services.index.adapters.vector_engine_process import VectorEngineProcess
from services.index.adapters.vector_lane_edge import EdgeVectorLanes
from services.index.gate import Gate
from services.index.handlers import PROJECTION_EVENTS, GenerationStarter, LaneProjection, SignalSender
from services.index.loading import Loader
from services.index.rebuild import LaneRebuilder
from services.index.servicer import IndexServicer
from services.index.settings import IndexSettings
from services.kernel.projections import Projection
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.kernel.scrub import Scrubber
from services.kernel.steps import Step

_CONNECTIONS = 8
_ENGINE_LOOK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What both edges share."""

    context: Context
    settings: IndexSettings
    tables: PostgresTables
    reader: PostgresChunkReader
    keyword_lanes: TantivyKeywordLanes
    vector_lanes: EdgeVectorLanes
    gate: Gate
    loader: Loader
    sender: SignalSender


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
    tables = PostgresTables(database=database, incarnation=context.bus.incarnation())
    engine = VectorEngineProcess(root=settings.lanes, runtime_dir=settings.data_dir / "run")
    parts = _Parts(
        context=context,
        settings=settings,
        tables=tables,
        reader=PostgresChunkReader(database=database),
        keyword_lanes=TantivyKeywordLanes(root=settings.lanes),
        vector_lanes=EdgeVectorLanes(engine=engine),
        gate=Gate(),
        loader=Loader(packs=context.packs),
        sender=SignalSender(bus=context.bus, tables=tables),
    )
    rebuilder = _rebuilder(parts)
    scrubber = Scrubber(database=database, tables=CONTENT, position=tables.position, before=rebuilder.scrub)
    starter = GenerationStarter(bus=context.bus, models=GrpcModelCatalogue(channel=context.channel("embedder")))
    projection = _projection(parts, scrubber)

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
            Projection(name=PROJECTION, events=PROJECTION_EVENTS, apply=projection.apply, position=tables.position),
        ),
        background=(rebuilder.run, parts.sender.run, scrubber.run, _keeper(engine)),
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


def _projection(parts: _Parts, scrubber: Scrubber) -> LaneProjection:
    return LaneProjection(
        bus=parts.context.bus,
        loader=parts.loader,
        tables=parts.tables,
        keyword_lanes=parts.keyword_lanes,
        vector_lanes=parts.vector_lanes,
        gate=parts.gate,
        sender=parts.sender,
        erased=scrubber.wake,
        batch_records=parts.settings.index_batch_records,
        spacing_s=parts.settings.index_spacing_s,
    )


def _rebuilder(parts: _Parts) -> LaneRebuilder:
    return LaneRebuilder(
        bus=parts.context.bus,
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
        keyword_lanes=parts.keyword_lanes,
        vector_lanes=parts.vector_lanes,
        gate=parts.gate,
        scrubber=scrubber,
        incarnation=parts.context.bus.incarnation(),
    )
