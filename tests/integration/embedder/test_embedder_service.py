"""The embedder role, wired as it runs, behind real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import grpc
import numpy as np
import pytest
from affidavit.embedder.v1 import embedder_service_pb2 as pb
from affidavit.embedder.v1 import embedder_service_pb2_grpc as pb_grpc
from affidavit.ingest.v1 import settings_pb2 as settings_pb
from numpy.typing import NDArray

from services.embedder.main import _Check, wire
from services.embedder.models import CrateModels
from services.embedder.scheduler import BatchScheduler
from services.kernel import channels
from services.kernel.errors import Corrupt
from services.kernel.runner import Node
from services.kernel.settings import NodeSettings
from tests.integration.embedder.embedder_world import CRATE, CountingModel, World
from tests.integration.embedder.provider_double import DIMENSION, Answer, ProviderServer

QUERY, DOCUMENT = pb.EMBED_PURPOSE_QUERY, pb.EMBED_PURPOSE_DOCUMENT
Starter = Callable[..., Awaitable["pb_grpc.EmbedderServiceAsyncStub"]]


@pytest.fixture
async def served(node_settings: NodeSettings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Starter]:
    """Starts a node with the embedder alone: `await served(AFFIDAVIT_X="...")`."""
    async with AsyncExitStack() as stack:

        async def start(**environment: str) -> pb_grpc.EmbedderServiceAsyncStub:
            for name, value in ({"AFFIDAVIT_EMBEDDER_MODEL": "hash-384"} | environment).items():
                monkeypatch.setenv(name, value)
            node = Node(settings=node_settings, wires={"embedder": wire})
            await node.start()
            stack.push_async_callback(node.stop)
            channel = channels.channel(node.server.address)
            stack.push_async_callback(channel.close)
            assert await node.problems() == {}
            return pb_grpc.EmbedderServiceStub(channel)

        yield start


@pytest.fixture
async def provider_server() -> AsyncIterator[ProviderServer]:
    server = ProviderServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def log(node_settings: NodeSettings) -> AsyncIterator[World]:
    """The rest of the pipeline, on the node's log and packs."""
    made = World(nats_url=node_settings.nats_url, folder=node_settings.blobs)
    await made.open()
    await made.configure()
    yield made
    await made.close()


def request(*texts: str, purpose: pb.EmbedPurpose.ValueType = QUERY, crate: str = CRATE) -> pb.EmbedRequest:
    return pb.EmbedRequest(crate_id=crate, purpose=purpose, texts=texts)


def rows(reply: pb.EmbedResponse) -> NDArray[np.float32]:
    return np.frombuffer(reply.vectors, dtype="<f4").reshape(-1, reply.dimension)


async def refusal(call: Awaitable[object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details() or ""


async def test_embed_gives_unit_vectors_in_order(served: Starter, log: World) -> None:
    await log.start_generation()
    stub = await served()
    reply = await stub.Embed(request("a", "b", "a"))
    assert (reply.model_id, reply.dimension) == ("hash-384", 384)
    found = rows(reply)
    assert found.shape == (3, 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1])
    documents = await stub.Embed(request(*[str(number) for number in range(256)], purpose=DOCUMENT))
    assert rows(documents).shape == (256, 384)


async def test_requests_that_can_t_be_served_are_refused(served: Starter, log: World) -> None:
    await log.start_generation()
    stub = await served()
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    assert await refusal(stub.Embed(request("a", " \n\t\u3000"))) == (
        invalid,
        "text 1 is empty or only white space: there is nothing to embed",
    )
    assert (await refusal(stub.Embed(request()))) == (invalid, "0 texts were sent: send 1 to 256 per call")
    assert (await refusal(stub.Embed(request(*["a"] * 257))))[1].startswith("257 texts were sent")
    many = request(*["a" * 100_000] * 10, "b", purpose=DOCUMENT)
    assert (await refusal(stub.Embed(many)))[1].startswith("the texts have 1000001 characters")
    long = request("a", "b" * 100_001, purpose=DOCUMENT)
    assert (await refusal(stub.Embed(long)))[1].startswith("text 1 has 100001 characters")
    assert (await refusal(stub.Embed(request("b" * 10_001))))[1].startswith("text 0 has 10001 characters")
    unspecified = pb.EMBED_PURPOSE_UNSPECIFIED
    assert (await refusal(stub.Embed(request("a", purpose=unspecified))))[1].startswith("purpose is missing")
    assert (await refusal(stub.Embed(request("a", crate="other"))))[0] is grpc.StatusCode.NOT_FOUND
    assert (await refusal(stub.Embed(request("a", crate=""))))[0] is invalid


async def test_without_generation_embed_is_unavailable_but_the_model_is_known(served: Starter, log: World) -> None:
    assert log.model.texts == []
    stub = await served()
    code, details = await refusal(stub.Embed(request("a")))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert "no generation yet" in details
    (model,) = (await stub.ListModels(pb.ListModelsRequest(crate_id=CRATE))).models
    assert (model.model_id, model.role, model.dimension, model.ready) == ("hash-384", "embedding", 384, True)
    assert len(model.fingerprint) == 64


async def test_readiness_tries_the_model_now_and_then() -> None:
    now, model = 0.0, CountingModel()
    check = _Check(models=cast("CrateModels", SimpleNamespace(local=BatchScheduler(model=model))), clock=lambda: now)
    assert await check() == await check() == ""
    assert len(model.texts) == 1
    now, model.fail_after = 31.0, 0
    assert await check() == await check() == "the model is away"
    model.fail_after = None
    assert await check() == ""
    assert len(model.texts) == 2


async def test_rerank_says_that_it_is_not_configured(served: Starter, log: World) -> None:
    assert log.model.texts == []
    stub = await served()
    call = stub.Rerank(pb.RerankRequest(crate_id=CRATE, query="q", texts=["t"]))
    code, details = await refusal(call)
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert details.startswith("rerank: not configured")


async def wait_embedded(log: World, document: str) -> None:
    for _ in range(400):
        if await log.embedded(document):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"document {document} was not embedded")


