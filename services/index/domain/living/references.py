"""How documents name one another, and by which names each of them answers."""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

from services.index.domain.living import values
from services.index.domain.living.versions import base_title

Tiers: TypeAlias = tuple[tuple[str, ...], ...]

_OUT: Mapping[str, str] = {
    "supersedes": values.SUPERSEDES, "replaces": values.SUPERSEDES, "obsoletes": values.SUPERSEDES,
    "updates": values.ELABORATES, "amends": values.ELABORATES, "elaborates": values.ELABORATES,
    "corrects": values.ELABORATES, "erratum-for": values.ELABORATES,
    "requires": values.DERIVED_FROM, "derived-from": values.DERIVED_FROM, "based-on": values.DERIVED_FROM,
    "implements": values.IMPLEMENTS,
    "see-also": values.CITES, "cites": values.CITES, "references": values.CITES,
    "contradicts": values.CONTRADICTS, "objects-to": values.CONTRADICTS,
    "version-of": values.IS_VERSION_OF, "is-version-of": values.IS_VERSION_OF,
}  # fmt: skip
_IN: Mapping[str, str] = {
    "superseded-by": values.SUPERSEDES, "replaced-by": values.SUPERSEDES, "obsoleted-by": values.SUPERSEDES,
    "updated-by": values.ELABORATES, "amended-by": values.ELABORATES, "implemented-by": values.IMPLEMENTS,
    "contradicted-by": values.CONTRADICTS,
}  # fmt: skip
_MARKDOWN = re.compile(r"!?\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)[^)]*\)")
_ANGLE = re.compile(r"`?(?P<text>[^`<]*)<(?P<target>[^<>\s]+)>`?_{0,2}")
_STATUS_BY = re.compile(r"(?:superseded|replaced|obsoleted)\s+by:?\s+(?P<named>.+)", re.IGNORECASE)
_NUMBERED = re.compile(r"(?P<prefix>[a-z]*)[-_ #]*0*(?P<number>\d+)(?:[-_ ][a-z].*)?", re.IGNORECASE)
_BARE_NUMBER = re.compile(r"(?P<prefix>[a-z]*)[-_ #]*0*(?P<number>\d+)", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")
_TEXT_EXTENSION = re.compile(r"\.(?:html?|md|markdown|rst|txt|xml|json|ya?ml|erb|adoc)$", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MOST_REFERENCES = 1_000


@dataclass(frozen=True, slots=True)
class Reference:
    """What a document says about its relation to another.

    Attributes:
        type: One of `values.TYPES`, or `values.DEPRECATES`.
        inward: The other document is the source.
        text: How it names the other one.
        tiers: Names to look up, the exact ones first.
    """

    type: str
    inward: bool
    text: str
    tiers: Tiers


def read_references(source_id: str, metadata: Mapping[str, str], status: str) -> tuple[Reference, ...]:
    """Find the relations that a document's header states.

    Args:
        source_id: Of the document; its folder and its numbering are what references go by.
        metadata: With keys in lower case and "-" between words.
        status: Its status as written; may name a successor.

    Returns:
        In order of keys, each once.
    """
    found: dict[Reference, None] = {}
    for key, value in sorted(metadata.items()):
        for table, inward in ((_OUT, False), (_IN, True)):
            if key in table:
                found |= dict.fromkeys(_named(source_id, table[key], inward, value))
    successor = _STATUS_BY.match(status.strip().strip("\"'"))
    if successor:
        found |= dict.fromkeys(_named(source_id, values.SUPERSEDES, True, successor["named"]))
    return tuple(found)[:_MOST_REFERENCES]


def link_reference(source_id: str, link: str) -> Reference | None:
    """Read a link as a citation; None for one that leads nowhere else."""
    target = link.strip()
    tiers = _path_tiers(source_id, target)
    return Reference(values.CITES, False, target, tiers) if tiers else None


def notice_reference(names: tuple[str, ...]) -> Reference:
    """Read what a notice names, by exact titles and then by titles without a version."""
    tiers = [(f"title:{_folded(name)}",) for name in names]
    tiers += [(f"title:{_folded(base_title(name))}",) for name in names]
    return Reference(values.DEPRECATES, False, names[0], tuple(dict.fromkeys(tiers)))


def aliases(document_id: str, source_id: str, title: str, uri: str) -> frozenset[str]:
    """Every name that a document answers to.

    Args:
        document_id: Its id.
        source_id: Its name in the crate.
        title: Its title; may be empty.
        uri: Where people read it; may be empty.

    Returns:
        Keys as in the tiers of references.
    """
    found = {f"id:{document_id}"}
    if source_id:
        name = stem(source_id)
        found |= {f"path:{_normal(source_id)}", f"stem:{_folded(name)}"}
        number = _NUMBERED.fullmatch(name)
        if number:
            found.add(f"number:{number['prefix'].casefold()}:{number['number']}")
    if title:
        found.add(f"title:{_folded(title)}")
    if uri:
        found.add(f"uri:{_uri(uri)}")
    return frozenset(found)


def stem(source_id: str) -> str:
    """A source id without its folders and extension."""
    name = source_id.rstrip("/").rpartition("/")[2]
    short = _EXTENSION.sub("", name)
    while short and short != name and _TEXT_EXTENSION.search(short):
        short = _TEXT_EXTENSION.sub("", short)
    return short or name


def _named(source_id: str, kind: str, inward: bool, value: str) -> list[Reference]:
    found = []
    for text, targets in _pieces(value):
        tiers: list[tuple[str, ...]] = []
        for target in targets:
            tiers += _tiers(source_id, target)
        if tiers:
            found.append(Reference(kind, inward, text, tuple(dict.fromkeys(tiers))))
    return found


def _pieces(value: str) -> list[tuple[str, tuple[str, ...]]]:
    """Split a header's value into references: each as written, and the names in it."""
    value = value.strip()
    if value.startswith("[") and not _MARKDOWN.match(value):
        try:
            listed = json.loads(value)
        except ValueError:
            listed = None
        if isinstance(listed, list):
            return [piece for entry in listed if isinstance(entry, str | int) for piece in _piece(str(entry))]
        value = value.strip("[]")
    return [piece for part in re.split(r"[,;\n]", value) for piece in _piece(part)]


def _piece(part: str) -> list[tuple[str, tuple[str, ...]]]:
    text = part.strip().lstrip("-*").strip().strip("\"'").strip()
    link = _MARKDOWN.search(text) or _ANGLE.fullmatch(text)
    if link:
        names = tuple(name.strip() for name in (link["target"], link["text"]) if name.strip())
        return [(text, names)]
    return [(text, (text,))] if text else []


def _tiers(source_id: str, text: str) -> list[tuple[str, ...]]:
    folded = _folded(text)
    tiers: list[tuple[str, ...]] = [(f"id:{folded}",), *_path_tiers(source_id, text), (f"stem:{folded}",)]
    if _TEXT_EXTENSION.search(text):
        tiers.append((f"stem:{_folded(stem(text))}",))
    number = _BARE_NUMBER.fullmatch(text)
    if number:
        own = _NUMBERED.fullmatch(stem(source_id))
        prefix = number["prefix"] or (own["prefix"] if own else "")
        tiers.append((f"number:{prefix.casefold()}:{number['number']}",))
    tiers.append((f"title:{folded}",))
    return tiers


def _path_tiers(source_id: str, text: str) -> tuple[tuple[str, ...], ...]:
    if _URL.match(text):
        return ((f"uri:{_uri(text)}",), (f"path:{_normal(text)}",))
    path = unquote(text.partition("#")[0].partition("?")[0]).strip()
    if not path or ":" in path.partition("/")[0]:
        return ()
    if path.startswith("/"):
        return ((f"path:{_normal(path.lstrip('/'))}",),)
    near = posixpath.normpath(posixpath.join(posixpath.dirname(source_id), path))
    return tuple(dict.fromkeys(((f"path:{_normal(near)}",), (f"path:{_normal(path)}",))))


def _uri(text: str) -> str:
    return text.strip().partition("#")[0].rstrip("/")


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _folded(text: str) -> str:
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip().casefold()
