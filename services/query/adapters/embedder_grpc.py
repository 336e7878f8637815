"""The crate's embedding model, asked of the embedder by gRPC."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from affidavit.embedder.v1 import embedder_service_pb2 as pb
from affidavit.embedder.v1 import embedder_service_pb2_grpc as pb_grpc

from services.kernel.errors import Conflict, Corrupt
from services.query.adapters.outcomes_grpc import calling
from services.query.codec import incoming
from services.query.domain.evidence import Vector
from services.query.ports import QueryVector

_EMBEDDER = "the embedder"
# About 6 MB with 384 numbers each.
_KEPT_WORDS = 4_096


class GrpcEmbedder:
    """See ports.Embedder."""

    def __init__(self, *, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self._embedder = pb_grpc.EmbedderServiceStub(channel)
        self._timeout_s = timeout_s
        # Least recently used first.
        self._words: dict[tuple[str, str], Vector] = {}

    async def embed_query(self, crate_id: str, text: str) -> QueryVector:
        """See Embedder."""
        request = pb.EmbedRequest(crate_id=crate_id, purpose=pb.EMBED_PURPOSE_QUERY, texts=[text])
        model_id, vectors = await self._embed(request)
        return QueryVector(model_id, vectors[0])

    async def embed_texts(self, crate_id: str, model_id: str, texts: Sequence[str]) -> tuple[Vector, ...]:
        """See Embedder. Single words come back in question after question, so their vectors are kept for a while."""
        # Taken before waiting: while this call waits, another one may push words out.
        found = {text: self._words[model_id, text] for text in texts if (model_id, text) in self._words}
        missing = [text for text in texts if text not in found]
        if missing:
            request = pb.EmbedRequest(crate_id=crate_id, purpose=pb.EMBED_PURPOSE_DOCUMENT, texts=missing)
            used, vectors = await self._embed(request)
            if used != model_id:
                raise Conflict(
                    f"crate {crate_id} embeds with {used} now, the question was embedded with {model_id}: retry"
                )
            found |= zip(missing, vectors, strict=True)
        rows = tuple(found[text] for text in texts)
        self._keep({(model_id, text): row for text, row in found.items() if " " not in text})
        return rows

    async def fingerprints(self, crate_id: str) -> tuple[str, ...]:
        """See Embedder."""
        with calling(_EMBEDDER):
            reply = await self._embedder.ListModels(pb.ListModelsRequest(crate_id=crate_id), timeout=self._timeout_s)
        return tuple(sorted(f"{model.role}:{model.model_id}:{model.fingerprint}" for model in reply.models))

    def _keep(self, used: dict[tuple[str, str], Vector]) -> None:
        for key, vector in used.items():
            self._words.pop(key, None)
            self._words[key] = vector
        for key in list(self._words)[: max(len(self._words) - _KEPT_WORDS, 0)]:
            del self._words[key]

    async def _embed(self, request: pb.EmbedRequest) -> tuple[str, tuple[Vector, ...]]:
        with calling(_EMBEDDER):
            reply = await self._embedder.Embed(request, timeout=self._timeout_s)
        try:
            return reply.model_id, incoming.vectors(reply.vectors, reply.dimension, len(request.texts))
        except ValueError as error:
            raise Corrupt(f"the embedder's reply is malformed: {error}") from error
