"""Embedding models behind the OpenAI-compatible `/v1/embeddings` call.

No message of an error holds a text, a credential or anything that the provider wrote back: it may quote either.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from services.embedder.domain.batches import BatchLimits
from services.embedder.domain.models import Provider, Purpose
from services.kernel.credentials import Credentials
from services.kernel.errors import Rejected, Unavailable
from services.kernel.providers import Endpoint, ProviderClient, call_url, provider_name

_LIMITS = BatchLimits(texts=64, size_bytes=256 * 1024)
_CALLS_AT_ONCE = 2
_ATTEMPTS = {Purpose.DOCUMENT: 4, Purpose.QUERY: 2}
_MAX_ANSWER_BYTES = 64 << 20


class OpenAiModel:
    """See ports.EmbeddingModel."""

    max_tokens = 0
    limits = _LIMITS
    calls_at_once = _CALLS_AT_ONCE

    def __init__(
        self,
        *,
        provider: Provider,
        transport: httpx.AsyncBaseTransport,
        credentials: Credentials,
        backoff_s: float = 0.5,
    ) -> None:
        name = provider_name("embedding", provider.base_url)
        endpoint = Endpoint(
            name=name,
            url=call_url(provider.base_url, "embeddings"),
            timeout_s=provider.timeout_s,
            credential=provider.credential,
            headers={},
            advice="base_url, model and max_input_chars",
        )
        self._name = name
        self._client = ProviderClient(
            endpoint=endpoint, transport=transport, credentials=credentials, backoff_s=backoff_s
        )
        self.model_id = provider.model
        self.dimension = provider.dimension
        self.max_input_chars = provider.max_input_chars
        self.fingerprint = provider.fingerprint

    def fits(self, texts: Sequence[str]) -> Sequence[bool]:
        """See EmbeddingModel."""
        return [not self.max_input_chars or len(text) <= self.max_input_chars for text in texts]

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.floating]:
        """See EmbeddingModel."""
        for text, fits in zip(texts, self.fits(texts), strict=True):
            if not fits:
                raise Rejected(
                    f"a text has {len(text)} characters, but {self._name} takes at most {self.max_input_chars}: "
                    "ingest with a smaller chunk size, or raise max_input_chars if the model takes more"
                )
        body = {"model": self.model_id, "input": list(texts), "encoding_format": "float"}
        content = await self._client.post(body, attempts=_ATTEMPTS[purpose], most_bytes=_MAX_ANSWER_BYTES)
        return await asyncio.to_thread(self._vectors, content, len(texts))

    async def close(self) -> None:
        """See EmbeddingModel."""
        await self._client.close()

    def _vectors(self, content: bytes, count: int) -> NDArray[np.floating]:
        try:
            rows = _rows(json.loads(content), count)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise Unavailable(
                f"{self._name} answered with something that isn't {count} vectors ({type(error).__name__}): "
                "is it an OpenAI-compatible embeddings service?"
            ) from error
        lengths = {len(row) for row in rows}
        if lengths != {self.dimension}:
            raise Rejected(
                f"{self._name} gives vectors of {sorted(lengths)} numbers, the crate expects {self.dimension}: "
                "create a crate with the right dimension"
            )
        return np.stack(rows)


def _rows(answer: Any, count: int) -> list[NDArray[np.float64]]:
    """Vectors in the order of the texts: by their index, whatever order they were sent in."""
    items = answer["data"]
    by_index = {item["index"]: item["embedding"] for item in items}
    if len(items) != count or set(by_index) != set(range(count)):
        raise ValueError("wrong count or indices")
    rows = []
    for index in range(count):
        numbers = by_index[index]
        if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
            raise TypeError("an embedding isn't a list of numbers")
        rows.append(np.array(numbers, dtype=np.float64))
    return rows
