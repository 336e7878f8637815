"""Whether publishers are heard, as readiness tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import nats
import pytest

from services.embedded.children import NatsServer
from services.ingest.adapters.submit_faststream import SubmitSubject
from services.kernel import tasks
from tests.conftest import owned

_PATIENCE_S = 10.0


async def _echo(crate: str, payload: bytes, headers: Mapping[str, str]) -> bytes:
    assert isinstance(headers, Mapping)
    return f"{crate}: {payload.decode()}".encode()


async def _until(subject: SubmitSubject, problem: str) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            if await subject.problem() == problem:
                return
            await asyncio.sleep(0)


async def test_who_is_told_that_nothing_is_wrong_is_heard_at_once(nats_url: str) -> None:
    publisher = await nats.connect(nats_url)
    for number in range(20):
        subject = SubmitSubject(url=nats_url, answer=_echo, concurrency=2)
        assert await subject.problem() == "doesn't listen yet"
        running = asyncio.create_task(subject.run())
        await _until(subject, "")
        reply = await publisher.request("affidavit.submit.main", str(number).encode(), timeout=5)
        assert reply.data == f"main: {number}".encode()
        await tasks.cancel([running])
        assert await subject.problem() == "doesn't listen yet"
    await publisher.close()


async def test_a_server_that_is_away_is_a_problem_until_it_is_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    with owned(tmp_path_factory.mktemp("nats") / "data") as folder:
        server = NatsServer(folder)
        await server.start()
        subject = SubmitSubject(url=server.url, answer=_echo, concurrency=2)
        running = asyncio.create_task(subject.run())
        await _until(subject, "")
        server.stop()
        await _until(subject, "lost nats-server and tries to reach it again")
        await server.start()
        await _until(subject, "")
        publisher = await nats.connect(server.url)
        assert (await publisher.request("affidavit.submit.main", b"again", timeout=5)).data == b"main: again"
        await publisher.close()
        await tasks.cancel([running])
        server.stop()
