"""What a node is told about a folder's documents: facts that an owner of such a folder has, and never the verdict."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

TYPES = ("supersedes", "derived_from", "cites", "elaborates", "implements", "contradicts", "is_version_of")
FED = ("family", "version", "created", "updated", "effective", "valid_from", "withdrawn_on")
# What an engine has to find out, and what gives it away.
SECRET = frozenset(
    {"status_truth", "status_accept", "status_basis", "status_source", "status_history", "valid_to", "superseded_on"}
)
# What an entry consists of without being metadata.
_ENTRY = frozenset({"id", "path", "mime", "title"})
_CLAIM = re.compile(r"claim-\d+")


@dataclass(frozen=True, slots=True)
class Statement:
    """An edge as it is declared: "source TYPE target", ids of the folder.

    Attributes:
        effective_at: None: the source's own counts.
    """

    source: str
    type: str
    target: str
    effective_at: datetime | None = None
    confidence: float = 1.0


def instant(text: str) -> datetime:
    """Read a date or an instant; a date means its midnight in UTC.

    Args:
        text: ISO 8601, for example "2021-03-04" or "2021-03-04T00:00:00.000Z".

    Returns:
        The instant, in UTC.

    Raises:
        ValueError: When it is none; the message shows the text.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no date: write it as YYYY-MM-DD") from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def effective_at(row: Mapping[str, Any]) -> datetime | None:
    """When a document came into force.

    Args:
        row: Its entry in documents.jsonl.

    Returns:
        Its `effective`, else `valid_from`, else `created`; None when it has no date.
    """
    for name in ("effective", "valid_from", "created"):
        if row.get(name):
            return instant(str(row[name]))
    return None


def metadata(row: Mapping[str, Any], extra: Iterable[str] = ()) -> dict[str, str]:
    """Facts about a document that go along with it.

    Args:
        row: Its entry in documents.jsonl.
        extra: Further fields to feed.

    Returns:
        Values by field, those that the entry has.

    Raises:
        ValueError: When an extra field holds the verdict.
    """
    names = (*FED, *extra)
    told = SECRET & set(names)
    if told:
        raise ValueError(f"{', '.join(sorted(told))} can't be fed: the engine has to find that out itself")
    return {name: str(row[name]) for name in names if row.get(name) not in (None, "")}


def left_out(rows: Iterable[Mapping[str, Any]], extra: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of the fields of a folder that aren't fed, sorted."""
    seen = {name for row in rows for name in row}
    return tuple(sorted(seen - _ENTRY - set(FED) - set(extra)))


def source_ids(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Names under which documents go in, as if their owner had ingested the folder that holds all of them.

    Args:
        rows: Entries of documents.jsonl.

    Returns:
        Path below the documents' deepest common folder, by id.

    Raises:
        ValueError: When two entries share an id or a path.
    """
    paths = {str(row["id"]): str(row["path"]).replace("\\", "/") for row in rows}
    if len(paths) != len(rows) or len(set(paths.values())) != len(rows):
        twice = [name for name, count in Counter(str(row["id"]) for row in rows).items() if count > 1]
        twice += [path for path, count in Counter(paths.values()).items() if count > 1]
        raise ValueError(f"documents.jsonl names {', '.join(twice[:5])} twice: give each document its own id and path")
    folder = os.path.commonpath([str(PurePosixPath(path).parent) for path in paths.values()]) if paths else ""
    skip = len(folder) + 1 if folder not in ("", ".") else 0
    return {name: path[skip:] for name, path in paths.items()}


def statements(rows: Iterable[Mapping[str, Any]]) -> tuple[tuple[Statement, ...], dict[str, int]]:
    """Edges to declare.

    A contradiction between two claims of SciFact is symmetric, although the folder writes it once: it goes both ways.

    Args:
        rows: Entries of relations.jsonl.

    Returns:
        The edges, each (source, type, target) once, and how many entries were left out by their unknown type.
    """
    found: dict[tuple[str, str, str], Statement] = {}
    skipped: Counter[str] = Counter()
    for row in rows:
        if row["type"] not in TYPES:
            skipped[str(row["type"])] += 1
            continue
        at = instant(str(row["effective"])) if row.get("effective") else None
        edge = Statement(str(row["source"]), str(row["type"]), str(row["target"]), at, float(row.get("confidence", 1)))
        found.setdefault((edge.source, edge.type, edge.target), edge)
        if edge.type == "contradicts" and _CLAIM.fullmatch(edge.source) and _CLAIM.fullmatch(edge.target):
            back = Statement(edge.target, edge.type, edge.source, at, edge.confidence)
            found.setdefault((back.source, back.type, back.target), back)
    return tuple(found.values()), dict(skipped)
