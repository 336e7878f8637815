"""Edge 2: embed, rerank, models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, TypeAlias

import grpc
from affidavit.embedder.v1 import embedder_service_pb2 as pb
from affidavit.embedder.v1 import embedder_service_pb2_grpc as pb_grpc

from services.embedder import codec
from services.embedder.domain.models import Purpose
from services.embedder.models import CrateModels
from services.embedder.scheduler import BatchScheduler
from services.kernel.errors import Failure, NotAvailableYet, Rejected, Unavailable

MAX_TEXTS = 256
MAX_CHARS = 1_000_000
# The largest chunk there is, and a question that doesn't hold up those of others for long.
MAX_TEXT_CHARS = {Purpose.DOCUMENT: 100_000, Purpose.QUERY: 10_000}
PROBE = "ready"
_PROBE_S = 5.0
_log = logging.getLogger("affidavit.embedder")
# Generic over messages that are never used through it.
Call: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class EmbedderServicer(pb_grpc.EmbedderServiceServicer):
    """Serves affidavit.embedder.v1.EmbedderService."""

    def __init__(self, *, models: CrateModels) -> None:
        self._models = models

    async def Embed(self, request: pb.EmbedRequest, context: Call) -> pb.EmbedResponse:
        """Embed texts with the model of a crate's generation.

        Raises:
            Rejected: When purpose or texts can't be used.
            Unavailable: When the model doesn't answer, or the crate has no generation yet.
        """
        purpose = codec.purpose(request)
        if purpose is None:
            raise Rejected("purpose is missing: say query or document, some models embed them differently")
        _check_texts(request.texts, MAX_TEXT_CHARS[purpose])
        bound = await self._models.bound(request.crate_id)
        vectors = await bound.scheduler.embed(tuple(request.texts), purpose)
        return codec.embed_response(bound.scheduler.model.model_id, vectors)

    async def Rerank(self, request: pb.RerankRequest, context: Call) -> pb.RerankResponse:
        """Refuse: no reranker is served in this version.

        Raises:
            NotAvailableYet: Always.
        """
        raise NotAvailableYet(
            f"rerank: not configured for crate {request.crate_id}; rerankers are not available yet, "
            "use the order of the search"
        )

    async def ListModels(self, request: pb.ListModelsRequest, context: Call) -> pb.ListModelsResponse:
        """Name a crate's models; ready means that one has just embedded a word.

        Raises:
            Rejected: When the crate has no embedding provider that is served.
        """
        scheduler = await self._models.configured(request.crate_id)
        model = scheduler.model
        problem = await probe(scheduler)
        if problem:
            _log.warning("model %s of crate %s is not ready: %s", model.model_id, request.crate_id, problem)
        return codec.list_models_response(
            [
                codec.model(
                    model_id=model.model_id,
                    dimension=model.dimension,
                    max_tokens=model.max_tokens,
                    fingerprint=model.fingerprint,
                    ready=not problem,
                )
            ]
        )


async def probe(scheduler: BatchScheduler) -> str:
    """Embed one word.

    Args:
        scheduler: Of the model to try.

    Returns:
        What is wrong, or "".
    """
    try:
        await asyncio.wait_for(scheduler.embed((PROBE,), Purpose.QUERY), _PROBE_S)
    except TimeoutError:
        return Unavailable(f"model {scheduler.model.model_id} takes over {_PROBE_S:g} s for one word").message
    except Failure as error:
        return error.message
    return ""


def _check_texts(texts: Sequence[str], most_chars: int) -> None:
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise Rejected(f"{len(texts)} texts were sent: send 1 to {MAX_TEXTS} per call")
    for index, text in enumerate(texts):
        if not text.strip():
            raise Rejected(f"text {index} is empty or only white space: there is nothing to embed")
        if len(text) > most_chars:
            raise Rejected(f"text {index} has {len(text)} characters: send at most {most_chars} for this purpose")
    total = sum(len(text) for text in texts)
    if total > MAX_CHARS:
        raise Rejected(f"the texts have {total} characters: send at most {MAX_CHARS} per call")
