"""Composition of the proposition role."""

from __future__ import annotations

from affidavit.proposition.v1 import proposition_service_pb2_grpc as pb_grpc

from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.kernel.steps import Step
from services.proposition.adapters.evaluations_packs import PackEvaluations
from services.proposition.handlers import EVENTS, Evaluating
from services.proposition.servicer import PropositionServicer
from services.proposition.settings import PropositionSettings


async def wire(context: Context) -> Role:
    """Pick the adapters and connect the parts.

    Args:
        context: What the role is wired from.

    Returns:
        The role.
    """
    settings = PropositionSettings(data_dir=context.settings.data_dir)
    evaluating = Evaluating(log=context.bus, evaluations=PackEvaluations(packs=context.packs))
    return Role(
        name="proposition",
        servicers=(
            Servicer(
                "affidavit.proposition.v1.PropositionService",
                pb_grpc.add_PropositionServiceServicer_to_server,
                PropositionServicer(),
            ),
        ),
        steps=(
            Step(
                name="evaluate",
                events=EVENTS,
                handle=evaluating.handle,
                concurrency=settings.proposition_concurrency,
            ),
        ),
    )
