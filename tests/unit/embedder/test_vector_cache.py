"""Vectors kept across runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from services.embedder.adapters.cache_sqlite import SqliteVectorCache
from services.kernel.errors import Unavailable


def row(number: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array([number, 0.1], dtype=np.float32)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


async def test_vectors_come_back_bit_for_bit_in_a_later_run(tmp_path: Path) -> None:
    first = SqliteVectorCache(folder=tmp_path / "cache")
    assert await first.get("f", [key(1)]) == {}
    await first.put("f", {key(number): row(number) for number in range(1_200)})
    await first.close()
    second = SqliteVectorCache(folder=tmp_path / "cache")
    found = await second.get("f", [key(number) for number in range(1_300)])
    assert sorted(found) == [key(number) for number in range(1_200)]
    assert all(np.array_equal(found[key(number)], row(number)) for number in range(1_200))
    await second.close()


async def test_fingerprints_don_t_mix(tmp_path: Path) -> None:
    cache = SqliteVectorCache(folder=tmp_path)
    await cache.put("f", {key(1): row(1)})
    assert await cache.get("g", [key(1)]) == {}
    await cache.close()


async def test_the_first_vector_of_a_text_stays(tmp_path: Path) -> None:
    cache = SqliteVectorCache(folder=tmp_path)
    await cache.put("f", {key(1): row(1)})
    await cache.put("f", {key(1): row(2), key(3): row(3)})
    found = await cache.get("f", [key(1), key(3)])
    assert found[key(1)].tolist() == row(1).tolist()
    assert key(3) in found
    await cache.close()


async def test_two_users_share_a_folder(tmp_path: Path) -> None:
    one, two = SqliteVectorCache(folder=tmp_path), SqliteVectorCache(folder=tmp_path)
    await asyncio.gather(*(cache.put("f", {key(number): row(number)}) for number in range(40) for cache in (one, two)))
    assert len(await one.get("f", [key(number) for number in range(40)])) == 40
    await one.close()
    await two.close()


async def test_a_folder_that_can_t_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "f.sqlite").write_text("not a database, and long enough to be looked at by the library " * 20)
    cache = SqliteVectorCache(folder=tmp_path)
    with pytest.raises(Unavailable, match=f"{tmp_path}.*AFFIDAVIT_EMBED_CACHE_DIR"):
        await cache.get("f", [key(1)])
    await cache.close()
