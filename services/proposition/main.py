"""Composition of the proposition role."""

from __future__ import annotations

import time
from collections.abc import Callable

from affidavit.proposition.v1 import proposition_service_pb2_grpc as pb_grpc

from services.kernel.ids import utc_now
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.kernel.steps import Step
from services.proposition.adapters.evaluations_packs import PackEvaluations
from services.proposition.bindings import CrateBindings
from services.proposition.domain.providers import Provider
from services.proposition.handlers import EVENTS, Evaluating
from services.proposition.ports import Model
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
    evaluations = PackEvaluations(packs=context.packs)
    bindings = CrateBindings(log=context.bus, connect=_models(settings), clock=time.monotonic)
    evaluating = Evaluating(bus=context.bus, evaluations=evaluations, bindings=bindings, clock=utc_now)
    return Role(
        name="proposition",
        servicers=(
            Servicer(
                "affidavit.proposition.v1.PropositionService",
                pb_grpc.add_PropositionServiceServicer_to_server,
                PropositionServicer(log=context.bus, evaluations=evaluations),
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
        close=(bindings.close,),
    )


def _models(settings: PropositionSettings) -> Callable[[Provider], Model]:
    def connect(provider: Provider) -> Model:
        if settings.proposition_script is not None:
            from services.proposition.adapters.model_scripted import ScriptedModel

            return ScriptedModel.of_file(settings.proposition_script)
        # httpx is loaded only where a provider is called.
        from services.kernel.providers import Endpoint, ProviderClient, call_url, provider_name
        from services.kernel.transport import GuardedTransport
        from services.proposition.adapters.model_openai import ADVICE, OpenAiModel

        endpoint = Endpoint(
            name=provider_name("answer", provider.base_url),
            url=call_url(provider.base_url, "chat/completions"),
            timeout_s=provider.timeout_s,
            credential=provider.credential,
            headers=dict(provider.headers),
            advice=ADVICE,
        )
        transport = GuardedTransport.over_network(
            allow_loopback=settings.allow_loopback_providers,
            allow_private=settings.allow_private_providers,
        )
        client = ProviderClient(endpoint=endpoint, transport=transport, credentials=settings.credentials)
        return OpenAiModel(provider=provider, client=client)

    return connect
