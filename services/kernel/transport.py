"""Connects only to addresses that the operator allows, whatever a name resolves to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import httpx

from services.kernel.errors import Rejected

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class GuardedTransport(httpx.AsyncBaseTransport):
    """Resolves a host itself, checks every address, and connects to one of those that it has checked.

    Checking first and letting the client resolve again would let a name change its address in between.
    """

    def __init__(self, *, inner: httpx.AsyncBaseTransport, allow_loopback: bool, allow_private: bool) -> None:
        self._inner = inner
        self._allow_loopback = allow_loopback
        self._allow_private = allow_private

    @classmethod
    def over_network(cls, *, allow_loopback: bool, allow_private: bool) -> GuardedTransport:
        """A transport with connections of its own."""
        return cls(inner=httpx.AsyncHTTPTransport(), allow_loopback=allow_loopback, allow_private=allow_private)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Args:
            request: To a host name or address.

        Returns:
            The answer.

        Raises:
            Rejected: When the host is, or resolves to, an address that isn't allowed.
            httpx.ConnectError: When the name doesn't resolve.
        """
        host = request.url.host
        addresses = await _resolve(host, request.url.port or 0, request)
        for address in addresses:
            self._check(host, address)
        # TLS still asks for, and verifies, the name.
        request.extensions = {**request.extensions, "sni_hostname": host}
        for address in addresses[:-1]:
            try:
                return await self._send(request, address)
            except httpx.ConnectError:
                continue  # the next one may be reachable; nothing was sent yet
        return await self._send(request, addresses[-1])

    async def _send(self, request: httpx.Request, address: _Address) -> httpx.Response:
        request.url = request.url.copy_with(host=str(address))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    def _check(self, host: str, address: _Address) -> None:
        effective = _effective(address)
        if effective.is_loopback:
            allowed, place, setting = self._allow_loopback, "this machine", "allow_loopback_providers"
        elif not effective.is_global or effective.is_multicast:
            allowed, place, setting = self._allow_private, "a private or reserved network", "allow_private_providers"
        else:
            return
        if not allowed:
            raise Rejected(
                f"provider {host} is at {address}, which is in {place}: the operator must set {setting} to allow that"
            )


async def _resolve(host: str, port: int, request: httpx.Request) -> list[_Address]:
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass  # a name
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpx.ConnectError(f"{host} doesn't resolve", request=request) from error
    return [ipaddress.ip_address(str(entry[4][0]).split("%", 1)[0]) for entry in found]


def _effective(address: _Address) -> _Address:
    """The IPv4 address that an IPv6 address stands for, where it does."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return inner
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
