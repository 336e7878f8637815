"""Addresses to listen on: what is refused before a socket is opened."""

from __future__ import annotations

import pytest

from services.kernel import addresses
from services.kernel.errors import Rejected


@pytest.mark.parametrize(
    ("address", "read"),
    [
        ("127.0.0.1:7401", ("127.0.0.1", 7401)),
        ("[::1]:7401", ("::1", 7401)),
        ("localhost:0", ("localhost", 0)),
        ("127.0.0.1:65535", ("127.0.0.1", 65_535)),
    ],
)
def test_a_loopback_address(address: str, read: tuple[str, int]) -> None:
    assert addresses.parse(address) == read


@pytest.mark.parametrize("port", ["65536", "99999", "-1", "", "http", "7401 ", "٧٤٠١"])
def test_a_port_that_there_is_not(port: str) -> None:
    with pytest.raises(Rejected, match="no port of 1 to 65535"):
        addresses.parse(f"127.0.0.1:{port}")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "example.org", "10.0.0.1"])  # noqa: S104  (what is refused)
def test_anything_but_loopback(host: str) -> None:
    with pytest.raises(Rejected, match="loopback"):
        addresses.parse(f"{host}:7401")
