"""What documents state about themselves below their titles and in their closing lines."""

import pytest

from services.ingest.domain import effect, headers
from services.ingest.domain.normalize import BlockKind
from tests.unit.ingest.normalized_spans import bytes_of, read, shape, texts

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


def table(*rows: str, head: str = "Field | Value", before: str = "# Rules of travel\n\n") -> str:
    lines = "\n".join(f"| {row} |" for row in (head, "---|---", *rows))
    return f"{before}{lines}\n\nRules follow.\n"


def test_a_table_below_the_title_is_metadata_and_stays_text() -> None:
    document = read(TABLE, "a.md")
    assert dict(document.metadata) == {
        "Proposal": "2025-03-20",
        "Authors": "H. Andrews, L. Mitchell",
        "Status": "rejected",
        "Superseded by": "other.md",
    }
    assert [kind for kind, _ in shape(document)] == ["heading", "heading", "table", "heading", "paragraph"]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_make_no_difference_and_places_stay_exact(end: str) -> None:
    body = TABLE.replace("\n", end).encode() + f"{end}Next review: 2024-09-15{end}{end}".encode()
    document = read(body, "a.md")
    assert dict(document.metadata)["Status"] == "rejected"
    assert dict(document.metadata)["next-review"] == "2024-09-15"
    first, last = bytes_of(body, document, "|Status | `rejected` |")
    assert body[first:last] == b"|Status | `rejected` |"
    assert document.text.rstrip().endswith("Next review: 2024-09-15")


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        (table("Author(s) | A. Ray", "Status | final"), {"Authors": "A. Ray", "Status": "final"}),
        (table("**Status:** | _rejected_", "*Version* | **`2`**", head=" | "), {"Status": "rejected", "Version": "2"}),
        (table("Version | 2", "snake_name | a_b_c", head="Status | Draft"), {"Status": "Draft", "Version": "2", "snake_name": "a_b_c"}),
        (table("Status | final", "Owner", "Date | 2024-01-31 | x", "Version | 3"), {"Status": "final", "Version": "3"}),
        (table("Status | final<br>since May", "Owner | a \\| b"), {"Status": "final since May", "Owner": "a | b"}),
        (table("Status | final", "Stand | ", "ID | 7", "Prüfer | Jo"), {"Status": "final", "ID": "7", "Prüfer": "Jo"}),
        (table("Status | final", "Owner | Ops", "12 | twelve"), {"Status": "final", "Owner": "Ops"}),
        (table("Status | final", "Owner | Ops", before="<!-- lint: off -->\n\n# T\n\n"), {"Status": "final", "Owner": "Ops"}),
        (table("Status | final", "Owner | Ops", before=""), {"Status": "final", "Owner": "Ops"}),
        (table("Status | final", "Reach | all", before="# T\n\n## 1. Document control\n\n"), {"Status": "final", "Reach": "all"}),
        (table("Status | final", "Reach | all", before="# T\n\n## About this policy\n\n"), {"Status": "final", "Reach": "all"}),
    ],
)  # fmt: skip
def test_tables_of_fields_have_many_shapes(text: str, metadata: dict[str, str]) -> None:
    assert dict(read(text, "a.md").metadata) == metadata


@pytest.mark.parametrize(
    "text",
    [
        TABLE.replace("## Metadata\n", "Some words.\n"),
        TABLE.replace("## Metadata", "## Terms"),
        table("Status | final", "Reach | all"),
        table("id | its number", "status | draft or final", head="Field | Description"),
        table("id | its number", "status | draft or final", head="Type | Description"),
        table("Status | new", "Version | 2", head="Ferry | Price"),
        table("Title | red", "Roof | green", head="Item | Colour"),
        table("new | 2 | 3", head="Status | Version | Price"),
        table("Status | final", "Owner | Ops", before=f"<!-- {'x' * 5_000} -->\n\n"),
        table(*(["Status | final", "Owner | Ops"] * 1_000)),
        "# Empty\n\n| a | b |\n|---|---|\n",
        "# None\n\nText.\n",
        "# None\n",
    ],
)
def test_other_tables_are_content(text: str) -> None:
    assert read(text, "a.md").metadata == ()


