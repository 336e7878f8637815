"""Which files are sent, under which source ids."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.cli.files import File, find
from services.kernel.errors import Rejected


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("x1/c.md", "x1/sub/d.md", "x1/.hidden/e.md", "x1/.f.md", "x4/c.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def ids(files: tuple[File, ...]) -> list[str]:
    return [file.source_id for file in files]


def test_an_id_is_the_path_below_the_named_folder(folders: Path) -> None:
    found = find([folders / "x1"])
    assert ids(found.files) == ["c.md", "sub/d.md"]
    assert found.skipped == ()
    assert ids(find([folders / "x1" / "sub" / "d.md"], prefix="wiki/").files) == ["wiki/d.md"]


def test_two_files_with_one_id_are_refused(folders: Path) -> None:
    with pytest.raises(Rejected) as caught:
        find([folders / "x1", folders / "x4"])
    for part in (str(folders / "x1" / "c.md"), str(folders / "x4" / "c.md"), "--prefix"):
        assert part in caught.value.message
    with pytest.raises(Rejected):
        find([folders / "x1" / "c.md", folders / "x4"])


def test_two_spellings_of_one_name_are_one_id(folders: Path) -> None:
    (folders / "x4" / "e\u0301.md").write_text("a")
    (folders / "x4" / "\u00e9.md").write_text("b")
    with pytest.raises(Rejected, match="\u00e9"):
        find([folders / "x4"])


def test_the_same_file_counts_once(folders: Path) -> None:
    found = find([folders / "x1" / "c.md", folders / "x1", folders / "x1" / ".." / "x1"])
    assert ids(found.files) == ["c.md", "sub/d.md"]


def test_names_that_are_no_text_are_refused_alone(folders: Path) -> None:
    Path(os.fsdecode(os.fsencode(folders / "x4") + b"/caf\xe9.md")).write_text("x")
    found = find([folders / "x4"])
    assert ids(found.files) == ["c.md", r"caf\xe9.md"]
    assert [bool(file.refusal) for file in found.files] == [False, True]
    with pytest.raises(Rejected, match="prefix"):
        find([folders / "x1"], prefix="\udcff")


def test_what_holds_no_document_is_named(folders: Path) -> None:
    x4 = folders / "x4"
    os.mkfifo(x4 / "fifo")
    (x4 / "dangling").symlink_to("nowhere")
    (x4 / "loop").symlink_to("loop")
    (x4 / "up").symlink_to("..")
    (x4 / "linked.md").symlink_to("c.md")
    found = find([x4])
    assert ids(found.files) == ["c.md", "linked.md"]
    reasons = {skip.path.name: skip.reason for skip in found.skipped}
    assert set(reasons) == {"fifo", "dangling", "loop", "up"}
    assert "pipe" in reasons["fifo"]
    assert "link to a folder" in reasons["up"]
    assert [skip.path for skip in find([x4 / "fifo"]).skipped] == [x4 / "fifo"]


def test_a_folder_that_cannot_be_read_is_named(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refuse(path: str) -> object:
        if os.fspath(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find([folders / "x1"])
    assert ids(found.files) == ["c.md"]
    assert [(skip.path.name, skip.reason) for skip in found.skipped] == [("sub", "can't be read: Permission denied")]
