"""What the embedder needs from the outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from services.embedder.domain.batches import BatchLimits
from services.embedder.domain.models import Purpose
from services.embedder.domain.vectors import Vectors


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors.

    The vector of a text never depends on the texts that happen to be embedded with it.
    """

    @property
    def model_id(self) -> str:
        """Stable name: two models never share one."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    @property
    def max_tokens(self) -> int:
        """Tokens that it takes at once; 0 when that isn't known here."""

    @property
    def max_input_chars(self) -> int:
        """Most code points of one text; 0 for no limit."""

    @property
    def fingerprint(self) -> str:
        """Everything that may change the numbers: weights, runtime, its settings. 64 hex digits."""

    @property
    def limits(self) -> BatchLimits:
        """What one call of `embed` is given at most."""

    @property
    def calls_at_once(self) -> int:
        """Calls of `embed` for documents that are worth running side by side."""

    def fits(self, texts: Sequence[str]) -> Sequence[bool]:
        """Which texts the model takes whole, in one window. May be slow: call it in a thread."""

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.floating]:
        """Embed texts.

        Args:
            texts: One to `limits.texts`.
            purpose: What they are.

        Returns:
            float[n, d], not checked and not scaled yet.

        Raises:
            Rejected: When the model will never take one of the texts, or refuses its configuration.
            Unavailable: When it doesn't answer now.
        """

    async def close(self) -> None:
        """Give back threads and connections."""


class VectorCache(Protocol):
    """Keeps vectors across runs of audits and benchmarks. Erasing a document doesn't reach it."""

    async def get(self, fingerprint: str, keys: Sequence[bytes]) -> Mapping[bytes, Vectors]:
        """Look vectors up.

        Args:
            fingerprint: Of the model.
            keys: Text keys, 32 bytes each.

        Returns:
            Those that are there, float32[d] each.

        Raises:
            Unavailable: When the cache can't be read.
        """

    async def put(self, fingerprint: str, vectors: Mapping[bytes, Vectors]) -> None:
        """Keep vectors.

        Args:
            fingerprint: Of the model.
            vectors: float32[d] by text key.

        Raises:
            Unavailable: When the cache can't be written.
        """
