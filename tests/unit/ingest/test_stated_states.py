"""What documents state below their titles and in their closing lines decides their living state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.index.domain.living.graph import scratch
from services.index.domain.living.values import RevisionFacts, state_at
from services.ingest.domain import headers
from services.ingest.domain.normalize import normalize

START = datetime(2024, 1, 1, tzinfo=UTC)
DUE = datetime(2024, 9, 15, tzinfo=UTC)


def state(text: str, moment: datetime, source_id: str = "a.md", **given: str) -> str:
    """State and rule of a document that came in at the start of the year."""
    document = normalize(text.encode(), source_id=source_id, media_type="", charset="")
    metadata, _ = headers.merge_metadata(tuple(given.items()), dict(document.metadata))
    facts = RevisionFacts(
        document_id="a",
        revision=1,
        position=1,
        effective_at=START,
        recorded_at=START,
        source_id=source_id,
        title=document.title,
        metadata=dict(metadata),
    )
    span = state_at(scratch([facts])["a", 1], moment)
    assert span is not None
    return f"{span.verdict.state} {span.verdict.rule}"


@pytest.mark.parametrize(
    ("word", "expected"),
    [("rejected", "deprecated status_word"), ("**Final**", "active status_word"), ("", "active default")],
)
def test_a_status_in_a_table_counts_as_in_a_header(word: str, expected: str) -> None:
    text = f"# URIs for tags\n\n## Metadata\n\n|Tag|Value|\n|---|---|\n|Authors|Jo|\n|Status|{word}|\n\n## Change\n\nTags.\n"
    assert state(text, START) == expected


@pytest.mark.parametrize("source_id", ["a.md", "a.txt", "a.rst"])
@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("Next review: 2024-09-15", "review_date"),
        ("Review due: 15th September 2024", "review_date"),
        ("Next annual test scheduled: Sep 15, 2024", "review_date"),
        ("Expires: 2024-09-15", "expiry_date"),
        ("Valid until: 15 September 2024", "expiry_date"),
    ],
)
def test_a_document_is_stale_once_the_day_that_it_ends_with_has_come(source_id: str, line: str, rule: str) -> None:
    text = f"Report\n======\n\nAll was well.\n\nReview date: 2024-03-15\n{line}\n"
    assert state(text, DUE - timedelta(microseconds=1), source_id) == "active default"
    assert state(text, DUE, source_id) == f"stale {rule}"


def test_what_stands_in_front_decides() -> None:
    text = "---\nreview-due: 2030-01-01\nvalid-through: 2031-01-01\n---\n# T\n\nText.\n\nNext review: 2024-09-15\nExpires: 2024-09-15\n"
    assert state(text, DUE) == "active default"
    assert state(text, datetime(2030, 1, 1, tzinfo=UTC)) == "stale review_date"
