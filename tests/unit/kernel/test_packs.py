from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kernel import packs
from services.kernel.blobs import FolderBlobs, blob_names
from services.kernel.errors import Corrupt, NotFound, Unavailable
from services.kernel.packs import PackStore

SALT = bytes(range(32))


@given(parts=st.dictionaries(st.text(max_size=20), st.binary(max_size=200), max_size=5))
def test_a_pack_comes_apart_as_it_was_built(parts: dict[str, bytes]) -> None:
    assert packs.parse(packs.build(parts, SALT)) == parts


@given(parts=st.dictionaries(st.text(max_size=5), st.binary(max_size=20), max_size=3), data=st.data())
def test_a_pack_that_was_cut_or_extended_is_refused(parts: dict[str, bytes], data: st.DataObject) -> None:
    pack = packs.build(parts, SALT)
    cut = data.draw(st.integers(0, len(pack) - 1))
    for damaged in (pack[:cut], pack + b"\0"):
        with pytest.raises(ValueError):  # noqa: PT011  (the wording depends on where the cut fell)
            packs.parse(damaged)


async def test_equal_content_has_unequal_ids(tmp_path: Path) -> None:
    store = PackStore(blobs=FolderBlobs(root=tmp_path))
    first = await store.write("c/d/1/source", {"raw": b"same"})
    second = await store.write("c/d/1/source", {"raw": b"same"})
    assert first.id != second.id
    assert await store.read("c/d/1/source", first.id) == {"raw": b"same"}


async def test_damage_is_detected_by_the_id(tmp_path: Path) -> None:
    blobs = FolderBlobs(root=tmp_path)
    store = PackStore(blobs=blobs)
    ref = await store.write("c/d/1/source", {"raw": b"content"})
    path = blobs.path(f"c/d/1/source/{ref.id.hex()}")
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(bytes(damaged))
    with pytest.raises(Corrupt, match="ingest its document again"):
        await store.read("c/d/1/source", ref.id)


async def test_erasing_takes_the_prefix_and_leaves_neighbours(tmp_path: Path) -> None:
    blobs = FolderBlobs(root=tmp_path)
    store = PackStore(blobs=blobs)
    gone = [await store.write(f"c/d1/{revision}/source", {"raw": b"x"}) for revision in (1, 2)]
    kept = await store.write("c/d10/1/source", {"raw": b"y"})
    await store.erase("c/d1")
    await store.erase("c/never-there")
    for revision, ref in enumerate(gone, start=1):
        with pytest.raises(NotFound):
            await store.read(f"c/d1/{revision}/source", ref.id)
    assert await store.read("c/d10/1/source", kept.id) == {"raw": b"y"}
    assert list(blob_names(tmp_path)) == [f"c/d10/1/source/{kept.id.hex()}"]


@pytest.mark.parametrize("name", ["", "/etc/passwd", "a/../b", "a//b", "a b", ".."])
async def test_names_stay_below_the_root(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no blob name"):
        await FolderBlobs(root=tmp_path).put(name, b"x")


async def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    blobs = FolderBlobs(root=tmp_path / "blobs")
    (tmp_path / "blobs" / "c").write_text("a file where a folder must be")
    with pytest.raises(Unavailable, match="can't be written"):
        await blobs.put("c/d/e", b"x")
    assert not list((tmp_path / "blobs").glob("**/*.part"))


async def test_writes_and_erasures_at_the_same_time_neither_fail_nor_leave_anything(tmp_path: Path) -> None:
    blobs = FolderBlobs(root=tmp_path / "blobs")

    async def write(writer: int) -> None:
        for number in range(20):
            await blobs.put(f"c/d/{number % 3}/source/{writer}-{number}", b"x")

    async def erase() -> None:
        for _ in range(40):
            await blobs.delete_prefix("c/d")

    await asyncio.gather(*(write(writer) for writer in range(6)), erase())
    await blobs.delete_prefix("c/d")
    assert list(blob_names(tmp_path / "blobs")) == []


async def test_erasing_takes_what_a_crash_cut_short(tmp_path: Path) -> None:
    blobs = FolderBlobs(root=tmp_path)
    await blobs.put("c/d/1/source/whole", b"x")
    blobs.path("c/d/1/source/cut.part").write_bytes(b"content")
    assert await blobs.list_prefix("c/d/1/source") == ("c/d/1/source/whole",)
    assert await blobs.list_prefix("c/d") == ()
    await blobs.delete_prefix("c/d/1")
    assert blobs.files("c/d") == []
