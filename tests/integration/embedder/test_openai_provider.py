"""The OpenAI-compatible provider against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.embedder.adapters.model_openai import OpenAiModel
from services.embedder.domain.models import Provider, ProviderKind, Purpose
from services.embedder.domain.vectors import unit_rows
from services.embedder.scheduler import BatchScheduler
from services.kernel.credentials import Credentials
from services.kernel.errors import Failure, Rejected, Unavailable
from services.kernel.transport import GuardedTransport
from tests.integration.embedder.provider_double import (
    DIMENSION,
    Answer,
    Asked,
    ProviderServer,
    Script,
    items,
    right,
    vector,
)

SECRET = "sk-very-secret"  # noqa: S105  (made up)
TEXT = "confidential words"


@pytest.fixture
async def server() -> AsyncIterator[ProviderServer]:
    running = ProviderServer()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
def provider(server: ProviderServer) -> Provider:
    return Provider(
        kind=ProviderKind.OPENAI_COMPATIBLE,
        base_url=server.url,
        model="text-embedding-x",
        dimension=DIMENSION,
        timeout_s=5,
    )


@pytest.fixture
async def model(provider: Provider) -> AsyncIterator[OpenAiModel]:
    made = connect(provider)
    yield made
    await made.close()


def connect(provider: Provider, folder: Path = Path("/nowhere")) -> OpenAiModel:
    transport = GuardedTransport.over_network(allow_loopback=True, allow_private=False)
    credentials = Credentials(folder, "AFFIDAVIT_PROVIDER_")
    return OpenAiModel(provider=provider, transport=transport, credentials=credentials, backoff_s=0.01)


def always(answer: Answer) -> list[Script]:
    return [lambda _asked: answer] * 10


def answering(body: object) -> list[Script]:
    return always(Answer(body=json.dumps(body).encode()))


async def refusal(model: OpenAiModel, texts: Sequence[str] = (TEXT,)) -> Failure:
    with pytest.raises(Failure) as caught:
        await model.embed(texts, Purpose.DOCUMENT)
    message = str(caught.value)
    assert TEXT not in message
    assert SECRET not in message
    assert "127.0.0.1" in message
    return caught.value


async def test_texts_go_out_and_vectors_come_back_in_order(server: ProviderServer, model: OpenAiModel) -> None:
    texts = ["a", "bbb", "日本語の文"]
    vectors = await model.embed(texts, Purpose.DOCUMENT)
    assert vectors.tolist() == [vector(text) for text in texts]
    (asked,) = server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.body == {"model": "text-embedding-x", "input": texts, "encoding_format": "float"}
    assert "authorization" not in asked.headers


async def test_credential_is_read_at_each_call_from_the_environment(
    server: ProviderServer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = connect(replace(provider, credential="env:AFFIDAVIT_PROVIDER_UNIT_KEY"))
    for secret in (SECRET, "rotated"):
        monkeypatch.setenv("AFFIDAVIT_PROVIDER_UNIT_KEY", f"{secret}\n")
        await model.embed(["a"], Purpose.DOCUMENT)
    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {SECRET}", "Bearer rotated"]
    await model.close()


async def test_credential_is_read_from_a_file(server: ProviderServer, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"  {SECRET}\n")
    model = connect(replace(provider, credential=f"file:{tmp_path / 'key'}"), tmp_path)
    await model.embed(["a"], Purpose.DOCUMENT)
    assert server.asked[0].headers["authorization"] == f"Bearer {SECRET}"
    await model.close()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "can't be read"),
        (b"", "is empty"),
        (f"{SECRET}\r\nx-other: 1".encode(), "no header takes"),
        (f"{SECRET}é".encode(), "no header takes"),
        (b"\xff\xfe", "can't be read"),
    ],
)
async def test_unusable_credentials_are_named_but_never_shown(
    server: ProviderServer, provider: Provider, tmp_path: Path, content: bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    model = connect(replace(provider, credential=f"file:{tmp_path / 'key'}"), tmp_path)
    failure = await refusal(model)
    assert isinstance(failure, Unavailable)
    assert problem in failure.message
    assert f"file:{tmp_path / 'key'}" in failure.message
    assert server.asked == []
    await model.close()


async def test_what_isn_t_set_aside_for_providers_is_never_read(
    server: ProviderServer, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNIT_KEY", SECRET)
    (tmp_path / "outside").write_text(SECRET)
    (tmp_path / "inside").mkdir()
    for credential in ("env:UNIT_KEY", f"file:{tmp_path / 'outside'}", "file:../outside"):
        model = connect(replace(provider, credential=credential), tmp_path / "inside")
        failure = await refusal(model)
        assert isinstance(failure, Rejected)
        assert credential in failure.message
        assert "let the operator" in failure.message
        await model.close()
    assert server.asked == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
async def test_what_may_pass_is_tried_again(server: ProviderServer, model: OpenAiModel, status: int) -> None:
    server.script = always(Answer(status, TEXT.encode()))[:3]
    assert (await model.embed([TEXT], Purpose.DOCUMENT)).tolist() == [vector(TEXT)]
    assert len(server.asked) == 4


async def test_trying_again_ends(server: ProviderServer, model: OpenAiModel) -> None:
    server.script = always(Answer(503, TEXT.encode()))
    failure = await refusal(model)
    assert isinstance(failure, Unavailable)
    assert "answered 503, 4 times in a row" in failure.message
    assert len(server.asked) == 4


async def test_questions_are_given_up_sooner(server: ProviderServer, model: OpenAiModel) -> None:
    server.script = always(Answer(503))
    with pytest.raises(Unavailable, match="2 times in a row"):
        await model.embed(["q"], Purpose.QUERY)


async def test_the_server_s_wish_to_wait_is_followed(server: ProviderServer, model: OpenAiModel) -> None:
    server.script = always(Answer(429, headers={"retry-after": "1"}))[:1]
    started = time.monotonic()
    await model.embed(["a"], Purpose.DOCUMENT)
    assert time.monotonic() - started >= 1


async def test_dropped_connections_are_tried_again(server: ProviderServer, model: OpenAiModel) -> None:
    server.script = always(Answer(drop=True))[:2]
    assert len(await model.embed(["a"], Purpose.DOCUMENT)) == 1


async def test_a_slow_provider_runs_into_the_timeout(server: ProviderServer, provider: Provider) -> None:
    model = connect(replace(provider, timeout_s=1))
    server.script = always(Answer(delay_s=5))
    started = time.monotonic()
    with pytest.raises(Unavailable, match="did not answer within 1 s, 2 times in a row"):
        await model.embed([TEXT], Purpose.QUERY)
    assert time.monotonic() - started < 4
    await model.close()


async def test_nobody_listening_is_unavailable(provider: Provider) -> None:
    model = connect(replace(provider, base_url="http://127.0.0.1:9/v1"))
    assert "could not be reached (ConnectError)" in (await refusal(model)).message
    await model.close()


async def test_redirects_are_not_followed(server: ProviderServer, model: OpenAiModel) -> None:
    server.script = always(Answer(307, headers={"location": f"{server.url}/embeddings"}))
    failure = await refusal(model)
    assert isinstance(failure, Rejected)
    assert "a redirect: set base_url to the final address" in failure.message
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_credential_may_be_replaced(
    server: ProviderServer, provider: Provider, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("AFFIDAVIT_PROVIDER_UNIT_KEY", SECRET)
    model = connect(replace(provider, credential="env:AFFIDAVIT_PROVIDER_UNIT_KEY"))
    server.script = always(Answer(status, SECRET.encode()))
    failure = await refusal(model)
    assert isinstance(failure, Unavailable)
    assert f"answered {status}: check env:AFFIDAVIT_PROVIDER_UNIT_KEY" in failure.message
    assert len(server.asked) == 1
    await model.close()


@pytest.mark.parametrize("status", [400, 404, 413, 422, 204])
async def test_what_will_never_pass_is_refused(server: ProviderServer, model: OpenAiModel, status: int) -> None:
    server.script = always(Answer(status, b"" if status == 204 else TEXT.encode()))
    failure = await refusal(model)
    assert isinstance(failure, Rejected)
    assert f"answered {status}: check base_url, model and max_input_chars" in failure.message
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        "text",
        [],
        {"data": None},
        {"data": []},
        {"data": items(["a", "b"])},
        {"data": [{"index": 1, "embedding": [1, 2, 3]}]},
        {"data": [{"embedding": [1, 2, 3]}]},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [1, "2", 3]}]},
        {"data": [{"index": 0, "embedding": [1, None, 3]}]},
        {"data": [{"index": 0, "embedding": [True, 0, 1]}]},
        {"data": [{"index": 0, "embedding": [10**400, 0, 1]}]},
        {"data": ["x"]},
    ],
)
async def test_answers_of_another_shape_are_no_vectors(
    server: ProviderServer, model: OpenAiModel, body: object
) -> None:
    server.script = answering(body)
    failure = await refusal(model)
    assert isinstance(failure, Unavailable)
    assert "something that isn't 1 vectors" in failure.message


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xff", b"[" * 100_000, b"<html>"])
async def test_answers_that_are_no_json_are_no_vectors(server: ProviderServer, model: OpenAiModel, body: bytes) -> None:
    server.script = always(Answer(body=body))
    assert "something that isn't 1 vectors" in (await refusal(model)).message


async def test_repeated_indices_are_no_vectors(server: ProviderServer, model: OpenAiModel) -> None:
    server.script = answering({"data": [{"index": 0, "embedding": [1, 2, 3]}] * 2})
    assert "isn't 2 vectors" in (await refusal(model, [TEXT, "b"])).message


async def test_an_answer_without_end_is_cut_off(
    server: ProviderServer, model: OpenAiModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.embedder.adapters.model_openai._MAX_ANSWER_BYTES", 100)
    server.script = always(Answer(body=b" " * 200))
    assert "over 100 bytes" in (await refusal(model)).message


async def test_vectors_of_another_length_are_refused(server: ProviderServer, model: OpenAiModel) -> None:
    server.script = answering({"data": [{"index": 0, "embedding": [1, 2, 3, 4]}]})
    failure = await refusal(model)
    assert isinstance(failure, Rejected)
    assert "vectors of [4] numbers, the crate expects 3" in failure.message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_numbers_that_are_not_finite_never_pass(server: ProviderServer, model: OpenAiModel, number: str) -> None:
    body = f'{{"data": [{{"index": 0, "embedding": [1, {number}, 0]}}]}}'.encode()
    server.script = always(Answer(body=body))
    with pytest.raises(Unavailable, match="isn't finite"):
        await BatchScheduler(model=model).embed([TEXT], Purpose.DOCUMENT)


async def test_texts_over_the_maximum_are_refused_before_anything_is_sent(
    server: ProviderServer, provider: Provider
) -> None:
    model = connect(replace(provider, max_input_chars=10))
    assert model.fits(["x" * 10, "x" * 11]) == [True, False]
    failure = await refusal(model, ["short", TEXT])
    assert isinstance(failure, Rejected)
    assert f"a text has {len(TEXT)} characters" in failure.message
    assert "at most 10: ingest with a smaller chunk size" in failure.message
    assert server.asked == []
    await model.close()


async def test_many_texts_are_split_by_count_and_bytes(server: ProviderServer, model: OpenAiModel) -> None:
    texts = ["é" * length for length in range(1, 151)] + ["é" * 100_000] * 3
    vectors = await BatchScheduler(model=model).embed(texts, Purpose.DOCUMENT)
    expected = unit_rows(np.array([vector(text) for text in texts]), count=len(texts), dimension=DIMENSION)
    assert np.array_equal(vectors, expected)
    assert max(len(asked.texts) for asked in server.asked) == 64
    assert all(sum(len(text.encode()) for text in asked.texts) <= 256 * 1024 for asked in server.asked)
    assert sum(len(asked.texts) for asked in server.asked) == len(texts)


async def test_cancelling_closes_the_call(server: ProviderServer, model: OpenAiModel) -> None:
    server.script = always(Answer(delay_s=5))
    call = asyncio.create_task(BatchScheduler(model=model).embed(["a"], Purpose.DOCUMENT))
    await asyncio.wait_for(server.heard.wait(), 5)
    call.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - started < 1
    server.script = []
    assert len(await model.embed(["b"], Purpose.DOCUMENT)) == 1


async def test_loopback_needs_the_operator_s_permission(server: ProviderServer, provider: Provider) -> None:
    transport = GuardedTransport.over_network(allow_loopback=False, allow_private=True)
    model = OpenAiModel(provider=provider, transport=transport, credentials=Credentials(Path("/nowhere"), ""))
    failure = await refusal(model)
    assert isinstance(failure, Rejected)
    assert "allow_loopback_providers" in failure.message
    assert server.asked == []
    await model.close()


def test_the_double_answers_in_reverse_order() -> None:
    asked = Asked("/v1/embeddings", {}, {"input": ["a", "bb"]}, 0)
    assert [item["index"] for item in json.loads(right(asked).body)["data"]] == [1, 0]
