"""Which addresses a provider may have, whatever its name resolves to."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest

from services.kernel.errors import Rejected
from services.kernel.transport import GuardedTransport


class Recorder(httpx.AsyncBaseTransport):
    """Stands in for the network."""

    def __init__(self, unreachable: tuple[str, ...] = ()) -> None:
        self.requests: list[httpx.Request] = []
        self.closed = False
        self._unreachable = unreachable

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.host in self._unreachable:
            raise httpx.ConnectError("unreachable", request=request)
        self.requests.append(request)
        return httpx.Response(200)

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Addresses by name, in place of the resolver."""
    known: dict[str, list[str]] = {}

    async def resolve(
        _self: object, host: str, port: int, **_options: object
    ) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        if host not in known:
            raise socket.gaierror("unknown")
        return [(0, 0, 0, "", (address, port)) for address in known[host]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    return known


async def ask(url: str, *, allow_loopback: bool = False, allow_private: bool = False) -> httpx.Request:
    recorder = Recorder()
    transport = GuardedTransport(inner=recorder, allow_loopback=allow_loopback, allow_private=allow_private)
    async with httpx.AsyncClient(transport=transport) as client:
        await client.post(url)
    assert recorder.closed
    (request,) = recorder.requests
    return request


async def test_the_checked_address_is_used_under_the_old_name(names: dict[str, list[str]]) -> None:
    names["api.example.com"] = ["93.184.216.34", "93.184.216.35"]
    request = await ask("https://api.example.com:8443/v1/embeddings")
    assert str(request.url) == "https://93.184.216.34:8443/v1/embeddings"
    assert request.headers["host"] == "api.example.com:8443"
    assert request.extensions["sni_hostname"] == "api.example.com"


async def test_ipv6_addresses_are_used(names: dict[str, list[str]]) -> None:
    names["api.example.com"] = ["2606:2800:220:1::1"]
    request = await ask("http://api.example.com/")
    assert str(request.url) == "http://[2606:2800:220:1::1]/"


async def test_the_next_address_is_tried_when_one_can_t_be_reached(names: dict[str, list[str]]) -> None:
    names["api.example.com"] = ["2606:2800:220:1::1", "93.184.216.34"]
    recorder = Recorder(unreachable=("2606:2800:220:1::1",))
    transport = GuardedTransport(inner=recorder, allow_loopback=False, allow_private=False)
    async with httpx.AsyncClient(transport=transport) as client:
        await client.post("http://api.example.com/", content=b"body")
        assert recorder.requests[0].url.host == "93.184.216.34"
    recorder = Recorder(unreachable=("2606:2800:220:1::1", "93.184.216.34"))
    transport = GuardedTransport(inner=recorder, allow_loopback=False, allow_private=False)
    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(httpx.ConnectError, match="unreachable"):
            await client.post("http://api.example.com/", content=b"body")


@pytest.mark.parametrize(
    "address",
    ["10.1.2.3", "192.168.0.9", "169.254.169.254", "100.64.0.1", "240.0.0.1", "224.0.0.1", "fd00::1", "fe80::1%eth0"],
)
async def test_private_and_reserved_addresses_need_permission(names: dict[str, list[str]], address: str) -> None:
    names["api.example.com"] = ["93.184.216.34", address]
    with pytest.raises(Rejected, match=r"private or reserved network.*allow_private_providers"):
        await ask("https://api.example.com/", allow_loopback=True)
    await ask("https://api.example.com/", allow_private=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
async def test_this_machine_needs_permission(names: dict[str, list[str]], address: str) -> None:
    names["api.example.com"] = [address]
    with pytest.raises(Rejected, match=r"this machine.*allow_loopback_providers"):
        await ask("https://api.example.com/", allow_private=True)
    await ask("https://api.example.com/", allow_loopback=True)


@pytest.mark.parametrize("address", ["2002:a01:203::1", "::ffff:10.1.2.3", "64:ff9b::a01:203"])
async def test_ipv6_forms_of_private_ipv4_addresses_are_seen_through(names: dict[str, list[str]], address: str) -> None:
    names["api.example.com"] = [address]
    with pytest.raises(Rejected, match="in a private"):
        await ask("https://api.example.com/")


async def test_plain_addresses_are_checked_too() -> None:
    with pytest.raises(Rejected, match="in this machine"):
        await ask("http://127.0.0.1:80/")
    assert (await ask("http://93.184.216.34/")).url.host == "93.184.216.34"


@pytest.mark.usefixtures("names")
async def test_unknown_names_can_t_be_connected_to() -> None:
    with pytest.raises(httpx.ConnectError, match="doesn't resolve"):
        await ask("https://nowhere.example.com/")