def page(*rows: str, before: str = "<h1>Rules</h1>", caption: str = "") -> str:
    cells = "".join(f"<tr><th>{name}<td>{value}" for name, _, value in (row.partition("|") for row in rows))
    return f"{before}<table>{caption}{cells}</table><h2>Scope</h2><p>All staff.</p>"


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        (page("Status:|<b>Rejected</b>", "Author(s)|<p>Jo<p>Al"), {"Status": "Rejected", "Authors": "Jo Al"}),
        (page("Field|Value", "Status|a | b<br>c", "Version|2"), {"Status": "a | b c", "Version": "2"}),
        (page("Status|final", "Date|today", caption="<caption>Control</caption>"), {"Status": "final", "Date": "today"}),
        (page("Status|final", "Reach|all", before="<h1>T</h1><h2>About this page</h2>"), {"Status": "final", "Reach": "all"}),
        (page("Status|final", "Date|today", before='<meta name="status" content="draft">'), {"status": "draft", "Date": "today"}),
        (page("Status|final", "Date|today", before="<p>Some words.</p>"), {}),
        (page("Status|final", "Date|today", before="<h1>T</h1><h2>Terms</h2>"), {}),
        (page("Field|Description", "Status|final", "Date|today"), {}),
        (page("Status|final<td>more", "Date|today<td>more"), {}),
        (page("Ferry|Price", "Status|final"), {}),
        ("<table><caption>Nothing</caption></table><p>a", {}),
    ],
)  # fmt: skip
def test_tables_of_fields_on_pages(text: str, metadata: dict[str, str]) -> None:
    assert dict(read(text, "a.html").metadata) == metadata


@pytest.mark.parametrize(
    ("front", "key"),
    [
        ("status: final", "Status"),
        ("lifecycle: final", "Status"),
        ("valid_until: 2030-01-01", "expires"),
        ("Review due: 2030-01-01", "next-review"),
        ("review-interval: 1 year", "next-review"),
    ],
)
def test_what_stands_in_front_goes_first(front: str, key: str) -> None:
    closing = "\nNext review: 2024-09-15\nExpires: 2024-09-16\n"
    document = read(f"---\n{front}\n---\n{TABLE}{closing}", "a.md")
    more = {"Status": "rejected", "next-review": "2024-09-15", "expires": "2024-09-16"}
    found = dict(document.metadata)
    assert {name: found.get(name) for name in more} == more | {key: None}
    name, _, value = front.partition(": ")
    assert found[name] == value


def test_a_table_goes_before_the_closing_lines() -> None:
    text = table("Status | final", "Valid until | 2030-01-01") + "\nExpires: 2024-09-16\n"
    assert dict(read(text, "a.md").metadata) == {"Status": "final", "Valid until": "2030-01-01"}


def test_a_table_states_when_a_document_comes_into_force_and_its_title() -> None:
    document = read(table("Title | Travel", "Effective from | 2024-02-01"), "a.md")
    moment, notices = effect.stated(document.metadata)
    assert (document.title, notices) == ("Travel", ())
    assert moment is not None
    assert moment.isoformat() == "2024-02-01T00:00:00+00:00"


def test_reserved_names_of_a_table_are_left_out() -> None:
    document = read(table("Status | final", "Version | 2", "source_id | other.md"), "a.md")
    kept, notices = headers.merge_metadata((), dict(document.metadata))
    assert dict(kept) == {"Status": "final", "Version": "2"}
    assert len(notices) == 1


CLOSINGS = [
    ("Approved by: Risk\nReview date: 2024-03-15\nNext review: 2024-06-15", {"next-review": "2024-06-15"}),
    ("Next annual test scheduled: 2025-02-01", {"next-review": "2025-02-01"}),
    ("Next review: 15 September 2024.", {"next-review": "2024-09-15"}),
    ("**Next review:** 15th September 2024", {"next-review": "2024-09-15"}),
    ("**Next review**: 2024-09-15\\\n*Owner: Ops*", {"next-review": "2024-09-15"}),
    ("_Next review: 2024-09-15_<br>", {"next-review": "2024-09-15"}),
    ("Next\u00a0review:\u00a02024-09-15 \u00a0\n \t\n", {"next-review": "2024-09-15"}),
    ("- Review due: 2024-09-15\r\n- Owner: Ops\r\n", {"next-review": "2024-09-15"}),
    ("- Review due: 2024-09-15\r- Owner: Ops\r", {"next-review": "2024-09-15"}),
    ("Review by: 2024-09-15", {"next-review": "2024-09-15"}),
    ("To be reviewed by: 2024-09-15", {"next-review": "2024-09-15"}),
    ("Expires on: Sep 15, 2024\n\n\n", {"expires": "2024-09-15"}),
    ("Expiry date: 2025-12-31", {"expires": "2025-12-31"}),
    ("Valid until: 2025-12-31", {"expires": "2025-12-31"}),
    ("Expires: 2030-01-01\nNext audit: 2025-01-01\nNext fire drill: 2024-01-01",
     {"next-review": "2024-01-01", "expires": "2030-01-01"}),
    ("Next review: 2025-03-01\nNext audit: 2024-01-01", {"next-review": "2025-03-01"}),
    ("Next review: Q2 2024", {}),
    ("Next review: T0+30d", {}),
    ("Next review: 2024-13-45", {}),
    ("Next review: September 2024", {}),
    ("Expires: 2024-02-30", {}),
    ("Effective: 2024-01-01", {}),
    ("Review date: 2024-03-15", {}),
    ("Last review: 2024-03-15\nReviewed: 2024-03-15", {}),
    ("Status: rejected\nAuthor: A. Ray\nSupersedes: b.md", {}),
    ("Next review: 2024-06-15\n\nThat is all.", {}),
    ("Next review: 2024-06-15\n\nOwner: Ops", {}),
    ("The next review: 2024-06-15 is far away, they said.", {}),
    ("Next meeting: 2024-06-15", {}),
    ("Expires: 2024-06-15\nExpires: 2025-06-15", {}),
    ("Item: a\nExpires: 2024-06-15\n\nItem: b\nExpires: 2025-06-15", {}),
    ("Item: a\nExpires: 2025-06-15\n\nItem: b\nExpires: 2025-06-15", {"expires": "2025-06-15"}),
    ("".join(f"Anna: line {number}\n" for number in range(9)) + "Expires: 2025-06-15", {"expires": "2025-06-15"}),
    ("".join(f"Anna: line {number}\n" for number in range(10)) + "Expires: 2025-06-15", {}),
]  # fmt: skip


