"""A small HTTP server that answers as an OpenAI-compatible embeddings service, or misbehaves as told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

DIMENSION = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    size_bytes: int

    @property
    def texts(self) -> list[str]:
        """Its inputs."""
        found: list[str] = self.body["input"]
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send back.

    Attributes:
        status: HTTP status.
        body: Content.
        headers: More headers.
        delay_s: Seconds before the first byte.
        drop: True closes the connection without an answer.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drop: bool = False


def vector(text: str) -> list[float]:
    """Vector of a text: tells texts of different lengths apart."""
    return [float(len(text)), 1.0, 0.0]


def items(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Right items for texts."""
    return [{"object": "embedding", "index": index, "embedding": vector(text)} for index, text in enumerate(texts)]


def right(asked: Asked) -> Answer:
    """The right answer, in reverse order, as the call allows."""
    return Answer(body=json.dumps({"object": "list", "data": items(asked.texts)[::-1]}).encode())


Script = Callable[[Asked], Answer]


class ProviderServer:
    """The server.

    Attributes:
        asked: Requests so far.
        heard: Set by the first request.
        script: Answers for the next requests, in order; the right answer once it is used up.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.heard = asyncio.Event()
        self.script: list[Script] = []
        self._server: asyncio.Server

    @property
    def url(self) -> str:
        """Address that a provider setting names."""
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/v1"

    async def start(self) -> None:
        """Listen on a free port of loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        """Stop listening and drop the connections."""
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _head(reader):
                if not await self._answer(head, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, which some tests are about
        finally:
            writer.close()

    async def _answer(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        asked = Asked(first.split()[1], headers, json.loads(content) if content else {}, len(content))
        self.asked.append(asked)
        self.heard.set()
        answer = (self.script.pop(0) if self.script else right)(asked)
        await asyncio.sleep(answer.delay_s)
        if answer.drop:
            return False
        lines = [f"HTTP/1.1 {answer.status} X", f"content-length: {len(answer.body)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + answer.body)
        await writer.drain()
        return True


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode().strip()
    except asyncio.IncompleteReadError:
        return ""
