"""AuditCrux on disk: its suites, each category with documents, relations, questions and expected states."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.audit import feed
from tests.audit.corpus import Corpus, CorpusDocument, CorpusQuery, read_rows, root

NAME = "auditcrux"
SUITES = ("v1", "v2", "v3", "audit-features")
SCALE = 550


@dataclass(frozen=True, slots=True)
class Expectation:
    """A state that a document has to be in at an instant."""

    document: str
    as_of: datetime
    state: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a category.

    Attributes:
        source_limit: Contexts to ask for.
        scenario: Name of a fragility scenario, for example "F1"; empty: none.
    """

    id: str
    text: str
    source_limit: int
    expected: tuple[str, ...]
    scenario: str = ""


@dataclass(frozen=True, slots=True)
class Category:
    """A category of a suite, which goes into a crate of its own.

    Attributes:
        now: The suite's clock.
        expectations: Those that the suite checks.
    """

    suite: str
    name: str
    corpus: Corpus
    now: datetime
    questions: tuple[Question, ...]
    expectations: tuple[Expectation, ...]

    @property
    def crate(self) -> str:
        """Name of its crate, without the audit's prefix."""
        return f"{self.suite}-{self.name.split('-')[0]}"


def load(suites: Iterable[str] = SUITES, *, scale: int = SCALE) -> tuple[Category, ...]:
    """Read suites.

    Args:
        suites: Names of folders below auditcrux.
        scale: Documents of the categories that come in sizes: so many of the first ones.

    Returns:
        Their categories, by name.
    """
    folders = (folder for suite in suites for folder in sorted((root() / NAME / suite).iterdir()) if folder.is_dir())
    return tuple(_category(folder, scale) for folder in folders)


def _category(folder: Path, scale: int) -> Category:
    plain = folder / "documents.jsonl"
    rows = itertools.islice(
        read_rows(plain if plain.is_file() else folder / "documents.jsonl.gz"), _limit(plain, scale)
    )
    relations, skipped = feed.statements(read_rows(folder / "relations.jsonl"))
    documents = tuple(_document(row) for row in rows if row.get("indexable", True))
    now = json.loads((folder / "thresholds.json").read_text(encoding="utf-8"))["clock"]["now"]
    queries: tuple[CorpusQuery, ...] = ()
    return Category(
        folder.parent.name,
        folder.name,
        Corpus(folder.name, documents, queries, relations, skipped=skipped),
        feed.instant(now),
        _questions(read_rows(folder / "queries.jsonl")),
        tuple(
            Expectation(row["document"], feed.instant(row["as_of"]), row["expected_state"])
            for row in read_rows(folder / "lifecycle.jsonl")
            if row["checked"]
        ),
    )


def _limit(plain: Path, scale: int) -> int | None:
    return None if plain.is_file() else scale


def _document(row: Mapping[str, Any]) -> CorpusDocument:
    return CorpusDocument(
        id=row["id"],
        media_type=row["mime"],
        title=row["title"],
        body=row["body"].encode(),
        effective_at=feed.instant(row["valid_from"]),
        source_domain=row["source_domain"],
        uri=row["url"],
    )


def _questions(rows: Iterable[Mapping[str, Any]]) -> tuple[Question, ...]:
    found: dict[str, Question] = {}
    for row in rows:
        question = Question(row["id"], row["query"], int(row["top_k"]), tuple(row["expected_ids"]))
        found.setdefault(question.text, replace(question, scenario=str(row.get("scenario") or "")))
    return tuple(found.values())
