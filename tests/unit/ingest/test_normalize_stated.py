"""What documents state about themselves below their titles and in their closing lines."""

import pytest

from tests.unit.ingest.normalized_spans import read, shape

TABLE = """# URIs for tags

## Metadata

|Tag |Value |
|---- | ---------------- |
|Proposal |[2025-03-20](https://example.org/{x}.md)|
|Authors|[H. Andrews](https://example.org/a_(b)), **L. Mitchell**|
|Status | `rejected` |
|Superseded by| other.md |

## Introduction

Tags are connections.
"""


def test_a_table_below_the_title_is_metadata_and_stays_text() -> None:
    document = read(TABLE, "a.md")
    assert dict(document.metadata) == {
        "Proposal": "2025-03-20",
        "Authors": "H. Andrews, L. Mitchell",
        "Status": "rejected",
        "Superseded by": "other.md",
    }
    assert [kind for kind, _ in shape(document)] == ["heading", "heading", "table", "heading", "paragraph"]


def test_what_stands_in_front_goes_first() -> None:
    document = read(f"---\nstatus: final\n---\n{TABLE}\nNext review: 2024-09-15\n", "a.md")
    assert dict(document.metadata)["status"] == "final"
    assert "Status" not in dict(document.metadata)
    assert dict(document.metadata)["next-review"] == "2024-09-15"


@pytest.mark.parametrize(
    "text",
    [
        TABLE.replace("## Metadata\n", "Some words.\n"),
        TABLE.replace("|Status |", "|Stand |").replace("|Superseded by|", "|Other one|"),
        "# Prices\n\n| Status | Version | Price |\n|---|---|---|\n| new | 2 | 3 |\n",
        "# Lines\n\n| Item | Colour |\n|---|---|\n| Title | red |\n| Roof | green |\n",
        "# Empty\n\n| a | b |\n|---|---|\n",
    ],
)
def test_other_tables_are_content(text: str) -> None:
    assert read(text, "a.md").metadata == ()


@pytest.mark.parametrize(
    ("closing", "metadata"),
    [
        ("Approved by: Risk\nReview date: 2024-03-15\nNext review: 2024-06-15", {"next-review": "2024-06-15"}),
        ("Next annual test scheduled: 2025-02-01", {"next-review": "2025-02-01"}),
        ("**Next review:** 15 September 2024.", {"next-review": "15 September 2024"}),
        ("- Review due: 2024-09-15\r\n- Owner: Ops\r\n", {"review-due": "2024-09-15"}),
        ("Expires on: Sep 15, 2024\n\n\n", {"expires": "Sep 15, 2024"}),
        ("Valid until: 2025-12-31", {"valid-until": "2025-12-31"}),
        ("Next review: Q2 2024", {}),
        ("Effective: 2024-01-01", {}),
        ("Review date: 2024-03-15", {}),
        ("Next review: 2024-06-15\n\nThat is all.", {}),
        ("The next review: 2024-06-15 is far away, they said.", {}),
        ("Next meeting: 2024-06-15", {}),
    ],
)
@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.rst"])
def test_closing_lines_state_when_a_document_falls_due(name: str, closing: str, metadata: dict[str, str]) -> None:
    document = read(f"Report\n======\n\nAll was well with the four vendors.\n\n{closing}", name)
    assert dict(document.metadata) == metadata


def test_of_several_dates_the_last_line_counts() -> None:
    document = read("# R\n\nText.\n\nExpires: 2030-01-01\nNext review: 2024-06-15\nNext audit: 2024-01-01\n", "a.md")
    assert dict(document.metadata) == {"next-review": "2024-01-01", "expires": "2030-01-01"}
