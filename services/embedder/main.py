"""Composition root of the embedder role."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from affidavit.embedder.v1 import embedder_service_pb2_grpc as pb_grpc

from services.embedder.domain.models import Provider
from services.embedder.handlers import EVENTS, DocumentEmbedder
from services.embedder.models import CrateModels
from services.embedder.ports import EmbeddingModel
from services.embedder.servicer import EmbedderServicer, probe
from services.embedder.settings import EmbedderSettings
from services.kernel.errors import Failure
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.kernel.steps import Step

_NAME = "embedder"
_PROBE_EVERY_S = 30.0


async def wire(context: Context) -> Role:
    """Put the embedder together.

    Args:
        context: Log, packs and the node's settings.

    Returns:
        The role.

    Raises:
        Corrupt: When the model file isn't the right one.
        Unavailable: When it is missing.
    """
    settings = EmbedderSettings(data_dir=context.settings.data_dir)
    models = CrateModels(
        bus=context.bus,
        local=await _local_model(settings),
        remote=_remote_models(settings),
        clock=time.monotonic,
    )
    close = [models.close]
    cache = None
    if settings.embed_cache_dir is not None:
        from services.embedder.adapters.cache_sqlite import SqliteVectorCache

        cache = SqliteVectorCache(folder=settings.embed_cache_dir)
        close.append(cache.close)
    embedder = DocumentEmbedder(
        bus=context.bus,
        packs=context.packs,
        models=models,
        cache=cache,
        partial_texts=settings.embedder_partial_texts,
    )
    return Role(
        name=_NAME,
        servicers=(
            Servicer(
                "affidavit.embedder.v1.EmbedderService",
                pb_grpc.add_EmbedderServiceServicer_to_server,
                EmbedderServicer(models=models),
            ),
        ),
        steps=(Step(name="embed", events=EVENTS, handle=embedder.handle, concurrency=settings.embedder_documents),),
        checks={"model": _Check(models=models, clock=time.monotonic)},
        close=tuple(close),
    )


def check_model(data_dir: Path) -> str:
    """Look at the local model's files without loading them; for `affidavit doctor`.

    Args:
        data_dir: Folder of the node.

    Returns:
        What is wrong, or "".
    """
    settings = EmbedderSettings(data_dir=data_dir)
    from services.embedder.adapters.model_onnx import MODEL_ID, ModelFiles

    if settings.embedder_model != MODEL_ID:
        return ""
    try:
        ModelFiles.installed(settings.embedder_model_file).verify()
    except Failure as error:
        return error.message
    return ""


class _Check:
    """Readiness of the local model: embeds a word now and then, since an ingest needs the processors more."""

    def __init__(self, *, models: CrateModels, clock: Callable[[], float]) -> None:
        self._models = models
        self._clock = clock
        self._due = 0.0

    async def __call__(self) -> str:
        if self._clock() < self._due:
            return ""
        problem = await probe(self._models.local)
        if not problem:
            self._due = self._clock() + _PROBE_EVERY_S
        return problem


async def _local_model(settings: EmbedderSettings) -> EmbeddingModel:
    from services.embedder.adapters import model_constant

    costless = {
        model_constant.CONSTANT_ID: model_constant.ConstantModel,
        model_constant.HASH_ID: model_constant.HashModel,
    }
    if settings.embedder_model in costless:
        return costless[settings.embedder_model]()
    from services.embedder.adapters.model_onnx import ModelFiles, OnnxModel

    return await OnnxModel.open(
        files=ModelFiles.installed(settings.embedder_model_file),
        threads=settings.embedder_threads,
        overlap_tokens=settings.embedder_window_overlap_tokens,
    )


def _remote_models(settings: EmbedderSettings) -> Callable[[Provider], EmbeddingModel]:
    def connect(provider: Provider) -> EmbeddingModel:
        from services.embedder.adapters.model_openai import OpenAiModel
        from services.kernel.transport import GuardedTransport

        transport = GuardedTransport.over_network(
            allow_loopback=settings.allow_loopback_providers,
            allow_private=settings.allow_private_providers,
        )
        return OpenAiModel(provider=provider, transport=transport, credentials=settings.credentials)

    return connect
