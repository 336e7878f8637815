"""Blob store port and its local-folder adapter.

The adapter is ours because object-store libraries don't sync file and folder, and a pack must be durable before the
event that names it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from services.kernel.errors import NotFound, Unavailable

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}(/[A-Za-z0-9_.-]{1,128})*")
_WRITERS = 16
_ATTEMPTS = 50
_ERASED = ".erased"


class BlobStore(Protocol):
    """Durable bytes by name; names are tokens joined by '/'."""

    async def put(self, name: str, data: bytes) -> None:
        """Store bytes durably.

        Raises:
            Unavailable: When they can't be stored.
        """

    async def get(self, name: str) -> bytes:
        """Read bytes.

        Raises:
            NotFound: When there is no such blob.
        """

    async def list_prefix(self, prefix: str) -> tuple[str, ...]:
        """Names of the blobs right below a prefix and a '/', sorted; none when there is nothing."""

    async def delete_prefix(self, prefix: str) -> None:
        """Delete every blob whose name starts with the prefix and a '/'."""


class FolderBlobs:
    """Blobs as files below one folder."""

    def __init__(self, *, root: Path) -> None:
        self._root = root
        self._pool = ThreadPoolExecutor(max_workers=_WRITERS, thread_name_prefix="blobs")
        root.mkdir(parents=True, exist_ok=True)
        # What an erasure that was cut short has left.
        for aside in root.glob(f"{_ERASED}/*"):
            self._remove(aside)

    async def put(self, name: str, data: bytes) -> None:
        """See BlobStore."""
        await asyncio.get_running_loop().run_in_executor(self._pool, self._put, self._path(name), data)

    async def get(self, name: str) -> bytes:
        """See BlobStore."""
        path = self._path(name)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, path.read_bytes)
        except FileNotFoundError as error:
            raise NotFound(f"blob {name} isn't there: it was erased, or the folder was changed by hand") from error
        except OSError as error:
            raise Unavailable(f"blob {name} can't be read: {error.strerror}") from error

    async def list_prefix(self, prefix: str) -> tuple[str, ...]:
        """See BlobStore."""
        found = await asyncio.get_running_loop().run_in_executor(self._pool, _file_names, self._path(prefix))
        return tuple(f"{prefix}/{name}" for name in found)

    async def delete_prefix(self, prefix: str) -> None:
        """See BlobStore."""
        await asyncio.get_running_loop().run_in_executor(self._pool, self._delete, self._path(prefix))

    def names(self) -> Iterator[str]:
        """Every blob's name; for `doctor` and tests."""
        for path in self._root.rglob("*"):
            if path.is_file() and _ERASED not in path.parts:
                yield path.relative_to(self._root).as_posix()

    def close(self) -> None:
        """Wait for running writes."""
        self._pool.shutdown()

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name) or ".." in name.split("/"):
            raise ValueError(f"{name!r} is no blob name")
        return self._root / name

    def _put(self, path: Path, data: bytes) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                self._write(path, data)
            except (FileNotFoundError, FileExistsError) as error:
                # An erasure took the folder away under the write; what is written now is newer than that.
                if attempt == _ATTEMPTS - 1:
                    message = f"blob {path.name} can't be written: {path.parent} keeps vanishing, or isn't a folder"
                    raise Unavailable(message) from error
            except OSError as error:
                raise Unavailable(f"blob {path.name} can't be written: {error.strerror}; free disk space?") from error
            else:
                return

    def _write(self, path: Path, data: bytes) -> None:
        part = path.with_name(f".{path.name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.rename(path)
            self._sync_upwards(path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise

    def _sync_upwards(self, path: Path) -> None:
        # Every folder on the way is synced, whoever made it and without a lock: writers that sync at the same time
        # share one commit of the file system, while syncing one after the other would cost each its own.
        for folder in path.parents:
            _sync_folder(folder)
            if folder == self._root:
                return

    def _delete(self, path: Path) -> None:
        aside = self._root / _ERASED / secrets.token_hex(8)
        try:
            aside.parent.mkdir(exist_ok=True)
            # In one step out of reach of writers, which would put files into folders that were just emptied.
            path.rename(aside)
        except FileNotFoundError:
            return
        except OSError as error:
            raise Unavailable(f"folder {path.name} can't be erased: {error.strerror}") from error
        _sync_folder(path.parent)
        self._remove(aside)

    def _remove(self, aside: Path) -> None:
        shutil.rmtree(aside, ignore_errors=True)
        if aside.exists():
            raise Unavailable(f"erased content is still in {aside}: delete that folder, or start again")
        _sync_folder(aside.parent)


def _file_names(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    # Names that begin with a dot are writes that a crash cut short.
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_file() and not entry.name.startswith("."))


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
