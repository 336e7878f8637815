"""Corpora on disk: documents, queries and what is expected of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDERS = ("peps", "github-policies", "openapi", "gds-manuals", "scifact-claims", "support-dates")
SCIFACT = "scifact"


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One document to put in."""

    id: str
    media_type: str
    title: str
    body: bytes


@dataclass(frozen=True, slots=True)
class CorpusQuery:
    """One question and what is expected.

    Attributes:
        relevance: Gain by document id.
        answer: Text that must stand in a cited span; empty when not given.
        split: "train", "test" or "".
    """

    id: str
    text: str
    relevance: dict[str, float]
    kind: str
    answer: str = ""
    split: str = ""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder with its documents and queries."""

    name: str
    documents: tuple[CorpusDocument, ...]
    queries: tuple[CorpusQuery, ...]


def root() -> Path:
    """Folder of all corpora.

    Raises:
        FileNotFoundError: When it isn't there; the message says how to point to it.
    """
    folder = Path(os.environ.get("AFFIDAVIT_CORPORA", "../shared/corpora"))
    if not folder.is_dir():
        raise FileNotFoundError(f"no corpora in {folder}: set AFFIDAVIT_CORPORA to their folder")
    return folder


def load(name: str) -> Corpus:
    """Read a corpus.

    Args:
        name: One of FOLDERS, or "scifact".

    Returns:
        The corpus.
    """
    if name == SCIFACT:
        return _scifact(root() / "retrieval" / "scifact")
    folder = root() / name
    documents = tuple(
        CorpusDocument(row["id"], row["mime"], row.get("title") or "", (folder / row["path"]).read_bytes())
        for row in _rows(folder / "documents.jsonl")
    )
    queries = tuple(
        CorpusQuery(
            row["id"], row["query"], dict.fromkeys(row["expected"], 1.0), row["kind"], str(row.get("answer") or "")
        )
        for row in _rows(folder / "queries.jsonl")
    )
    return Corpus(name, documents, queries)


def _scifact(folder: Path) -> Corpus:
    relevance: dict[str, dict[str, float]] = {}
    for split in ("train", "test"):
        for line in (folder / "qrels" / f"{split}.tsv").read_text().splitlines()[1:]:
            query, document, gain = line.split("\t")[:3]
            relevance.setdefault(query, {})[document] = float(gain)
    documents = tuple(
        CorpusDocument(row["_id"], "text/plain", row["title"], row["text"].encode())
        for row in _rows(folder / "corpus.jsonl")
    )
    queries = tuple(
        CorpusQuery(row["_id"], row["text"], relevance[row["_id"]], "claim", split=row["split"])
        for row in _rows(folder / "queries.jsonl")
        if row["_id"] in relevance
    )
    return Corpus(SCIFACT, documents, queries)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)