@pytest.mark.parametrize(("closing", "metadata"), CLOSINGS)
@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.rst"])
def test_closing_lines_state_when_a_document_falls_due(name: str, closing: str, metadata: dict[str, str]) -> None:
    document = read(f"Report\n======\n\nAll was well with the four vendors.\n\n{closing}", name)
    assert dict(document.metadata) == metadata


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.rst"])
def test_a_document_may_hold_its_closing_lines_alone(name: str) -> None:
    assert dict(read("\n\nNext review: 2024-09-15\n", name).metadata) == {"next-review": "2024-09-15"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "# T\n\n> They wrote.\n>\n> Next review: 2024-09-15\n"),
        ("a.md", "# T\n\nFor example:\n\n    Expires: 2024-09-15\n"),
        ("a.md", "# T\n\n```\nExpires: 2024-09-15\n"),
        ("a.md", "# T\n\n<!--\nExpires: 2024-09-15\n-->\n"),
        ("a.md", "# T\n\n| Name | Day |\n|---|---|\n| Expires: | 2024-09-15 |\n"),
        ("a.md", f"# T\n\nLong{' long' * 2_000} line.\nNext review: Q2 {'x' * 4_000}\n"),
        ("a.rst", "Report\n======\n\n.. code::\n\n   Expires: 2024-09-15\n"),
        ("a.rst", "Report\n======\n\nText.\n\n..\n   Expires: 2024-09-15\n"),
        ("a.rst", ".. a comment alone\n"),
        ("a.json", '{"a": "Text.\\n\\nExpires: 2024-09-15"}'),
    ],
)
def test_quotes_code_and_comments_close_no_document(name: str, text: str) -> None:
    document = read(text, name)
    assert not {"expires", "next-review"} & {key.lower() for key, _ in document.metadata}


@pytest.mark.parametrize("name", ["a.md", "a.txt"])
def test_long_lines_close_no_document(name: str) -> None:
    lines = ["Title", "", "Next review: 2024-09-15", f"Owner:{' ' * 400}Ops"]
    assert read("\n".join(lines), name).metadata == ()
    assert dict(read("\n".join([*lines, lines[2]]), name).metadata) == {"next-review": "2024-09-15"}


def test_a_closing_field_list_is_read_below_sections() -> None:
    text = "Report\n======\n\nPart\n----\n\nText.\n\n:Next review: 2024-09-15\n:Owner: Ops\n"
    assert dict(read(text, "a.rst").metadata) == {"next-review": "2024-09-15"}
    # Right below the title it is the document's field list.
    assert dict(read("Report\n======\n\n:Next review: 2024-09-15\n", "a.rst").metadata) == {"Next review": "2024-09-15"}


def test_what_a_chat_says_last_is_said_by_somebody() -> None:
    chat = "\n".join(f"[2024-01-0{day}, 10:00] Anna: line {day}" for day in range(1, 9))
    document = read(f"{chat}\nExpires: 2025-06-15\n", "a.txt")
    assert document.form == "informal"
    assert "expires" not in dict(document.metadata)


def test_the_table_is_kept_as_one_block() -> None:
    assert len(texts(read(TABLE, "a.md"), BlockKind.TABLE)) == 1
