"""Composition of the chunker role."""

from __future__ import annotations

from affidavit.chunker.v1 import chunker_service_pb2_grpc as pb_grpc

from services.chunker.adapters.contents_packs import PackContents
from services.chunker.adapters.cutter_process import ProcessCutter
from services.chunker.handlers import EVENTS, Chunking
from services.chunker.servicer import ChunkerServicer
from services.chunker.settings import ChunkerSettings
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.kernel.steps import Step


async def wire(context: Context) -> Role:
    """Pick the adapters and connect the parts.

    Args:
        context: What the role is wired from.

    Returns:
        The role.
    """
    settings = ChunkerSettings(data_dir=context.settings.data_dir)
    contents = PackContents(packs=context.packs)
    cutter = ProcessCutter(
        thread_above_bytes=settings.chunker_thread_above_bytes,
        process_above_bytes=settings.chunker_process_above_bytes,
    )
    chunking = Chunking(log=context.bus, contents=contents, cutter=cutter)
    servicer = ChunkerServicer(log=context.bus)
    return Role(
        name="chunker",
        servicers=(
            Servicer("affidavit.chunker.v1.ChunkerService", pb_grpc.add_ChunkerServiceServicer_to_server, servicer),
        ),
        steps=(Step(name="cut", events=EVENTS, handle=chunking.handle, concurrency=settings.chunker_concurrency),),
    )
