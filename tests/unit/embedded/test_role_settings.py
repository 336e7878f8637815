"""Every role's settings are checked together."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.embedded import settings
from services.kernel.errors import Rejected
from services.kernel.settings import NodeSettings


def test_defaults_and_every_roles_names_are_fine(tmp_path: Path) -> None:
    (tmp_path / "affidavit.toml").write_text('embedder_threads = 3\nreceipt_issuer = "x"\nlisten = "127.0.0.1:0"')
    settings.check(NodeSettings(data_dir=tmp_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EMBEDDER_MODEL", "foo"),
        ("EMBEDDER_THREADS", "abc"),
        ("PUTS_IN_FLIGHT", "0"),
        ("LOG_LEVEL", "loud"),
        ("LISTEN", "0.0.0.0:7401"),
    ],
)
def test_a_value_that_no_role_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"AFFIDAVIT_{name}", value)
    with pytest.raises(Rejected, match=value):
        settings.check(NodeSettings(data_dir=tmp_path))


def test_an_unknown_name(tmp_path: Path) -> None:
    (tmp_path / "affidavit.toml").write_text("embeder_threads = 3")
    with pytest.raises(Rejected, match="embedder_threads"):
        settings.check(NodeSettings(data_dir=tmp_path))


@pytest.mark.parametrize("name", ["caf\udce9", "a\nb"])
def test_a_data_folder_whose_name_no_file_can_hold(tmp_path: Path, name: str) -> None:
    with pytest.raises(Rejected, match="data folder"):
        settings.check(NodeSettings(data_dir=tmp_path / name))
