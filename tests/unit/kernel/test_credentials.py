"""What may be named as a credential."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.kernel.credentials import Credentials


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "credentials"
    (made / "team").mkdir(parents=True)
    (made / "key").write_text("abc")
    (made / "team" / "key").write_text("def")
    (tmp_path / "outside").write_text("not yours")
    return made


def test_files_of_the_folder(folder: Path) -> None:
    credentials = Credentials(folder, "P_")
    for reference, content in (
        ("file:key", "abc"),
        (f"file:{folder}/key", "abc"),
        ("file:team/key", "def"),
        ("file:team/../key", "abc"),
    ):
        assert credentials.problem(reference) == ""
        assert credentials.read(reference) == content
    assert credentials.problem("file:not-there-yet") == ""


def test_links_inside_of_the_folder_are_followed(folder: Path) -> None:
    # As Kubernetes mounts secrets.
    (folder / "..data").symlink_to("team")
    (folder / "linked").symlink_to("..data/key")
    credentials = Credentials(folder, "P_")
    assert credentials.problem("file:linked") == ""
    assert credentials.read("file:linked") == "def"


@pytest.mark.parametrize(
    "place", ["/etc/shadow", "../outside", "team/../../outside", "link", "way/outside", "", ".", "loop"]
)
def test_what_lies_outside(folder: Path, place: str) -> None:
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "way").symlink_to(folder.parent)
    (folder / "loop").symlink_to(folder.parent / "outside")
    credentials = Credentials(folder, "P_")
    problem = credentials.problem(f"file:{place}")
    assert f"outside of the operator's folder {folder}" in problem
    assert "provider_credentials_dir" in problem
    with pytest.raises(FileNotFoundError):
        credentials.read(f"file:{place}")


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "nowhere", "P_")
    assert credentials.problem("file:/etc/shadow")
    assert credentials.problem("file:key") == ""
    with pytest.raises(FileNotFoundError):
        credentials.read("file:key")


def test_only_plain_files_are_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for place in ("pipe", "team"):
        with pytest.raises(OSError, match=place):
            Credentials(folder, "P_").read(f"file:{place}")


def test_variables_by_prefix_or_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P_KEY", "abc")
    credentials = Credentials(Path("/nowhere"), "P_", frozenset({"OTHER"}))
    assert credentials.problem("env:P_KEY") == ""
    assert credentials.problem("env:OTHER") == ""
    assert credentials.read("env:P_KEY") == "abc"
    for name in ("HOME", "p_KEY", "XP_KEY", "OTHER2"):
        assert "P_..." in credentials.problem(f"env:{name}")


def test_without_a_prefix_only_names_count() -> None:
    credentials = Credentials(Path("/nowhere"), "", frozenset({"OTHER"}))
    assert credentials.problem("env:OTHER") == ""
    assert "provider_credential_names" in credentials.problem("env:HOME")
