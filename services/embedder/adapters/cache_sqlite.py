"""Vectors kept across runs in SQLite files, one per model fingerprint; several processes may share the folder."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np

from services.embedder.domain.vectors import Vectors, to_bytes
from services.kernel.errors import Unavailable

_T = TypeVar("_T")
_KEYS_AT_ONCE = 500
_BUSY_S = 60.0


class SqliteVectorCache:
    """See ports.VectorCache."""

    def __init__(self, *, folder: Path) -> None:
        self._folder = folder
        # One thread owns all connections: SQLite's are not meant to be shared.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vector-cache")
        self._connections: dict[str, sqlite3.Connection] = {}

    async def get(self, fingerprint: str, keys: Sequence[bytes]) -> Mapping[bytes, Vectors]:
        """See VectorCache."""
        return await self._in_thread(lambda: self._get(fingerprint, keys))

    async def put(self, fingerprint: str, vectors: Mapping[bytes, Vectors]) -> None:
        """See VectorCache."""
        await self._in_thread(lambda: self._put(fingerprint, vectors))

    async def close(self) -> None:
        """Close the files."""
        await self._in_thread(self._close)
        self._thread.shutdown()

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(
                f"the vector cache in {self._folder} can't be used ({type(error).__name__}: {error}): "
                "delete the folder, or unset AFFIDAVIT_EMBED_CACHE_DIR"
            ) from error

    def _open(self, fingerprint: str) -> sqlite3.Connection:
        if fingerprint not in self._connections:
            self._folder.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._folder / f"{fingerprint}.sqlite", timeout=_BUSY_S)
            connection.execute("pragma journal_mode = wal")
            # A lost vector is only computed again, so a power cut may take the last ones.
            connection.execute("pragma synchronous = normal")
            connection.execute("create table if not exists vectors (key blob primary key, row blob) without rowid")
            self._connections[fingerprint] = connection
        return self._connections[fingerprint]

    def _get(self, fingerprint: str, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        connection = self._open(fingerprint)
        found: dict[bytes, Vectors] = {}
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            part = keys[start : start + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(part))
            rows = connection.execute(f"select key, row from vectors where key in ({marks})", part)  # noqa: S608  (only marks)
            found |= {key: np.frombuffer(row, dtype="<f4") for key, row in rows}
        return found

    def _put(self, fingerprint: str, vectors: Mapping[bytes, Vectors]) -> None:
        rows = [(key, to_bytes(vector)) for key, vector in vectors.items()]
        with self._open(fingerprint) as connection:
            connection.executemany("insert or ignore into vectors values (?, ?)", rows)

    def _close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
