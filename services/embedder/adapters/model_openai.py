"""Embedding models behind the OpenAI-compatible `/v1/embeddings` call.

No message of an error holds a text, a credential or anything that the provider wrote back: it may quote either.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
from numpy.typing import NDArray

from services.embedder.domain.batches import BatchLimits
from services.embedder.domain.models import Provider, Purpose, embeddings_url
from services.kernel.credentials import Credentials
from services.kernel.errors import Rejected, Unavailable

_LIMITS = BatchLimits(texts=64, size_bytes=256 * 1024)
_CALLS_AT_ONCE = 2
_ATTEMPTS = {Purpose.DOCUMENT: 4, Purpose.QUERY: 2}
_MAX_RETRY_AFTER_S = 20.0
_MAX_ANSWER_BYTES = 64 << 20
_LATER = frozenset({408, 409, 425, 429})
_DENIED = frozenset({401, 403})


class _TryAgain(Exception):  # noqa: N818  (not an error yet)
    """An attempt failed in a way that may pass."""

    def __init__(self, problem: str, wait_s: float = 0.0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.wait_s = wait_s


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
        self._provider = provider
        self._credentials = credentials
        self._backoff_s = backoff_s
        self._url = embeddings_url(provider.base_url)
        self._name = f"embedding provider {urlsplit(provider.base_url).hostname}"
        # A client of its own: pooled connections of two providers must never be mixed up.
        self._client = httpx.AsyncClient(
            transport=transport, timeout=provider.timeout_s, follow_redirects=False, trust_env=False
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
        attempts = _ATTEMPTS[purpose]
        for attempt in range(attempts):
            try:
                return await self._attempt(texts)
            except _TryAgain as again:
                problem = again.problem
                if attempt + 1 < attempts:
                    await asyncio.sleep(max(again.wait_s, self._backoff_s * 2**attempt))
        raise Unavailable(f"{self._name} {problem}, {attempts} times in a row: try later, or see whether it is up")

    async def close(self) -> None:
        """See EmbeddingModel."""
        await self._client.aclose()

    async def _attempt(self, texts: Sequence[str]) -> NDArray[np.floating]:
        headers = {"authorization": f"Bearer {token}"} if (token := self._credential()) else {}
        body = {"model": self.model_id, "input": list(texts), "encoding_format": "float"}
        try:
            async with (
                asyncio.timeout(self._provider.timeout_s),
                self._client.stream("POST", self._url, headers=headers, json=body) as answer,
            ):
                self._check_status(answer)
                content = await self._read(answer)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise _TryAgain(f"did not answer within {self._provider.timeout_s} s") from error
        except httpx.HTTPError as error:
            raise _TryAgain(f"could not be reached ({type(error).__name__})") from error
        return await asyncio.to_thread(self._vectors, content, len(texts))

    def _check_status(self, answer: httpx.Response) -> None:
        status = answer.status_code
        if status == httpx.codes.OK:
            return
        if status in _LATER or status >= 500:
            raise _TryAgain(f"answered {status}", _retry_after_s(answer))
        if answer.is_redirect:
            raise Rejected(f"{self._name} answered {status}, a redirect: set base_url to the final address")
        if status in _DENIED:
            # May pass: a credential that ran out is replaced without touching the documents that wait.
            raise Unavailable(f"{self._name} answered {status}: check {self._provider.credential or 'its credential'}")
        raise Rejected(f"{self._name} answered {status}: check base_url, model and max_input_chars")

    async def _read(self, answer: httpx.Response) -> bytes:
        content = bytearray()
        async for block in answer.aiter_bytes():
            content += block
            if len(content) > _MAX_ANSWER_BYTES:
                raise Unavailable(f"{self._name} answered with over {_MAX_ANSWER_BYTES} bytes: is base_url right?")
        return bytes(content)

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

    def _credential(self) -> str:
        """Read the credential anew, so that it can be rotated without a restart."""
        reference = self._provider.credential
        if not reference:
            return ""
        problem = self._credentials.problem(reference)
        if problem:
            # Accepted by an earlier release, or the operator has changed what is allowed.
            raise Rejected(f"{self._name}: {problem}")
        try:
            found = self._credentials.read(reference)
        except (KeyError, OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"{self._name}: credential {reference} can't be read ({type(error).__name__})") from error
        token = found.strip()
        if not token or not token.isascii() or not token.isprintable():
            raise Unavailable(f"{self._name}: credential {reference} is empty or holds characters that no header takes")
        return token


def _retry_after_s(answer: httpx.Response) -> float:
    value = answer.headers.get("retry-after", "")
    return min(float(value), _MAX_RETRY_AFTER_S) if value.isascii() and value.isdigit() else 0.0


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
