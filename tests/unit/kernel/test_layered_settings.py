"""Settings that can't be used are refused by name, from whichever source they come."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.kernel import addresses
from services.kernel.errors import Rejected
from services.kernel.settings import NodeSettings, check_names


def test_the_order_of_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "affidavit.toml").write_text('listen = "a:1"\nlog_level = "info"\nnats_url = "file"')
    monkeypatch.setenv("AFFIDAVIT_LISTEN", "b:2")
    monkeypatch.setenv("AFFIDAVIT_LOG_LEVEL", "error")
    found = NodeSettings(data_dir=tmp_path, listen="c:3")
    assert (found.listen, found.log_level, found.nats_url) == ("c:3", "error", "file")
    monkeypatch.setenv("AFFIDAVIT_DATA_DIR", str(tmp_path))
    assert NodeSettings().nats_url == "file"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("bogus = [", "is not valid TOML"),
        ("stream_replicas = 0", "stream_replicas in "),
        ('stream_replicas = "many"', "can't be 'many'"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "affidavit.toml").write_text(content)
    with pytest.raises(Rejected) as caught:
        NodeSettings(data_dir=tmp_path)
    assert expected in caught.value.message
    assert str(tmp_path / "affidavit.toml") in caught.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "affidavit.toml").write_bytes(b"# \xff")
    with pytest.raises(Rejected, match="can't be read"):
        NodeSettings(data_dir=tmp_path)


def test_variables_and_arguments_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Rejected, match=r"^stream_replicas can't be 9: "):
        NodeSettings(data_dir=tmp_path, stream_replicas=9)
    monkeypatch.setenv("AFFIDAVIT_STREAM_REPLICAS", "abc")
    with pytest.raises(Rejected, match=r"^AFFIDAVIT_STREAM_REPLICAS can't be 'abc': "):
        NodeSettings(data_dir=tmp_path)
    monkeypatch.setenv("AFFIDAVIT_ADDRESSES", "no json")
    with pytest.raises(Rejected, match="addresses"):
        NodeSettings(data_dir=tmp_path)


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    check_names(tmp_path, {"listen"})
    (tmp_path / "affidavit.toml").write_text("lissten = 1")
    with pytest.raises(Rejected, match=r"'lissten'.*nearest one is listen"):
        check_names(tmp_path, {"listen", "log_level"})


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:7401", "[::1]:65535"])
def test_addresses_of_this_machine(address: str) -> None:
    addresses.parse(address)


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0:7401", "10.0.0.1:1", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:x", "127.0.0.1:²", "7401", ""],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(Rejected):
        addresses.parse(address)
