"""Which files `ingest` sends, and the source id of each."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from services.cli.output import printable
from services.kernel.errors import Rejected

_NOT_UTF8 = "its name is not UTF-8: rename it"
_KINDS = (
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


@dataclass(frozen=True, slots=True)
class File:
    """A file that is to be sent.

    Attributes:
        path: Where it is.
        source_id: Its document's name; escaped where it can't be one.
        refusal: Why it can't be sent, or "".
    """

    path: Path
    source_id: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was met in a folder and holds no document.

    Attributes:
        path: Where it is.
        reason: What it is.
    """

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """All that the named paths hold.

    Attributes:
        files: In order of the paths and their names, each once.
        skipped: The rest, hidden files aside.
    """

    files: tuple[File, ...]
    skipped: tuple[Skipped, ...]


def find(paths: Iterable[Path], *, prefix: str = "") -> Found:
    """Find the files of some paths.

    A file that is named itself has its name as source id, one in a named folder its path below that folder.

    Args:
        paths: Files and folders.
        prefix: Put before every source id.

    Returns:
        What is to be sent and what isn't.

    Raises:
        Rejected: When two files would be the same document, or the prefix is not UTF-8.
    """
    if not _is_text(prefix):
        raise Rejected(f"--prefix {prefix} is not UTF-8 text: nothing was sent")
    files: dict[str, File] = {}
    skipped: list[Skipped] = []
    for found in (entry for path in paths for entry in _entries(path, prefix)):
        if isinstance(found, Skipped):
            skipped.append(found)
            continue
        other = files.setdefault(found.source_id, found)
        if other is not found and other.path.resolve() != found.path.resolve():
            raise Rejected(
                f"{other.path} and {found.path} would both be the document {found.source_id!r}, one in place of the "
                "other, so nothing was sent: rename one of them, or ingest one in a call of its own with --prefix"
            )
    return Found(tuple(files.values()), tuple(skipped))


def _entries(path: Path, prefix: str) -> Iterator[File | Skipped]:
    if not path.is_dir():
        yield _entry(path, prefix + path.name)
        return
    unread: list[OSError] = []
    for folder, subfolders, names in os.walk(path, onerror=unread.append):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in subfolders:
            if Path(folder, name).is_symlink():
                yield Skipped(Path(folder, name), "is a link to a folder: name that folder to ingest it")
        for name in sorted(names):
            if not name.startswith("."):
                found = Path(folder, name)
                yield _entry(found, prefix + found.relative_to(path).as_posix())
    for error in unread:
        yield Skipped(Path(error.filename), f"can't be read: {error.strerror}")


def _entry(path: Path, source_id: str) -> File | Skipped:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return Skipped(path, f"is a link that leads nowhere: {error.strerror}")
    for is_kind, reason in _KINDS:
        if is_kind(mode):
            return Skipped(path, reason)
    if not _is_text(source_id):
        return File(path, printable(source_id), _NOT_UTF8)
    return File(path, unicodedata.normalize("NFC", source_id))


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
