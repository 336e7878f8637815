"""Models behind the OpenAI-compatible `/v1/chat/completions` call.

No message of an error holds a prompt, a credential or anything that the provider wrote back: it may quote either.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from services.kernel.errors import ProviderAway, ProviderRefused
from services.kernel.providers import ProviderClient
from services.proposition.domain.prompts import Message, Schema
from services.proposition.domain.providers import Provider
from services.proposition.ports import Completion

ATTEMPTS = 4
ADVICE = "base_url, model, max_input_chars and max_output_tokens"
_MAX_ANSWER_BYTES = 16 << 20
_MAX_ID_CHARS = 200
_FEW_BYTES = 64 * 1024
# What providers answer that don't know the form in which an answer can be asked for.
_UNKNOWN_FIELD = frozenset({400, 422})


class OpenAiModel:
    """See ports.Model."""

    def __init__(self, *, provider: Provider, client: ProviderClient) -> None:
        """Keep the connection.

        Args:
            provider: The crate's.
            client: To its chat completions call.
        """
        self._provider = provider
        self._client = client
        self._turns = asyncio.Semaphore(provider.max_concurrency)
        self._takes_schemas = True

    @property
    def calls_at_once(self) -> int:
        """See Model."""
        return self._provider.max_concurrency

    async def complete(self, messages: Sequence[Message], schema: Schema) -> Completion:
        """See Model."""
        size = sum(len(message.content) for message in messages)
        if 0 < self._provider.max_input_chars < size:
            raise ProviderRefused(
                f"a request has {size} characters, but {self._client.name} takes at most "
                f"{self._provider.max_input_chars}: make chunks smaller, or raise max_input_chars if the model takes more"
            )
        body: dict[str, Any] = {
            "model": self._provider.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": 0,
            "max_tokens": self._provider.max_output_tokens,
            "stream": False,
        }
        async with self._turns:
            content = await self._send(body, schema)
        return await asyncio.to_thread(self._read, content) if len(content) > _FEW_BYTES else self._read(content)

    async def close(self) -> None:
        """See Model."""
        await self._client.close()

    async def _send(self, body: dict[str, Any], schema: Schema) -> bytes:
        if self._takes_schemas:
            form = {"name": schema.name, "strict": True, "schema": dict(schema.schema)}
            try:
                return await self._post(body | {"response_format": {"type": "json_schema", "json_schema": form}})
            except ProviderRefused as error:
                if error.status not in _UNKNOWN_FIELD:
                    raise
        content = await self._post(body)
        # Remembered only now: the refusal may have been about something else.
        self._takes_schemas = False
        return content

    async def _post(self, body: dict[str, Any]) -> bytes:
        return await self._client.post(body, attempts=ATTEMPTS, most_bytes=_MAX_ANSWER_BYTES)

    def _read(self, content: bytes) -> Completion:
        try:
            answer = json.loads(content)
            choice = answer["choices"][0]
            text, reason = choice["message"].get("content"), choice.get("finish_reason")
            ids = (answer.get("id"), answer.get("model"))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            kind = type(error).__name__
        else:
            if reason == "content_filter":
                raise ProviderRefused(f"{self._client.name} withheld its answer (content_filter)")
            truncated = reason == "length"
            if isinstance(text, str) or (text is None and truncated):
                request_id, model_id = map(_printable, ids)
                return Completion(text=text or "", truncated=truncated, request_id=request_id, model_id=model_id)
            kind = "no text"
        # Not within the block: what can't be read would be quoted.
        raise ProviderAway(
            f"{self._client.name} answered with something that is no chat completion ({kind}): is it an "
            "OpenAI-compatible service?"
        )


def _printable(value: object) -> str:
    """An id as the provider tells it; empty when it isn't one."""
    usable = isinstance(value, str) and value.isascii() and value.isprintable() and len(value) <= _MAX_ID_CHARS
    return str(value) if usable else ""
