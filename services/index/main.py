"""Composition of the index role."""

from __future__ import annotations

from affidavit.index.v1 import index_service_pb2_grpc as pb_grpc

from services.index.adapters.chunks_postgres import PostgresChunkReader
from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLanes
from services.index.adapters.models_grpc import GrpcModelCatalogue
from services.index.adapters.schema_postgres import MIGRATIONS, PROJECTION
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
from services.kernel.steps import Step

_CONNECTIONS = 8


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
    incarnation = context.bus.incarnation()
    database = await context.database(MIGRATIONS, max_connections=_CONNECTIONS)
    tables = PostgresTables(database=database, incarnation=incarnation)
    keyword_lanes = TantivyKeywordLanes(root=settings.lanes)
    engine = VectorEngineProcess(root=settings.lanes, runtime_dir=settings.data_dir / "run")
    vector_lanes = EdgeVectorLanes(engine=engine)
    gate = Gate()
    loader = Loader(packs=context.packs)
    sender = SignalSender(bus=context.bus, tables=tables)
    starter = GenerationStarter(bus=context.bus, models=GrpcModelCatalogue(channel=context.channel("embedder")))
    projection = LaneProjection(
        bus=context.bus,
        loader=loader,
        tables=tables,
        keyword_lanes=keyword_lanes,
        vector_lanes=vector_lanes,
        gate=gate,
        sender=sender,
        batch_records=settings.index_batch_records,
        spacing_s=settings.index_spacing_s,
    )
    rebuilder = LaneRebuilder(
        bus=context.bus,
        loader=loader,
        tables=tables,
        keyword_lanes=keyword_lanes,
        vector_lanes=vector_lanes,
        gate=gate,
        batch_records=settings.index_batch_records,
    )
    servicer = IndexServicer(
        reader=PostgresChunkReader(database=database),
        keyword_lanes=keyword_lanes,
        vector_lanes=vector_lanes,
        gate=gate,
        incarnation=incarnation,
    )

    async def lanes_ready() -> str:
        return gate.problem

    return Role(
        name="index",
        servicers=(Servicer("affidavit.index.v1.IndexService", pb_grpc.add_IndexServiceServicer_to_server, servicer),),
        steps=(Step(name="generations", events=("CrateConfigured",), handle=starter.handle),),
        projections=(
            Projection(name=PROJECTION, events=PROJECTION_EVENTS, apply=projection.apply, position=tables.position),
        ),
        background=(rebuilder.run, sender.run),
        checks={"lanes": lanes_ready},
        close=(keyword_lanes.close, vector_lanes.close),
    )