async def test_the_step_runs_and_counts_up_the_log(served: Starter, log: World, tmp_path: Path) -> None:
    await log.start_generation()
    await served(AFFIDAVIT_EMBED_CACHE_DIR=str(tmp_path / "cache"))
    await log.chunked(["alpha", "beta"])
    await log.chunked([], document="d2")
    await wait_embedded(log, "d1")
    await wait_embedded(log, "d2")
    assert len(list((tmp_path / "cache").glob("*.sqlite"))) == 1
    await log.erased()
    for _ in range(400):
        if not log.names("vectors"):
            break
        await asyncio.sleep(0.05)
    assert log.names("vectors") == []


async def test_the_packaged_model_serves_both_edges(served: Starter, log: World) -> None:
    stub = await served(AFFIDAVIT_EMBEDDER_MODEL="all-MiniLM-L6-v2-int8")
    (model,) = (await stub.ListModels(pb.ListModelsRequest(crate_id=CRATE))).models
    assert (model.model_id, model.dimension, model.max_tokens, model.ready) == (
        "all-MiniLM-L6-v2-int8",
        384,
        256,
        True,
    )
    await log.start_generation(model_id=model.model_id)
    await log.chunked(["Where is the pump serviced?"], title="")
    await wait_embedded(log, "d1")
    message = await log.embedded()
    assert message is not None
    reply = await stub.Embed(request("Where is the pump serviced?"))
    assert np.array_equal(rows(reply), await log.vectors(message))


async def test_a_wrong_model_file_keeps_the_role_from_starting(served: Starter, log: World, tmp_path: Path) -> None:
    assert log.model.texts == []
    (tmp_path / "model.onnx").write_bytes(b"wrong")
    with pytest.raises(Corrupt, match=r"model\.onnx is not the file of all-MiniLM-L6-v2-int8"):
        await served(
            AFFIDAVIT_EMBEDDER_MODEL="all-MiniLM-L6-v2-int8",
            AFFIDAVIT_EMBEDDER_MODEL_FILE=str(tmp_path / "model.onnx"),
        )


def remote(server: ProviderServer, **changes: object) -> settings_pb.Provider:
    fields = {
        "role": settings_pb.PROVIDER_ROLE_EMBEDDING,
        "kind": settings_pb.PROVIDER_KIND_OPENAI_COMPATIBLE,
        "enabled": True,
        "base_url": server.url,
        "model": "text-embedding-x",
        "dimension": DIMENSION,
        "timeout_s": 2,
    }
    return settings_pb.Provider(**{**fields, **changes})  # type: ignore[arg-type]  # fields of mixed types


async def test_a_crate_s_own_provider_is_used(
    served: Starter, log: World, provider_server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.configure(remote(provider_server), revision=2)
    await log.start_generation(model_id="text-embedding-x", dimension=DIMENSION)
    stub = await served(AFFIDAVIT_ALLOW_LOOPBACK_PROVIDERS="true")
    reply = await stub.Embed(request("four"))
    assert rows(reply)[0] == pytest.approx(np.array([4, 1, 0]) / np.sqrt(17))
    await log.chunked(["alpha", "beta!"])
    await wait_embedded(log, "d1")
    assert provider_server.asked[-1].texts == ["alpha", "beta!"]
    # Another credential makes another client; the model stays the same.
    monkeypatch.setenv("AFFIDAVIT_PROVIDER_UNIT_KEY", "k")
    await log.configure(remote(provider_server, credential="env:AFFIDAVIT_PROVIDER_UNIT_KEY"), revision=3)
    await asyncio.sleep(1.1)
    await stub.Embed(request("five5"))
    assert provider_server.asked[-1].headers["authorization"] == "Bearer k"


async def test_a_provider_that_is_down_is_not_ready(
    served: Starter, log: World, provider_server: ProviderServer
) -> None:
    await log.configure(remote(provider_server), revision=2)
    stub = await served(AFFIDAVIT_ALLOW_LOOPBACK_PROVIDERS="true")
    provider_server.script = [lambda _asked: Answer(500)] * 20
    (model,) = (await stub.ListModels(pb.ListModelsRequest(crate_id=CRATE))).models
    assert (model.model_id, model.dimension, model.ready) == ("text-embedding-x", DIMENSION, False)
    provider_server.script = []
    (model,) = (await stub.ListModels(pb.ListModelsRequest(crate_id=CRATE))).models
    assert model.ready


async def test_a_hanging_provider_is_not_ready(
    served: Starter, log: World, provider_server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.embedder.servicer._PROBE_S", 0.3)
    await log.configure(remote(provider_server), revision=2)
    stub = await served(AFFIDAVIT_ALLOW_LOOPBACK_PROVIDERS="true")
    provider_server.script = [lambda _asked: Answer(delay_s=1.5)]
    (model,) = (await stub.ListModels(pb.ListModelsRequest(crate_id=CRATE))).models
    assert not model.ready


async def test_loopback_providers_need_the_operator_s_permission(
    served: Starter, log: World, provider_server: ProviderServer
) -> None:
    await log.configure(remote(provider_server), revision=2)
    await log.start_generation(model_id="text-embedding-x", dimension=DIMENSION)
    stub = await served()
    code, details = await refusal(stub.Embed(request("a")))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "allow_loopback_providers" in details
    assert provider_server.asked == []
