"""Addresses and headers of calls to providers; calls over HTTP are tested with the providers themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from services.kernel.credentials import Credentials
from services.kernel.errors import Failure, ProviderAway, ProviderRefused, Rejected, Unavailable, outcome
from services.kernel.providers import Endpoint, ProviderClient, call_url, provider_name

SECRET = "sk-very-secret"  # noqa: S105  (made up)


class Network(httpx.AsyncBaseTransport):
    """Answers every request the same way and keeps it."""

    def __init__(self, status: int = 200) -> None:
        self.requests: list[httpx.Request] = []
        self._status = status

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self._status, content=SECRET.encode())


def client(network: Network, folder: Path, headers: Mapping[str, str], credential: str = "") -> ProviderClient:
    endpoint = Endpoint(
        name=provider_name("answer", "https://api.example.com:8443/v1"),
        url="https://api.example.com:8443/v1/x",
        timeout_s=5,
        credential=credential,
        headers=headers,
        advice="base_url and model",
    )
    return ProviderClient(
        endpoint=endpoint, transport=network, credentials=Credentials(folder, "AFFIDAVIT_PROVIDER_"), backoff_s=0
    )


async def failure(of: ProviderClient) -> Failure:
    with pytest.raises(Failure) as caught:
        await of.post({}, attempts=2, most_bytes=100)
    error = caught.value
    assert SECRET not in error.message
    assert error.__cause__ is None
    assert error.__context__ is None
    return error


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1/embeddings"),
        ("https://api.example.com/v1/", "https://api.example.com/v1/embeddings"),
        ("https://api.example.com", "https://api.example.com/v1/embeddings"),
        ("https://example.com/ai/v2", "https://example.com/ai/v2/embeddings"),
        ("https://example.com/video", "https://example.com/video/v1/embeddings"),
    ],
)
def test_address_of_the_call(base_url: str, url: str) -> None:
    assert call_url(base_url, "embeddings") == url


async def test_headers_are_sent_and_secrets_among_them_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFFIDAVIT_PROVIDER_ORG", "org-7\n")
    (tmp_path / "key").write_text(SECRET)
    network = Network()
    headers = {"X-Org": "env:AFFIDAVIT_PROVIDER_ORG", "api-key": "file:key", "X-Plain": "plain words"}
    assert await client(network, tmp_path, headers, "file:key").post({"a": 1}, attempts=1, most_bytes=100)
    (sent,) = network.requests
    assert (sent.headers["x-org"], sent.headers["api-key"], sent.headers["x-plain"]) == ("org-7", SECRET, "plain words")
    assert sent.headers["authorization"] == f"Bearer {SECRET}"
    assert sent.content == b'{"a":1}'


@pytest.mark.parametrize(
    ("headers", "kind", "problem"),
    [
        ({"Host": "elsewhere"}, Rejected, "header 'Host' can't be set"),
        ({"a b": "x"}, Rejected, "header 'a b' can't be set"),
        ({"": "x"}, Rejected, "header '' can't be set"),
        ({"x-é": "x"}, Rejected, "can't be set"),
        ({"x-a": "línea"}, Rejected, "has a value that no header takes"),
        ({"x-a": "a\r\nx-b: c"}, Rejected, "has a value that no header takes"),
        ({"x-a": "env:PATH"}, Rejected, "isn't set aside for providers"),
        ({"x-a": "env:AFFIDAVIT_PROVIDER_NONE"}, Unavailable, "can't be read (KeyError)"),
        ({"x-a": "file:undecodable"}, Unavailable, "can't be read (UnicodeDecodeError)"),
    ],
)
async def test_headers_that_can_t_be_sent_are_named(
    tmp_path: Path, headers: Mapping[str, str], kind: type[Failure], problem: str
) -> None:
    (tmp_path / "undecodable").write_bytes(SECRET.encode() + b"\xff")
    network = Network()
    found = await failure(client(network, tmp_path, headers))
    assert problem in found.message
    # The provider has no part in it.
    assert type(found) is kind
    assert network.requests == []


@pytest.mark.parametrize(
    ("status", "kind", "sent"),
    [
        (400, ProviderRefused, 1),
        (404, ProviderRefused, 1),
        (307, ProviderRefused, 1),
        (401, ProviderAway, 1),
        (500, ProviderAway, 2),
        (429, ProviderAway, 2),
    ],
)
async def test_what_the_provider_says_is_told_from_faults_of_ours(
    tmp_path: Path, status: int, kind: type[Failure], sent: int
) -> None:
    network = Network(status)
    found = await failure(client(network, tmp_path, {}))
    assert type(found) is kind
    assert f"answer provider api.example.com answered {status}" in found.message
    assert len(network.requests) == sent
    assert outcome(found) == outcome(kind.__mro__[1](""))


async def test_a_longer_answer_than_wanted_isn_t_read(tmp_path: Path) -> None:
    with pytest.raises(ProviderAway, match="answered with over 3 bytes"):
        await client(Network(), tmp_path, {}).post({}, attempts=1, most_bytes=3)
