"""The OpenAI-compatible chat call: what is sent, what is read, and what is tried again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest

from services.kernel.errors import Failure, ProviderAway, ProviderRefused, Rejected
from services.proposition.domain import prompts
from services.proposition.domain.evaluation import Source
from services.proposition.domain.providers import Provider
from services.proposition.ports import Completion
from tests.integration.proposition.chat_double import KEY, KEY_NAME, Call, Chat, reply, right

PROVIDER = Provider(
    base_url="https://api.example.com/v1", model="gpt-x", credential=f"env:{KEY_NAME}", headers=(("x-team", "docs"),)
)
MESSAGES = prompts.generation(Source(text="CANARY passage"))


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Chat:
    monkeypatch.setenv(KEY_NAME, KEY)
    return Chat()


async def ask(chat: Chat, provider: Provider = PROVIDER) -> Completion:
    model = chat.model(provider)
    try:
        return await model.complete(MESSAGES, prompts.PROPOSITIONS)
    finally:
        await model.close()


async def refusal(chat: Chat, provider: Provider = PROVIDER) -> Failure:
    with pytest.raises(Failure) as caught:
        await ask(chat, provider)
    error = caught.value
    assert not any(secret in error.message for secret in ("CANARY", KEY))
    assert error.__cause__ is error.__context__ is None
    return error


async def test_a_call_is_deterministic_and_carries_what_the_provider_needs(chat: Chat) -> None:
    answer = await ask(chat, replace(PROVIDER, max_output_tokens=77))
    assert answer.text.startswith('{"propositions"')
    assert (answer.truncated, answer.request_id, answer.model_id) == (False, "req-7", "gpt-x-2026")
    (call,) = chat.calls
    assert call.url == "https://api.example.com/v1/chat/completions"
    assert (call.headers["authorization"], call.headers["x-team"]) == (f"Bearer {KEY}", "docs")
    form = call.body.pop("response_format")
    assert form["type"] == "json_schema"
    assert (form["json_schema"]["name"], form["json_schema"]["strict"]) == ("propositions", True)
    assert form["json_schema"]["schema"]["required"] == ["propositions"]
    assert [entry["role"] for entry in call.body.pop("messages")] == ["system", "user", "assistant", "user"]
    assert call.body == {"model": "gpt-x", "temperature": 0, "max_tokens": 77, "stream": False}


async def test_an_address_without_version_gets_one(chat: Chat) -> None:
    await ask(chat, replace(PROVIDER, base_url="https://api.example.com"))
    assert chat.calls[0].url == "https://api.example.com/v1/chat/completions"


@pytest.mark.parametrize("status", [400, 422])
async def test_a_provider_without_schemas_is_asked_without_them_from_then_on(chat: Chat, status: int) -> None:
    chat.script = lambda call: httpx.Response(status) if "response_format" in call.body else right(call)
    model = chat.model(PROVIDER)
    for _ in range(3):
        assert (await model.complete(MESSAGES, prompts.PROPOSITIONS)).text
    assert ["response_format" in call.body for call in chat.calls] == [True, False, False, False]
    await model.close()


async def test_a_refusal_of_something_else_is_not_remembered_as_that(chat: Chat) -> None:
    model = chat.model(PROVIDER)
    chat.script = lambda _: httpx.Response(400, text=KEY)
    with pytest.raises(ProviderRefused, match="answered 400: check base_url, model"):
        await model.complete(MESSAGES, prompts.PROPOSITIONS)
    chat.script = right
    await model.complete(MESSAGES, prompts.PROPOSITIONS)
    assert ["response_format" in call.body for call in chat.calls] == [True, False, True]
    await model.close()


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_what_may_pass_is_tried_again(chat: Chat, status: int) -> None:
    left = [httpx.Response(status, text=KEY) for _ in range(3)]
    chat.script = lambda call: left.pop() if left else right(call)
    assert (await ask(chat)).text
    assert len(chat.calls) == 4


async def test_the_provider_s_wish_to_wait_is_followed(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    async def sleep(delay_s: float) -> None:
        waited.append(delay_s)

    monkeypatch.setattr("services.kernel.providers.asyncio.sleep", sleep)
    left = [httpx.Response(429, headers={"retry-after": value}) for value in ("soon", "3600", "7")]
    chat.script = lambda call: left.pop() if left else right(call)
    await ask(chat)
    assert [delay_s for delay_s in waited if delay_s != 0.002] == [7, 20, 0]


async def test_trying_again_ends(chat: Chat) -> None:
    def slow(call: Call) -> httpx.Response:
        raise httpx.ReadTimeout(call.last)

    chat.script = slow
    error = await refusal(chat)
    assert isinstance(error, ProviderAway)
    assert "answer provider api.example.com did not answer within 30 s, 4 times in a row" in error.message


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="CANARY"),
        httpx.Response(200, text="[" * 100_000),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"choices": []}),
        httpx.Response(200, json={"choices": {"0": "CANARY"}}),
        httpx.Response(200, json={"choices": [{"message": "CANARY"}]}),
        httpx.Response(200, json={"error": {"message": "CANARY"}}),
        reply(None),
        httpx.Response(200, json={"choices": [{"message": {"content": ["CANARY"]}, "finish_reason": "stop"}]}),
    ],
)
async def test_an_answer_of_another_form_is_no_completion(chat: Chat, answer: httpx.Response) -> None:
    chat.script = lambda _: answer
    error = await refusal(chat)
    assert isinstance(error, ProviderAway)
    assert "is no chat completion" in error.message


async def test_an_answer_without_end_is_cut_off(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.proposition.adapters.model_openai._MAX_ANSWER_BYTES", 100)
    chat.script = lambda _: reply("CANARY" * 100)
    assert "over 100 bytes" in (await refusal(chat)).message


@pytest.mark.parametrize(("content", "text"), [('{"prop', '{"prop'), (None, "")])
async def test_the_limit_of_output_tokens_is_told(chat: Chat, content: str | None, text: str) -> None:
    chat.script = lambda _: reply(content, reason="length")
    answer = await ask(chat)
    assert (answer.truncated, answer.text) == (True, text)


@pytest.mark.parametrize("told", [None, 7, "", "é", "a\nb", "x" * 201])
async def test_ids_that_can_t_be_shown_are_left_out(chat: Chat, told: object) -> None:
    chat.script = lambda _: reply("x", id=told, model=told)
    answer = await ask(chat)
    assert (answer.request_id, answer.model_id) == ("", "")


async def test_long_requests_are_refused_before_anything_is_sent(chat: Chat) -> None:
    error = await refusal(chat, replace(PROVIDER, max_input_chars=100))
    assert isinstance(error, ProviderRefused)
    assert "takes at most 100: make chunks smaller" in error.message
    assert chat.calls == []


async def test_a_credential_that_isn_t_allowed_is_no_matter_of_the_provider(chat: Chat) -> None:
    error = await refusal(chat, replace(PROVIDER, credential="env:PATH"))
    assert type(error) is Rejected
    assert chat.calls == []


async def test_no_more_calls_than_allowed_run_side_by_side(chat: Chat) -> None:
    running, most = 0, 0
    handle = chat.handle_async_request

    async def counted(request: httpx.Request) -> httpx.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return await handle(request)

    chat.handle_async_request = counted  # type: ignore[method-assign]  # the double of this test
    model = chat.model(replace(PROVIDER, max_concurrency=3))
    assert model.calls_at_once == 3
    await asyncio.gather(*(model.complete(MESSAGES, prompts.PROPOSITIONS) for _ in range(12)))
    assert most == 3
    await model.close()
