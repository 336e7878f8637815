"""The role in a node, with a provider behind real HTTP on loopback, which the operator must allow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.proposition.v1 import proposition_events_pb2 as events_pb

from services.kernel.bus import Bus
from services.kernel.settings import NodeSettings
from services.proposition.main import wire
from tests.integration.chunker.small_world import World
from tests.integration.embedder.provider_double import Answer, Asked, ProviderServer, Script
from tests.integration.proposition.chat_double import KEY, KEY_NAME, rated
from tests.integration.proposition.proposition_world import answer_provider
from tests.integration.proposition.test_proposition_step import chunk, start


@pytest.fixture
async def server() -> AsyncIterator[ProviderServer]:
    running = ProviderServer()
    await running.start()
    running.script = [chat({"propositions": ["alpha is a letter."]}), chat(rated(1))]
    yield running
    await running.stop()


def chat(content: object) -> Script:
    choice = {"message": {"content": json.dumps(content)}, "finish_reason": "stop"}
    body = json.dumps({"id": "req-1", "model": "gpt-x", "choices": [choice]}).encode()

    def answer(asked: Asked) -> Answer:
        assert asked.path == "/v1/chat/completions"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        return Answer(body=body)

    return answer


async def run(settings: NodeSettings, server: ProviderServer) -> World:
    world = World(settings=settings, wires={"proposition": wire})
    await world.open()
    world.buses["index"] = await Bus.connect(settings.nats_url, role="index")
    await start(world)
    await world.append(
        ingest_pb.CrateConfigured(revision=2, providers=[answer_provider(base_url=server.url)]), aggregate="crate"
    )
    await chunk(world, "alpha")
    return world


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_provider_on_this_machine_is_asked_when_the_operator_allows_it(
    node_settings: NodeSettings, server: ProviderServer, monkeypatch: pytest.MonkeyPatch, *, allowed: bool
) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)
    monkeypatch.setenv("AFFIDAVIT_ALLOW_LOOPBACK_PROVIDERS", str(allowed))
    world = await run(node_settings, server)
    (event,) = await world.named("PropositionsEvaluated" if allowed else "TaskFailed")
    if allowed:
        assert isinstance(event.message, events_pb.PropositionsEvaluated)
        assert (event.message.accepted_count, event.message.call_count) == (1, 2)
    else:
        assert isinstance(event.message, event_pb.TaskFailed)
        assert event.message.code == "rejected"
        assert "the operator must set allow_loopback_providers" in event.message.reason
    assert len(server.asked) == (2 if allowed else 0)
    await world.stop()
    await world.close()
