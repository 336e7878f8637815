"""Folders and suites on disk."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.audit import auditcrux, truth
from tests.audit.corpus import load


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    common = {"mime": "text/plain", "created": "2020-01-01"}
    rows: list[dict[str, Any]] = [
        {"id": "a@1", "path": "documents/a-1.txt", "title": "A\u2028A", "valid_to": "2021-01-01", **common},
        {"id": "a@2", "path": "documents/a-2.txt", "title": None, "status_accept": ["active"], **common},
    ]
    write(tmp_path / "documents.jsonl", rows)
    for row in rows:
        path = tmp_path / row["path"]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"text")
    query = {"id": "q", "query": "?", "expected": ["a@1"], "kind": "point-in-time", "as_of": "2020-06-01"}
    write(tmp_path / "queries.jsonl", [query])
    (tmp_path / "manifest.json").write_text('{"truth_as_of": "2022-01-01"}')
    return tmp_path


def test_any_folder_is_read_and_needs_no_relations(folder: Path) -> None:
    corpus = load(str(folder))
    assert [document.source_id for document in corpus.documents] == ["a-1.txt", "a-2.txt"]
    assert corpus.documents[0].ended_at == datetime(2021, 1, 1, tzinfo=UTC)
    assert corpus.documents[0].metadata == {"created": "2020-01-01"}
    assert corpus.relations == ()
    assert corpus.truth_as_of == datetime(2022, 1, 1, tzinfo=UTC)
    assert corpus.queries[0].as_of == datetime(2020, 6, 1, tzinfo=UTC)
    assert corpus.not_fed == ("status_accept", "valid_to")


def test_a_folder_that_isnt_there_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFFIDAVIT_CORPORA", str(folder))
    with pytest.raises(FileNotFoundError, match=r"nothing has no documents.jsonl: name one of"):
        load("nothing")


def test_a_broken_line_is_named(folder: Path) -> None:
    (folder / "queries.jsonl").write_text((folder / "queries.jsonl").read_text() + "{")
    with pytest.raises(ValueError, match=r"queries.jsonl, line 2 is no JSON"):
        load(str(folder))


def test_what_ends_a_document() -> None:
    row = {"id": "a", "status_history": [["2020-01-01", "Draft"], ["2020-05-01", "Rejected"]]}
    assert truth.ended_at(row, {}) == datetime(2020, 5, 1, tzinfo=UTC)
    earlier = datetime(2020, 2, 1, tzinfo=UTC)
    assert truth.ended_at(row, {"a": earlier}) == earlier
    assert truth.ended_at({"id": "a", "status_history": [["2020-01-01", "Final"]]}, {}) is None


def test_in_force_is_closed_at_its_start_and_open_at_its_end() -> None:
    start, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)

    def holds(as_of: datetime | None) -> bool:
        return truth.in_force(state="superseded", effective_at=start, ended=end, as_of=as_of)

    assert holds(start)
    assert not holds(end)
    assert not holds(None)
    assert truth.in_force(state="stale", effective_at=None, ended=None, as_of=None)


def test_a_suite_is_read_by_category(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFFIDAVIT_CORPORA", str(tmp_path))
    category = tmp_path / "auditcrux" / "v1" / "cat3-scale"
    document = {"mime": "text/plain", "title": "t", "body": "b", "source_domain": "x", "url": "https://x.test/"}
    rows = [{"id": f"d{number}", "valid_from": "2025-01-01T00:00:00.000Z", **document} for number in range(5)]
    write(category / "documents.jsonl.gz", rows)
    question = {"query": "?", "top_k": 5, "expected_ids": ["d1"]}
    write(category / "queries.jsonl", [{"id": "q1", **question}, {"id": "q2", **question}])
    state = {"document": "d1", "as_of": "2025-02-01T00:00:00.000Z", "expected_state": "active"}
    write(category / "lifecycle.jsonl", [{"checked": True, **state}, {"checked": False, **state}])
    (category / "thresholds.json").write_text('{"clock": {"now": "2026-03-11T00:00:00.000Z"}}')
    (found,) = auditcrux.load(["v1"], scale=2)
    assert [document.id for document in found.corpus.documents] == ["d0", "d1"]
    assert [question.id for question in found.questions] == ["q1"]
    assert len(found.expectations) == 1
    assert found.crate == "v1-cat3"
