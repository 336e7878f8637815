"""Composition of the citation role."""

from __future__ import annotations

from affidavit.citation.v1 import citation_service_pb2_grpc as pb_grpc

from services.citation.adapters.signals_bus import BusSignals
from services.citation.servicer import CitationServicer
from services.citation.settings import CitationSettings
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role


async def wire(context: Context) -> Role:
    """Pick the adapters and connect the parts.

    Args:
        context: What the role is wired from.

    Returns:
        The role.
    """
    settings = CitationSettings(data_dir=context.settings.data_dir)
    servicer = CitationServicer(signals=BusSignals(bus=context.bus), max_chars=settings.citation_max_chars)
    return Role(
        name="citation",
        servicers=(
            Servicer("affidavit.citation.v1.CitationService", pb_grpc.add_CitationServiceServicer_to_server, servicer),
        ),
    )
