"""Version series and their order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from services.index.domain.living.dates import parse_date

# Kind of part, number, word: numbers after words, so that 1.0-rc1 comes before 1.0.
Part: TypeAlias = tuple[int, int, str]
Order: TypeAlias = tuple[Part, ...]

_FAMILY_KEYS = ("family", "series", "version-family", "document-family")
_VERSION_KEYS = ("version", "revision-label", "edition")
_NUMBERS = r"\d+(?:\.\d+)*(?:[-.]?(?:a|alpha|b|beta|rc|c|pre|preview|dev|draft|snapshot|m)[-.]?\d*)?"
_DATED = re.compile(r"(?P<family>.+?)[@_ -](?P<version>\d{4}-\d{2}-\d{2})")
_STEM = re.compile(rf"(?P<family>.+?)[-_@ ](?:v(?:ersion)?[-_. ]?)(?P<version>{_NUMBERS})", re.IGNORECASE)
_STEM_DOTTED = re.compile(r"(?P<family>.+?)[-_@ ](?P<version>\d+(?:\.\d+)+)")
_TITLE = re.compile(
    rf"(?P<family>.+?)[\s,]+\(?(?:(?:v|version|edition|release)\s*\.?\s*(?P<version>{_NUMBERS})|(?P<plain>\d+(?:\.\d+)+))\)?",
    re.IGNORECASE,
)
_PIECE = re.compile(r"\d+|[a-z]+", re.IGNORECASE)
_BEFORE = {"dev": -6, "snapshot": -6, "draft": -6, "a": -5, "alpha": -5, "m": -5, "b": -4, "beta": -4, "pre": -3}
_BEFORE |= {"preview": -3, "c": -2, "rc": -2}
_LATER = frozenset({"post", "patch", "p"})
_END: Part = (0, 0, "")


@dataclass(frozen=True, slots=True)
class Version:
    """Place of a document in a series.

    Attributes:
        family: Name of the series.
        version: As written.
    """

    family: str = ""
    version: str = ""


def is_prerelease(version: str) -> bool:
    """Whether a version is one before a release: 2.0-rc1, 1.4.0b2, 3.0-draft."""
    return any(kind < 0 for kind, _, _ in order(version))


def read_version(metadata: Mapping[str, str], stem: str, title: str, *, folder: str = "") -> Version:
    """Find series and version of a document.

    Args:
        metadata: With keys in lower case and "-" between words.
        stem: Its source id without folders and extension.
        title: Its title.
        folder: Folder of its source id: files of the same name in two folders are no versions of one another.

    Returns:
        From metadata, else folder and stem, else the title; what one source leaves open comes from the next. Empty when
        there are none; what has no number, such as "latest", is no version.
    """
    family = next((metadata[key].strip() for key in _FAMILY_KEYS if metadata.get(key, "").strip()), "")
    version = next((metadata[key].strip() for key in _VERSION_KEYS if metadata.get(key, "").strip()), "")
    if not any(sign.isdigit() for sign in version):
        version = ""
    if family and version:
        return Version(family, version)
    named = _from_name(stem)
    if named is not None and folder:
        named = Version(f"{folder}/{named.family}", named.version)
    named = named or _from_title(title)
    if named is None:
        return Version(family, version)
    return Version(family or named.family, version or named.version)


def base_title(title: str) -> str:
    """A title without the version at its end."""
    found = _from_title(title)
    return found.family if found else re.sub(r"\s+v\d+(\.(\d+|x))*$", "", title, flags=re.IGNORECASE)


def order(version: str) -> Order:
    """Key by which versions sort.

    Args:
        version: "1.10", "v2.0-rc1", "2024-05-31".

    Returns:
        Numeric parts as numbers, pre-releases before releases; trailing zeros say nothing. Empty for an empty version.
    """
    text = version.strip().casefold()
    date = parse_date(text)
    if date is not None:
        return ((1, date.year, ""), (1, date.month, ""), (1, date.day, ""))
    text = re.sub(r"^(?:version|v)[\s.]*(?=\d)", "", text).partition("+")[0]
    parts: list[Part] = []
    for piece in _PIECE.findall(text):
        if piece.isdigit():
            parts.append((1, int(piece), ""))
        elif piece in _BEFORE:
            parts.append((_BEFORE[piece], 0, ""))
        else:
            parts.append((0, 1 if piece in _LATER else 2, piece) if parts else (2, 0, piece))
    while parts and parts[-1] == (1, 0, ""):
        parts.pop()
    if not parts:
        return (_END,) if text else ()
    return (*_squeezed(parts), _END)


def newer(one: str, other: str) -> int:
    """Compare two versions.

    Args:
        one: A version.
        other: Another one.

    Returns:
        1 when the first is newer, -1 when it is older, 0 when they are equal or one is empty.
    """
    left, right = order(one), order(other)
    if not left or not right or left == right:
        return 0
    return 1 if left > right else -1


def _squeezed(parts: list[Part]) -> list[Part]:
    """Zeros before a pre-release's mark say as little as those at the end: 1.0rc1 is one of 1."""
    kept: list[Part] = []
    for part in parts:
        if part[0] < 0:
            while kept and kept[-1] == (1, 0, "") and len(kept) > 1:
                kept.pop()
        kept.append(part)
    return kept


def _from_name(stem: str) -> Version | None:
    for pattern in (_DATED, _STEM, _STEM_DOTTED):
        found = pattern.fullmatch(stem)
        if found:
            return Version(found["family"], found["version"])
    return None


def _from_title(title: str) -> Version | None:
    found = _TITLE.fullmatch(title.strip())
    if found is None:
        return None
    return Version(found["family"].rstrip(" ,-:\N{EN DASH}\N{EM DASH}"), found["version"] or found["plain"])
