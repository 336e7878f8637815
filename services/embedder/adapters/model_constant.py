"""Models that cost nothing: for benchmarks of everything else, and for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from services.embedder.domain.batches import BatchLimits
from services.embedder.domain.models import Purpose

DIMENSION = 384
CONSTANT_ID = "constant-384"
HASH_ID = "hash-384"


class ConstantModel:
    """Gives every text the same vector. See ports.EmbeddingModel."""

    model_id = CONSTANT_ID
    dimension = DIMENSION
    max_tokens = 0
    max_input_chars = 0
    calls_at_once = 1
    limits = BatchLimits(texts=1_024, size_bytes=4 << 20)

    @property
    def fingerprint(self) -> str:
        """See EmbeddingModel."""
        return sha256(self.model_id.encode()).hexdigest()

    def fits(self, texts: Sequence[str]) -> Sequence[bool]:
        """See EmbeddingModel."""
        return [True] * len(texts)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.floating]:  # noqa: ARG002
        """See EmbeddingModel."""
        return np.full((len(texts), DIMENSION), 1 / math.sqrt(DIMENSION), dtype=np.float32)

    async def close(self) -> None:
        """See EmbeddingModel."""


class HashModel(ConstantModel):
    """Gives equal texts equal vectors and different ones nearly orthogonal vectors. See ports.EmbeddingModel."""

    model_id = HASH_ID

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.floating]:  # noqa: ARG002
        """See EmbeddingModel."""
        rows = [np.frombuffer(blake3(text.encode()).digest(length=DIMENSION * 4), dtype="<u4") for text in texts]
        return np.stack(rows).astype(np.float64) / 2**31 - 1
