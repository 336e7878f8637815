"""Source ids, document ids, header limits, metadata."""

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.domain.headers import (
    MAX_METADATA_ENTRIES,
    Header,
    check_header,
    check_metadata,
    clean,
    document_id,
    merge_metadata,
    source_id,
    submission_id,
)
from services.ingest.domain.refusals import Refused

SECRET = bytes(range(32))


@pytest.mark.parametrize(
    "name", ["a.md", "handbook/leave", "https://x.org/a?b", "a\\b", "..a/b..", "日本/規則.txt", "x" * 1_024, " a "]
)
def test_usable_source_ids(name: str) -> None:
    assert source_id(name) == name


def test_composed_and_decomposed_names_are_one_document() -> None:
    decomposed = unicodedata.normalize("NFD", "café.md")
    assert decomposed != "café.md"
    assert source_id(decomposed) == "café.md"
    assert document_id(SECRET, source_id(decomposed)) == document_id(SECRET, "café.md")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "source_id is empty"),
        (" \t", "source_id is empty"),
        ("x" * 1_025, "source_id has 1025 characters: at most 1024"),
        ("a\x00b", "source_id has a NUL character at 1"),
        ("/etc/passwd", "is absolute"),
        ("C:\\a", "is absolute"),
        ("c:/a", "is absolute"),
        ("../a", "has a '..' in it"),
        ("a/../b", "has a '..' in it"),
        ("a/..", "has a '..' in it"),
        ("a\ud800b", "isn't valid Unicode at character 1"),
    ],
)
def test_unusable_source_ids(name: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        source_id(name)


def test_document_ids_are_keyed_by_the_crate() -> None:
    one = document_id(SECRET, "a.md")
    assert len(one) == 32
    assert one == document_id(SECRET, "a.md")
    assert one != document_id(SECRET, "b.md")
    assert one != document_id(bytes(32), "a.md")
    # Pinned: an id that changed would orphan every document there is.
    assert one == "c90c47cf45f91544309d2b15ef4cf738"


def test_submissions_are_told_apart_by_source_and_id() -> None:
    ids = {
        submission_id(SECRET, "ab", "c"),
        submission_id(SECRET, "a", "bc"),
        submission_id(SECRET, "a:b", "c"),
        submission_id(SECRET, "a", "b:c"),
        submission_id(bytes(32), "ab", "c"),
        submission_id(SECRET, "\ud800", "c"),
    }
    assert len(ids) == 6


def test_a_header_is_brought_to_its_one_form() -> None:
    given_at = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    header, notices = check_header(
        Header(source_id="e\N{COMBINING ACUTE ACCENT}", metadata=(("b", "2"), ("a", "1")), effective_at=given_at)
    )
    assert header.source_id == "é"
    assert header.metadata == (("a", "1"), ("b", "2"))
    assert header.effective_at == given_at
    assert header.effective_at is not None
    assert header.effective_at.tzinfo is UTC
    assert notices == ()


def test_what_tables_cannot_hold_is_replaced_and_noted() -> None:
    header, notices = check_header(Header(source_id="a", title="x\x00y\ud800", metadata=(("k", "\x00"),)))
    assert header.title == "x\ufffdy\ufffd"
    assert header.metadata == (("k", "\ufffd"),)
    assert notices == (
        "2 NUL or surrogate characters replaced in the given title",
        "1 NUL or surrogate character replaced in metadata 'k'",
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job_id": "Not A Job"}, "job_id 'Not A Job' isn't usable"),
        ({"media_type": "x" * 257}, "media_type has 257 characters: at most 256"),
        ({"charset": "utf-8\n"}, "charset holds an invisible or control character"),
        ({"uri": "x" * 2_049}, "uri has 2049 characters: at most 2048"),
        ({"source_domain": "a\x00"}, "source_domain holds an invisible"),
        ({"title": "x" * 1_025}, "title has 1025 characters: at most 1024"),
        ({"effective_at": datetime(2024, 1, 1)}, "effective_at names no time zone"),  # noqa: DTZ001  (the point)
        ({"effective_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9)))}, "between the years 1 and 9999"),
    ],
)
def test_fields_over_their_limits(changes: dict[str, object], message: str) -> None:
    with pytest.raises(Refused, match=message):
        check_header(replace(Header(source_id="a"), **changes))  # type: ignore[arg-type]  # the table mixes types


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("", "x", "metadata key '' is empty"),
        (" ", "x", "is empty or holds a NUL"),
        ("a\x00", "x", "is empty or holds a NUL"),
        ("k" * 257, "x", "has 257 characters: at most 256"),
        ("crate_id", "x", "metadata key 'crate_id' is reserved"),
        ("Document_ID", "x", "is reserved"),
        ("affidavit.tenant", "x", "is reserved"),
        ("big", "é" * 4_097, "metadata key 'big' has a value of 8194 bytes: at most 8192"),
    ],
)
def test_metadata_that_cannot_be_used_names_its_key(key: str, value: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        check_metadata([(key, value)])


def test_metadata_limits_are_inclusive() -> None:
    entries = [(f"{number:03}".ljust(256, "k"), "v" * 8_192) for number in range(64)]
    assert check_metadata(entries) == (tuple(entries), ())
    with pytest.raises(Refused, match="metadata has 65 entries: at most 64"):
        check_metadata([*entries, ("one-more", "")])


def test_the_caller_wins_over_the_document() -> None:
    merged, notices = merge_metadata((("status", "final"),), {"status": "draft", "author": "Zoë"})
    assert merged == (("author", "Zoë"), ("status", "final"))
    assert notices == ()


def test_what_the_document_says_beyond_the_limits_is_left_out_with_a_notice() -> None:
    given_entries = tuple((f"k{number:02}", "") for number in range(63))
    merged, notices = merge_metadata(
        given_entries, {"a": "1", "b": "2", "document_id": "x", "c": "v" * 9_000, "n\x00": "1"}
    )
    assert len(merged) == 64
    assert ("a", "1") in merged
    assert notices == (
        "the document's own metadata key 'b' was left out: it is beyond the 64 entries that are kept",
        "the document's own metadata key 'c' was left out: it has a value of 9000 bytes: at most 8192 are allowed",
        "the document's own metadata key 'document_id' was left out: it is reserved: it is set by the server",
        "the document's own metadata key 'n\ufffd' was left out: it is empty or holds a NUL or surrogate character",
    )


def test_the_documents_values_are_cleaned() -> None:
    assert merge_metadata((), {"k": "a\x00"}) == (
        (("k", "a\ufffd"),),
        ("1 NUL or surrogate character replaced in the document's metadata 'k'",),
    )


@given(st.text(st.characters(exclude_categories=())))
def test_cleaned_text_can_always_be_stored(text: str) -> None:
    cleaned, notices = clean("it", text)
    assert "\x00" not in cleaned.encode().decode()
    assert len(cleaned) == len(text)
    assert bool(notices) == (cleaned != text)


@given(st.text(min_size=1, max_size=40))
def test_source_ids_are_stable_under_repetition(text: str) -> None:
    try:
        once = source_id(text)
    except Refused:
        return
    assert source_id(once) == once


def test_what_living_states_rest_on_is_kept_before_other_names() -> None:
    found = {f"a{number:03}": "x" for number in range(100)} | {"supersedes": "b", "Status": "Final", "valid-from": "c"}
    merged, notices = merge_metadata((("caller", "1"),), found)
    assert len(merged) == MAX_METADATA_ENTRIES
    assert {"caller", "supersedes", "Status", "valid-from", "a000"} <= dict(merged).keys()
    assert len(notices) == 40
