"""The key folder: a key is made once, and what is wrong with it is said."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from affidavit.verify import keys as keys_files
from affidavit.verify import signature

from services.kernel.blobs import FolderBlobs
from services.kernel.errors import Rejected, Unavailable
from services.receipt.adapters.entropy_os import OsEntropy
from services.receipt.adapters.signer_file import KEY_FILE, PUBLIC_FILE, AbsentSigner, FileSigner, KeyFolder, KeyState
from services.receipt.main import check_key

SEED = bytes(range(32))


@pytest.fixture
def folder(tmp_path: Path) -> KeyFolder:
    return KeyFolder(path=tmp_path / "keys")


def key_path(tmp_path: Path) -> Path:
    return tmp_path / "keys" / KEY_FILE


def test_a_key_is_made_once_and_read_again(folder: KeyFolder, tmp_path: Path) -> None:
    assert folder.report().state is KeyState.ABSENT
    made = folder.create(issuer="example.org/a", seed=SEED)
    assert folder.report().state is KeyState.READY
    assert stat.S_IMODE(key_path(tmp_path).stat().st_mode) == 0o600
    read = folder.open()
    assert isinstance(read, FileSigner)
    assert (read.issuer, read.kid, read.keys_file) == ("example.org/a", made.kid, made.keys_file)
    assert (tmp_path / "keys" / PUBLIC_FILE).read_bytes() == made.keys_file
    read.check()
    pinned = keys_files.parse(read.keys_file).find(read.kid)
    assert pinned is not None
    signature.check(pinned.public_key, b"message", read.sign(b"message"))
    with pytest.raises(Rejected, match="no second one"):
        folder.create(issuer="example.org/a", seed=SEED)
    assert not list((tmp_path / "keys").glob(".*"))


def test_an_issuer_is_made_of_the_key_where_none_is_given(folder: KeyFolder) -> None:
    made = folder.create(issuer="", seed=SEED)
    assert made.issuer == f"affidavit.localhost/{made.kid.hex()}"


@pytest.mark.parametrize("issuer", ["two words", "ü", "x" * 256, "a\nb"])
def test_an_issuer_that_can_not_be_written_is_refused(folder: KeyFolder, issuer: str) -> None:
    with pytest.raises(Rejected, match="is no issuer"):
        folder.create(issuer=issuer, seed=SEED)
    assert folder.report().state is KeyState.ABSENT


def test_a_lost_key_is_told_from_a_beginning(folder: KeyFolder, tmp_path: Path) -> None:
    made = folder.create(issuer="", seed=SEED)
    key_path(tmp_path).unlink()
    assert folder.report().state is KeyState.LOST
    with pytest.raises(Rejected, match="held one"):
        folder.create(issuer="", seed=SEED)
    signer = folder.open()
    assert isinstance(signer, AbsentSigner)
    assert signer.keys_file == made.keys_file
    for use in (signer.check, lambda: signer.sign(b"x")):
        with pytest.raises(Unavailable, match="restore it from a backup"):
            use()


def test_a_key_that_others_can_read_is_not_used(folder: KeyFolder, tmp_path: Path) -> None:
    folder.create(issuer="", seed=SEED)
    key_path(tmp_path).chmod(0o640)
    assert folder.report().state is KeyState.EXPOSED
    assert "chmod 600" in folder.report().problem
    assert isinstance(folder.open(), AbsentSigner)


@pytest.mark.parametrize("content", [b"", b"junk", b"\xff", b"affidavit signing key v0\nissuer a\nseed 00\n"])
def test_a_damaged_key_is_not_used(folder: KeyFolder, tmp_path: Path, content: bytes) -> None:
    folder.create(issuer="", seed=SEED)
    key_path(tmp_path).write_bytes(content)
    assert folder.report().state is KeyState.DAMAGED
    assert isinstance(folder.open(), AbsentSigner)


def test_the_key_of_another_keys_file_is_not_used(folder: KeyFolder, tmp_path: Path) -> None:
    folder.create(issuer="", seed=SEED)
    other = KeyFolder(path=tmp_path / "other")
    other.create(issuer="", seed=bytes(32))
    (tmp_path / "other" / KEY_FILE).replace(key_path(tmp_path))
    assert folder.report().state is KeyState.DAMAGED
    assert "doesn't belong" in folder.report().problem


def test_a_damaged_public_file_is_said_and_never_handed_out(folder: KeyFolder, tmp_path: Path) -> None:
    folder.create(issuer="", seed=SEED)
    (tmp_path / "keys" / PUBLIC_FILE).write_bytes(b"junk")
    assert folder.report().state is KeyState.DAMAGED
    assert folder.open().keys_file == b""


def test_a_public_file_that_a_crash_left_unwritten_is_written(folder: KeyFolder, tmp_path: Path) -> None:
    made = folder.create(issuer="", seed=SEED)
    (tmp_path / "keys" / PUBLIC_FILE).unlink()
    assert folder.report().state is KeyState.READY
    folder.open()
    assert (tmp_path / "keys" / PUBLIC_FILE).read_bytes() == made.keys_file


def test_an_empty_folder_opens_without_a_key(folder: KeyFolder) -> None:
    signer = folder.open()
    assert isinstance(signer, AbsentSigner)
    assert "is missing" in signer.problem
    assert signer.keys_file == b""


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"a file where the folder should be")
    with pytest.raises(Unavailable, match="can't be written"):
        KeyFolder(path=tmp_path / "keys").create(issuer="", seed=SEED)


def test_doctor_knows_that_receipts_were_issued(tmp_path: Path) -> None:
    assert check_key(tmp_path) == ""
    answer = FolderBlobs(root=tmp_path / "blobs").path(f"main/{'0' * 64}/answer/{'0' * 64}")
    answer.parent.mkdir(parents=True)
    answer.touch()
    assert "receipts were issued" in check_key(tmp_path)


def test_entropy_is_fresh() -> None:
    entropy = OsEntropy()
    assert len({entropy.draw(32) for _ in range(100)}) == 100
    assert len(entropy.draw(16)) == 16
