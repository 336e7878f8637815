"""Corpora on disk: documents, relations, queries, and what is expected of them."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.audit import feed, truth
from tests.audit.feed import Statement

FOLDERS = ("peps", "github-policies", "openapi", "gds-manuals", "scifact-claims", "support-dates")
SCIFACT = "scifact"


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One document to put in.

    Attributes:
        id: Name in the corpus.
        source_id: Name in the crate; empty: the id.
        effective_at: None: when it is recorded.
        accept: States that count as right at the corpus' date; empty: not scored. Never fed.
        basis: What shows the state. Never fed.
        truth: The state; empty when there is none. Never fed.
        ended_at: When it went out of force; None: never, or not known. Never fed.
    """

    id: str
    media_type: str
    title: str
    body: bytes
    source_id: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    effective_at: datetime | None = None
    source_domain: str = ""
    uri: str = ""
    accept: tuple[str, ...] = ()
    basis: str = ""
    truth: str = ""
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CorpusQuery:
    """One question and what is expected.

    Attributes:
        relevance: Gain by document id.
        answer: Text that must stand in a cited span; empty when not given.
        split: "train", "test" or "".
        forbidden: Documents that must not be cited as the answer.
        match: "all" when every expected document is wanted, else "any".
        as_of: Instant that the question is about; None: now.
        expected_state: State with which the expected document has to be shown; empty: any.
    """

    id: str
    text: str
    relevance: dict[str, float]
    kind: str
    answer: str = ""
    split: str = ""
    forbidden: tuple[str, ...] = ()
    match: str = "all"
    as_of: datetime | None = None
    expected_state: str = ""

    @property
    def expected(self) -> tuple[str, ...]:
        """Ids of the expected documents, in the corpus' order."""
        return tuple(self.relevance)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder with its documents and queries.

    Attributes:
        truth_as_of: Instant that the states hold for; None: undated.
        not_fed: Fields of documents.jsonl that the node isn't told.
        skipped: Entries of relations.jsonl that aren't declared, by type.
    """

    name: str
    documents: tuple[CorpusDocument, ...]
    queries: tuple[CorpusQuery, ...]
    relations: tuple[Statement, ...] = ()
    truth_as_of: datetime | None = None
    not_fed: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)


def root() -> Path:
    """Folder of all corpora.

    Raises:
        FileNotFoundError: When it isn't there; the message says how to point to it.
    """
    folder = Path(os.environ.get("AFFIDAVIT_CORPORA", "../shared/corpora"))
    if not folder.is_dir():
        raise FileNotFoundError(f"no corpora in {folder}: set AFFIDAVIT_CORPORA to their folder")
    return folder


def load(name: str, extra: Iterable[str] = ()) -> Corpus:
    """Read a corpus.

    Args:
        name: One of FOLDERS, "scifact", another folder beside them, or the path of any folder of the same form.
        extra: Fields of documents.jsonl to feed beside those that always are.

    Returns:
        The corpus.

    Raises:
        FileNotFoundError: When there is no such folder.
    """
    if name == SCIFACT:
        return _scifact(root() / "retrieval" / "scifact")
    folder = Path(name) if (Path(name) / "documents.jsonl").is_file() else root() / name
    if not (folder / "documents.jsonl").is_file():
        raise FileNotFoundError(f"{folder} has no documents.jsonl: name one of {', '.join(FOLDERS)} or a folder's path")
    rows = tuple(read_rows(folder / "documents.jsonl"))
    names = feed.source_ids(rows)
    relations, skipped = feed.statements(read_rows(folder / "relations.jsonl"))
    replaced = truth.replaced(relations)
    return Corpus(
        folder.resolve().name,
        tuple(_document(folder, row, names[str(row["id"])], tuple(extra), replaced) for row in rows),
        tuple(_query(row) for row in read_rows(folder / "queries.jsonl")),
        relations,
        _truth_as_of(folder / "manifest.json"),
        feed.left_out(rows, extra),
        skipped,
    )


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Entries of a .jsonl file, or of one in a .gz; none when it isn't there.

    Raises:
        ValueError: When a line is no JSON; the message names it.
    """
    if not path.is_file():
        return
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise ValueError(f"{path}, line {number} is no JSON: {error}") from error


def _document(
    folder: Path, row: Mapping[str, Any], source_id: str, extra: tuple[str, ...], replaced: Mapping[str, datetime]
) -> CorpusDocument:
    return CorpusDocument(
        id=str(row["id"]),
        media_type=row["mime"],
        title=row.get("title") or "",
        body=(folder / row["path"]).read_bytes(),
        source_id=source_id,
        metadata=feed.metadata(row, extra),
        effective_at=feed.effective_at(row),
        accept=tuple(row.get("status_accept") or ()),
        basis=str(row.get("status_basis") or ""),
        truth=str(row.get("status_truth") or ""),
        ended_at=truth.ended_at(row, replaced),
    )


def _query(row: Mapping[str, Any]) -> CorpusQuery:
    return CorpusQuery(
        row["id"],
        row["query"],
        dict.fromkeys(row["expected"], 1.0),
        row["kind"],
        str(row.get("answer") or ""),
        forbidden=tuple(row.get("forbidden") or ()),
        match=str(row.get("match") or "all"),
        as_of=feed.instant(str(row["as_of"])) if row.get("as_of") else None,
        expected_state=str(row.get("expected_state") or ""),
    )


def _truth_as_of(path: Path) -> datetime | None:
    stated = json.loads(path.read_text(encoding="utf-8")).get("truth_as_of") if path.is_file() else None
    return feed.instant(str(stated)) if stated else None


def _scifact(folder: Path) -> Corpus:
    relevance: dict[str, dict[str, float]] = {}
    for split in ("train", "test"):
        for line in (folder / "qrels" / f"{split}.tsv").read_text().splitlines()[1:]:
            query, document, gain = line.split("\t")[:3]
            relevance.setdefault(query, {})[document] = float(gain)
    documents = tuple(
        CorpusDocument(row["_id"], "text/plain", row["title"], row["text"].encode())
        for row in read_rows(folder / "corpus.jsonl")
    )
    queries = tuple(
        CorpusQuery(row["_id"], row["text"], relevance[row["_id"]], "claim", split=row["split"])
        for row in read_rows(folder / "queries.jsonl")
        if row["_id"] in relevance
    )
    return Corpus(SCIFACT, documents, queries)
