"""What a put, a retire or an erase comes to."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.ingest.domain import documents
from services.ingest.domain.chunking import ChunkSettings, settings_digest
from services.ingest.domain.documents import (
    Form,
    Held,
    Manifest,
    Pack,
    Prepared,
    PutDecision,
    PutOutcome,
    Status,
    content_digest,
    decide_erase,
    decide_put,
    decide_retire,
    fact_key,
    make_manifest,
    submission_of,
)
from services.ingest.domain.headers import Header
from services.ingest.domain.refusals import Unknown

WIDE, NARROW = ChunkSettings(1_000, 200), ChunkSettings(500, 100)
A, B = b"a" * 32, b"b" * 32
HELD = Held(
    document_id="d" * 32,
    revision=3,
    status=Status.SEARCHABLE,
    sequence=70,
    position=60,
    content_digest=A,
    chunking=WIDE,
    source=Pack(b"p" * 32, 10),
)
LIVE = [Status.PENDING, Status.SEARCHABLE, Status.EMPTY]
ENDED = [Status.RETIRED, Status.ERASED]


def test_an_unknown_document_is_created() -> None:
    assert decide_put(None, digest=A, chunking=WIDE) == PutDecision(
        outcome=PutOutcome.CREATED, revision=1, expected=0, settings_digest=settings_digest(WIDE, after=0)
    )


@pytest.mark.parametrize("status", LIVE)
def test_the_same_content_with_the_same_settings_changes_nothing(status: Status) -> None:
    decision = decide_put(replace(HELD, status=status), digest=A, chunking=WIDE)
    assert decision == PutDecision(outcome=PutOutcome.UNCHANGED, revision=3, expected=70)


@pytest.mark.parametrize("status", [*LIVE, Status.FAILED])
def test_other_content_makes_the_next_revision(status: Status) -> None:
    decision = decide_put(replace(HELD, status=status), digest=B, chunking=WIDE)
    assert (decision.outcome, decision.revision, decision.expected) == (PutOutcome.REPLACED, 4, 70)
    assert decision.settings_digest == settings_digest(WIDE, after=0)
    assert not decision.reuses_source


@pytest.mark.parametrize("status", ENDED)
def test_a_put_after_retire_or_erase_makes_the_next_revision_even_of_the_same_content(status: Status) -> None:
    decision = decide_put(replace(HELD, status=status), digest=A, chunking=WIDE)
    assert (decision.outcome, decision.revision) == (PutOutcome.REPLACED, 4)


def test_other_chunk_settings_keep_the_revision_and_its_source() -> None:
    decision = decide_put(HELD, digest=A, chunking=NARROW)
    assert decision == PutDecision(
        outcome=PutOutcome.RECHUNKED,
        revision=3,
        expected=70,
        settings_digest=settings_digest(NARROW, after=70),
        reuses_source=True,
    )


def test_settings_that_return_are_a_fact_of_their_own() -> None:
    first = decide_put(None, digest=A, chunking=WIDE)
    back = decide_put(replace(HELD, chunking=NARROW, sequence=90), digest=A, chunking=WIDE)
    assert back.outcome is PutOutcome.RECHUNKED
    assert back.settings_digest != first.settings_digest


def test_a_failed_document_is_worked_on_again_from_a_new_pack() -> None:
    decision = decide_put(replace(HELD, status=Status.FAILED), digest=A, chunking=WIDE)
    assert (decision.outcome, decision.revision, decision.reuses_source) == (PutOutcome.RECHUNKED, 3, False)
    assert decision.settings_digest == settings_digest(WIDE, after=70)


def test_a_document_whose_pack_is_unknown_gets_a_new_one() -> None:
    assert not decide_put(replace(HELD, source=None), digest=A, chunking=NARROW).reuses_source


def test_a_b_a_are_three_revisions() -> None:
    revisions = []
    held = None
    for position, digest in enumerate((A, B, A, A), start=1):
        decision = decide_put(held, digest=digest, chunking=WIDE)
        revisions.append((decision.outcome, decision.revision))
        held = replace(
            HELD, revision=decision.revision, content_digest=digest, sequence=position, status=Status.PENDING
        )
    assert revisions == [
        (PutOutcome.CREATED, 1),
        (PutOutcome.REPLACED, 2),
        (PutOutcome.REPLACED, 3),
        (PutOutcome.UNCHANGED, 3),
    ]


@pytest.mark.parametrize("status", [*LIVE, Status.FAILED])
def test_every_state_can_be_retired_and_erased(status: Status) -> None:
    held = replace(HELD, status=status)
    for decide in (decide_retire, decide_erase):
        decision = decide(held, "x")
        assert (decision.revision, decision.expected, decision.unchanged) == (3, 70, False)


def test_retiring_twice_and_erasing_twice_record_nothing() -> None:
    retired, erased = (replace(HELD, status=status) for status in ENDED)
    assert decide_retire(retired, "x").unchanged
    assert decide_retire(erased, "x").unchanged
    assert decide_erase(erased, "x").unchanged
    assert not decide_erase(retired, "x").unchanged


def test_an_unknown_document_can_be_neither_retired_nor_erased() -> None:
    for decide in (decide_retire, decide_erase):
        with pytest.raises(Unknown, match="document 'handbook/leave' does not exist in this crate"):
            decide(None, "handbook/leave")


MANIFEST = Manifest(
    source_id="a.md",
    uri="https://x.org/a",
    media_type="text/markdown",
    charset="utf-8",
    title="A",
    metadata=(("k", "v"),),
    source_domain="x.org",
    content_hash=A,
    size_bytes=5,
    notices=("n",),
)


@pytest.mark.parametrize(
    "changes",
    [
        {"uri": ""},
        {"media_type": "text/plain"},
        {"charset": "latin-1"},
        {"title": "B"},
        {"metadata": ()},
        {"metadata": (("k", "w"),)},
        {"metadata": (("kv", ""),)},
        {"source_domain": "y.org"},
        {"content_hash": B},
    ],
)
def test_bytes_media_type_and_metadata_make_the_content(changes: dict[str, object]) -> None:
    changed = replace(MANIFEST, **changes)  # type: ignore[arg-type]  # the table mixes types
    assert content_digest(changed, None) != content_digest(MANIFEST, None)


def test_a_declared_time_is_part_of_the_content_and_what_was_done_to_the_text_is_not() -> None:
    declared = datetime(2024, 1, 1, tzinfo=UTC)
    assert content_digest(MANIFEST, declared) != content_digest(MANIFEST, None)
    assert content_digest(replace(MANIFEST, notices=(), size_bytes=0), None) == content_digest(MANIFEST, None)


def test_fields_cannot_be_taken_for_each_other() -> None:
    moved = replace(MANIFEST, uri="https://x.org/", media_type="atext/markdown")
    assert content_digest(moved, None) != content_digest(MANIFEST, None)


def test_a_manifest_has_what_caller_and_body_say() -> None:
    prepared = Prepared(
        media_type="text/markdown",
        charset="utf-8",
        form=Form.TEXT,
        title="A",
        metadata=(),
        source_domain="x.org",
        notices=("from the body",),
        content_hash=A,
        size_bytes=5,
        normalized=b"",
    )
    header = Header(source_id="a.md", uri="https://x.org/a")
    made = make_manifest(header, prepared, (("k", "v"),), ("from the header",))
    assert made == replace(MANIFEST, notices=("from the body", "from the header"))


def test_keys_name_aggregate_revision_kind_generation_settings_and_submission() -> None:
    assert fact_key("doc", 2, "DocumentIngested", "d1", "s1") == "doc:2:DocumentIngested:0:d1:s1"
    assert submission_of("doc:2:DocumentIngested:0:d1:s1") == "s1"
    assert submission_of(fact_key("doc", 2, "DocumentRetired")) == ""
    assert submission_of("failed:ingest:KNOWLEDGE:7:1") == ""


def test_the_module_has_no_other_outcomes() -> None:
    assert {str(outcome) for outcome in documents.PutOutcome} == {"created", "replaced", "unchanged", "rechunked"}
