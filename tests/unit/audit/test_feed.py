"""What a node is told about a folder."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.audit import feed
from tests.audit.feed import Statement

ROW = {
    "id": "leave@2",
    "path": "documents/leave-2.md",
    "mime": "text/markdown",
    "title": "Leave",
    "family": "leave",
    "version": 2,
    "created": "2020-01-01",
    "effective": "2020-03-01",
    "valid_from": "2020-02-01",
    "valid_to": "2021-01-01",
    "withdrawn_on": None,
    "status_truth": "superseded",
    "status_accept": ["superseded"],
    "status_source": "replaced",
    "superseded_on": "2021-01-01",
    "review_due": "2020-09-01",
}


def test_the_verdict_is_never_fed() -> None:
    fed = feed.metadata(ROW)
    assert fed == {
        "family": "leave",
        "version": "2",
        "created": "2020-01-01",
        "effective": "2020-03-01",
        "valid_from": "2020-02-01",
    }
    assert feed.SECRET & set(ROW) <= set(feed.left_out([ROW]))
    assert "review_due" in feed.left_out([ROW])


def test_further_fields_are_fed_when_asked_for() -> None:
    assert feed.metadata(ROW, ["review_due"])["review_due"] == "2020-09-01"
    assert "review_due" not in feed.left_out([ROW], ["review_due"])


@pytest.mark.parametrize("name", sorted(feed.SECRET))
def test_the_verdict_cannot_be_asked_for(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        feed.metadata(ROW, [name])


def test_a_document_is_effective_at_the_midnight_of_its_best_date() -> None:
    assert feed.effective_at(ROW) == datetime(2020, 3, 1, tzinfo=UTC)
    assert feed.effective_at({"created": "2020-01-01", "valid_from": "2020-02-01"}) == datetime(2020, 2, 1, tzinfo=UTC)
    assert feed.effective_at({"created": "2020-01-01", "effective": None}) == datetime(2020, 1, 1, tzinfo=UTC)
    assert feed.effective_at({}) is None


def test_an_instant_is_read_in_utc() -> None:
    assert feed.instant("2026-03-11T00:00:00.000Z") == datetime(2026, 3, 11, tzinfo=UTC)
    east = datetime(2026, 3, 11, 2, tzinfo=timezone(timedelta(hours=2)))
    assert feed.instant("2026-03-11T02:00:00+02:00") == east


def test_what_is_no_date_is_shown() -> None:
    with pytest.raises(ValueError, match=r"'soon' is no date: write it as YYYY-MM-DD"):
        feed.instant("soon")


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["documents/a.md", "documents/b.md"], ["a.md", "b.md"]),
        (["documents/x/a.md", "documents/y/a.md"], ["x/a.md", "y/a.md"]),
        (["documents/a.md", "documents/y/a.md"], ["a.md", "y/a.md"]),
        (["a.md", "documents/b.md"], ["a.md", "documents/b.md"]),
        (["documents/a.md"], ["a.md"]),
        ([], []),
    ],
)
def test_documents_are_named_as_in_their_owners_folder(paths: list[str], names: list[str]) -> None:
    rows = [{"id": f"d{number}", "path": path} for number, path in enumerate(paths)]
    assert list(feed.source_ids(rows).values()) == names


@pytest.mark.parametrize("rows", [[("a", "x"), ("a", "y")], [("a", "x"), ("b", "x")]])
def test_two_documents_with_one_name_are_refused(rows: list[tuple[str, str]]) -> None:
    with pytest.raises(ValueError, match="twice: give each document its own"):
        feed.source_ids([{"id": name, "path": path} for name, path in rows])


def test_edges_keep_their_own_date_and_are_stated_once() -> None:
    rows: list[dict[str, Any]] = [
        {"source": "b", "type": "supersedes", "target": "a", "effective": "2021-01-01"},
        {"source": "b", "type": "supersedes", "target": "a"},
        {"source": "b", "type": "supports", "target": "a"},
        {"source": "c", "type": "contradicts", "target": "a", "confidence": 0.5},
    ]
    edges, skipped = feed.statements(rows)
    assert edges == (
        Statement("b", "supersedes", "a", datetime(2021, 1, 1, tzinfo=UTC)),
        Statement("c", "contradicts", "a", None, 0.5),
    )
    assert skipped == {"supports": 1}


def test_claims_of_scifact_contradict_each_other_both_ways() -> None:
    edges, _ = feed.statements(
        [
            {"source": "claim-1", "type": "contradicts", "target": "claim-2"},
            {"source": "abstract-9", "type": "contradicts", "target": "claim-2"},
        ]
    )
    assert [(edge.source, edge.target) for edge in edges] == [
        ("claim-1", "claim-2"),
        ("claim-2", "claim-1"),
        ("abstract-9", "claim-2"),
    ]
