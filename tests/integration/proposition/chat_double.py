"""Stands in for the network: answers as an OpenAI-compatible chat service, or misbehaves as told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from services.kernel.credentials import Credentials
from services.kernel.providers import Endpoint, ProviderClient, call_url, provider_name
from services.proposition.adapters.model_openai import ADVICE, OpenAiModel
from services.proposition.domain.providers import Provider

KEY = "sk-CANARY-key"
KEY_NAME = "AFFIDAVIT_PROVIDER_CHAT"
PROMPT_CANARY = "You turn a passage into propositions"
Script = Callable[["Call"], httpx.Response]


class Call:
    """One request.

    Attributes:
        headers: Its headers.
        body: Its JSON.
        url: Where it went.
    """

    def __init__(self, request: httpx.Request) -> None:
        self.url = str(request.url)
        self.headers = dict(request.headers)
        self.body: dict[str, Any] = json.loads(request.content)

    @property
    def last(self) -> str:
        """Its last message."""
        found: str = self.body["messages"][-1]["content"]
        return found

    @property
    def grades(self) -> bool:
        """Whether it is a grading call."""
        return "\nPropositions:\n" in self.last

    @property
    def passage(self) -> str:
        """The chunk's text."""
        around = self.last.split("\n")[1]
        return self.last.split("\nPassage:\n", 1)[1].split(f"\n{'Propositions:' if self.grades else around}")[0]

    @property
    def count(self) -> int:
        """Propositions that are to be graded."""
        return len(self.last.split("\nPropositions:\n")[1].split("\n")) - 1


def reply(content: object, *, reason: str = "stop", **more: object) -> httpx.Response:
    """A chat completion."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return httpx.Response(200, json={"id": "req-7", "model": "gpt-x-2026", "choices": [choice]} | more)


def rated(count: int, **scores: object) -> dict[str, Any]:
    """Ratings of all propositions."""
    good = {"fidelity": 9, "clarity": 9, "completeness": 9, "focus": 9}
    return {"ratings": [{"ordinal": number} | good | scores for number in range(1, count + 1)]}


def right(call: Call) -> httpx.Response:
    """One proposition for each chunk, all scores 9."""
    return reply(rated(call.count) if call.grades else {"propositions": [{"text": f"The fact is: {call.passage}"}]})


class Chat(httpx.AsyncBaseTransport):
    """The service.

    Attributes:
        calls: Requests so far.
        script: Answers a request.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.script: Script = right

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        call = Call(request)
        self.calls.append(call)
        # Calls that run side by side have all begun before one is answered.
        await asyncio.sleep(0.002)
        return self.script(call)

    def model(
        self, provider: Provider, *, folder: Path = Path("/nowhere"), headers: Mapping[str, str] | None = None
    ) -> OpenAiModel:
        """A model that asks this service."""
        endpoint = Endpoint(
            name=provider_name("answer", provider.base_url),
            url=call_url(provider.base_url, "chat/completions"),
            timeout_s=provider.timeout_s,
            credential=provider.credential,
            headers=headers or dict(provider.headers),
            advice=ADVICE,
        )
        client = ProviderClient(
            endpoint=endpoint, transport=self, credentials=Credentials(folder, "AFFIDAVIT_PROVIDER_"), backoff_s=0
        )
        return OpenAiModel(provider=provider, client=client)
