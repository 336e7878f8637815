"""The crate's embedding model, asked of the embedder by gRPC."""

from __future__ import annotations

import grpc
from affidavit.embedder.v1 import embedder_service_pb2 as pb
from affidavit.embedder.v1 import embedder_service_pb2_grpc as pb_grpc

from services.index.domain.generations import EmbeddingModel
from services.kernel.errors import Rejected, Unavailable

_TIMEOUT_S = 10.0
_EMBEDDING = "embedding"
# Asking again changes nothing until the crate is configured otherwise.
_REFUSALS = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED)


class GrpcModelCatalogue:
    """See ports.ModelCatalogue."""

    def __init__(self, *, channel: grpc.aio.Channel) -> None:
        self._embedder = pb_grpc.EmbedderServiceStub(channel)

    async def embedding_model(self, crate_id: str) -> EmbeddingModel:
        """See ModelCatalogue."""
        try:
            reply = await self._embedder.ListModels(pb.ListModelsRequest(crate_id=crate_id), timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            if error.code() in _REFUSALS:
                raise Rejected(
                    f"crate {crate_id} can't get an index yet: {error.details()}; it starts with the next change of "
                    "the crate's settings"
                ) from error
            raise Unavailable(
                f"the embedder doesn't tell the model of crate {crate_id} ({error.code().name}): is it up?"
            ) from error
        for model in reply.models:
            if model.role == _EMBEDDING and model.dimension:
                return EmbeddingModel(model_id=model.model_id, dimension=model.dimension, fingerprint=model.fingerprint)
        raise Unavailable(f"crate {crate_id} has no embedding model yet: set an embedding provider with `crate set`")
