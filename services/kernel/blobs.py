"""Blob store port and its local-folder adapter.

The adapter is ours because object-store libraries don't sync file and folder, and a pack must be durable before the
event that names it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from services.kernel.errors import Conflict, NotFound, Unavailable

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}(/[A-Za-z0-9_.-]{1,128})+")
_WRITERS = 4
_FOLDERS = 256
_JOINT = ","
_PART = ".part"
_ATTEMPTS = 50
_AT_ONCE_BYTES = 64 * 1024


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

    async def delete(self, name: str) -> None:
        """Delete one blob; none there is fine."""

    async def delete_prefix(self, prefix: str) -> None:
        """Delete every blob whose name starts with the prefix and a '/'."""


class FolderBlobs:
    """Blobs as files below one folder: `crate/document/1/source/id` is `crate/<00 to ff>/document,1,source,id`.

    The 256 folders of a crate are made when they are first needed and stay. A folder per document would cost each of
    its packs a sync of every folder above.
    """

    def __init__(self, *, root: Path) -> None:
        self._root = root
        self._pool = ThreadPoolExecutor(max_workers=_WRITERS, thread_name_prefix="blobs")
        self._durable: set[Path] = set()
        root.mkdir(parents=True, exist_ok=True)

    async def put(self, name: str, data: bytes) -> None:
        """See BlobStore."""
        await asyncio.get_running_loop().run_in_executor(self._pool, self._put, self.path(name), data)

    async def get(self, name: str) -> bytes:
        """See BlobStore."""
        path = self.path(name)
        try:
            held = _read_at_once(path)
            if held is not None:
                return held
            return await asyncio.get_running_loop().run_in_executor(self._pool, path.read_bytes)
        except FileNotFoundError as error:
            raise NotFound(f"blob {name} isn't there: it was erased, or the folder was changed by hand") from error
        except OSError as error:
            raise Unavailable(f"blob {name} can't be read: {error.strerror}") from error

    async def list_prefix(self, prefix: str) -> tuple[str, ...]:
        """See BlobStore."""
        found = await asyncio.get_running_loop().run_in_executor(self._pool, self.files, prefix)
        names = (_name(path) for path in found if path.suffix != _PART)
        return tuple(sorted(name for name in names if "/" not in name.removeprefix(f"{prefix}/")))

    async def delete(self, name: str) -> None:
        """See BlobStore."""
        await asyncio.get_running_loop().run_in_executor(self._pool, self._delete, name, [self.path(name)])

    async def delete_prefix(self, prefix: str) -> None:
        """See BlobStore."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._pool, lambda: self._delete(prefix, self.files(prefix)))

    def path(self, name: str) -> Path:
        """The file of a blob."""
        if not _NAME.fullmatch(name) or ".." in name.split("/"):
            raise ValueError(f"{name!r} is no blob name")
        crate, *rest = name.split("/")
        return self._root / crate / f"{zlib.crc32(rest[0].encode()) % _FOLDERS:02x}" / _JOINT.join(rest)

    def files(self, prefix: str) -> list[Path]:
        """Files of the blobs below a prefix, with those that a crash cut short."""
        path = self.path(prefix)
        with contextlib.suppress(FileNotFoundError):
            return [found for found in path.parent.iterdir() if found.name.startswith(path.name + _JOINT)]
        return []

    def close(self) -> None:
        """Wait for running writes."""
        self._pool.shutdown()

    def _put(self, path: Path, data: bytes) -> None:
        part = path.with_name(path.name + _PART)
        try:
            if path.parent not in self._durable:
                self._make(path.parent)
            for attempt in range(1, _ATTEMPTS + 1):
                _write(part, data)
                try:
                    part.rename(path)
                except FileNotFoundError:
                    # An erasure took it away; what is written here is newer than that.
                    if attempt == _ATTEMPTS:
                        raise
                else:
                    break
            _sync_folder(path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise Unavailable(f"blob {path.name} can't be written: {error.strerror}; free disk space?") from error

    def _make(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Whoever made them: another writer may not have come as far as its sync.
        _sync_folder(folder.parent)
        _sync_folder(self._root)
        self._durable.add(folder)

    def _delete(self, what: str, found: Sequence[Path]) -> None:
        try:
            for path in found:
                path.unlink(missing_ok=True)
            if found:
                _sync_folder(found[0].parent)
        except OSError as error:
            raise Unavailable(f"{what} can't be erased from the blobs folder: {error.strerror}") from error


class KeptBlobs:
    """Another store's blobs, to be read and nothing else: what a replay sees of the content."""

    def __init__(self, *, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def put(self, name: str, data: bytes) -> None:  # noqa: ARG002  (the port's signature)
        """Refuse.

        Raises:
            Conflict: Always.
        """
        raise Conflict(f"blob {name} can't be written in a replay: a replay only reads")

    async def get(self, name: str) -> bytes:
        """See BlobStore."""
        return await self._blobs.get(name)

    async def list_prefix(self, prefix: str) -> tuple[str, ...]:
        """See BlobStore."""
        return await self._blobs.list_prefix(prefix)

    async def delete(self, name: str) -> None:
        """Leave it in place, see `delete_prefix`."""

    async def delete_prefix(self, prefix: str) -> None:
        """Leave everything in place: the projection in use has erased what had to go."""


def blob_names(root: Path) -> Iterator[str]:
    """Names of all blobs in a folder of FolderBlobs; none when there is no such folder."""
    return (_name(path) for path in root.glob("*/*/*") if path.suffix != _PART)


def _name(path: Path) -> str:
    return "/".join((path.parent.parent.name, *path.name.split(_JOINT)))


def _read_at_once(path: Path) -> bytes | None:
    """A small file that is in memory already, which most packs are: no thread could fetch it faster."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(handle).st_size
        if size > _AT_ONCE_BYTES:
            return None
        held = bytearray(size)
        return bytes(held) if os.preadv(handle, [held], 0, os.RWF_NOWAIT) == size else None
    except OSError:
        # Not in memory, or a file system that can't say.
        return None
    finally:
        os.close(handle)


def _write(path: Path, data: bytes) -> None:
    # Without a file object, which costs four calls more: threads hand over the interpreter at each.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
