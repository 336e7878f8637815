"""What the pipeline's facts make of a document."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.ingest.domain.chunking import ChunkSettings
from services.ingest.domain.documents import Form, Manifest, Pack, PutOutcome, Status, content_digest
from services.ingest.domain.lifecycle import (
    Chunked,
    DocumentFact,
    DocumentState,
    Embedded,
    Erased,
    Failed,
    FailureState,
    Indexed,
    Ingested,
    Retired,
    Settled,
    evolve,
    fold,
)

NOW = datetime(2024, 5, 1, tzinfo=UTC)
CRATE, DOCUMENT = "main", "d" * 32
KEY = (CRATE, DOCUMENT)
MANIFEST = Manifest(
    source_id="a.md",
    uri="",
    media_type="text/markdown",
    charset="utf-8",
    title="A",
    metadata=(),
    source_domain="main",
    content_hash=b"h" * 32,
    size_bytes=5,
    notices=(),
)


def ingested(position: int, revision: int = 1, digest: str = "s1", **changes: object) -> Ingested:
    fact = Ingested(
        crate_id=CRATE,
        document_id=DOCUMENT,
        position=position,
        revision=revision,
        source=Pack(b"p" * 32, 9),
        chunking=ChunkSettings(),
        settings_digest=digest,
        job_id="job",
        form=Form.TEXT,
        effective_at=NOW,
        ingested_at=NOW,
        manifest=MANIFEST,
    )
    return replace(fact, **changes)  # type: ignore[arg-type]  # keyword shorthand of the tests


def chunked(position: int, revision: int = 1, digest: str = "s1", chunks: int = 2) -> Chunked:
    return Chunked(
        crate_id=CRATE,
        document_id=DOCUMENT,
        position=position,
        revision=revision,
        settings_digest=digest,
        chunks=chunks,
    )


def embedded(position: int, revision: int = 1, digest: str = "s1", records: int = 2) -> Embedded:
    return Embedded(
        crate_id=CRATE,
        document_id=DOCUMENT,
        position=position,
        revision=revision,
        settings_digest=digest,
        records=records,
    )


def indexed(applied: int, revision: int = 1) -> Indexed:
    return Indexed(crate_id=CRATE, document_id=DOCUMENT, position=1_000 + applied, revision=revision, applied=applied)


def failed(position: int, event: int, revision: int = 1, **changes: object) -> Failed:
    fact = Failed(
        crate_id=CRATE,
        document_id=DOCUMENT,
        position=position,
        revision=revision,
        service="chunker",
        stream="KNOWLEDGE",
        event_position=event,
        code="corrupt",
        reason="the pack is damaged",
        attempts=3,
        failed_at=NOW,
        own=False,
    )
    return replace(fact, **changes)  # type: ignore[arg-type]  # keyword shorthand of the tests


def state_after(*facts: DocumentFact) -> DocumentState:
    return fold({}, facts)[KEY]


def test_a_document_becomes_searchable_step_by_step() -> None:
    steps: list[DocumentFact] = [ingested(1), chunked(2), embedded(3), indexed(3)]
    statuses = [state_after(*steps[: count + 1]).status for count in range(4)]
    assert statuses == [Status.PENDING, Status.PENDING, Status.PENDING, Status.SEARCHABLE]
    state = state_after(*steps)
    assert (state.revision, state.sequence, state.position, state.job_id) == (1, 1, 1, "job")
    assert state.revisions[1].chunks == 2


def test_a_document_without_chunks_is_empty_once_it_is_indexed() -> None:
    before = state_after(ingested(1), chunked(2, chunks=0), embedded(3, records=0))
    assert before.status is Status.PENDING
    assert evolve(before, indexed(3)).status is Status.EMPTY


def test_facts_and_signals_may_come_in_any_order() -> None:
    facts: list[DocumentFact] = [ingested(1), chunked(2), embedded(3)]
    for place in range(len(facts) + 1):
        mixed = [*facts[:place], indexed(3), *facts[place:]]
        assert state_after(*mixed).status is Status.SEARCHABLE, place


def test_an_older_report_does_not_count_for_newer_vectors() -> None:
    state = state_after(ingested(1), chunked(2), embedded(3), indexed(3), ingested(10, digest="s2", rechunk=True))
    assert state.status is Status.PENDING
    assert (state.revision, state.revisions[1].chunks) == (1, None)
    state = fold({KEY: state}, [chunked(11, digest="s2"), embedded(12, digest="s2")])[KEY]
    assert state.status is Status.PENDING
    assert evolve(state, indexed(12)).status is Status.SEARCHABLE


def test_a_step_of_settings_that_were_changed_meanwhile_says_nothing() -> None:
    state = state_after(ingested(1), ingested(2, digest="s2", rechunk=True), chunked(3, digest="s1"))
    assert state.revisions[1].chunks is None
    state = fold({KEY: state}, [embedded(4, digest="s1"), indexed(4)])[KEY]
    assert state.status is Status.PENDING


def test_facts_about_what_is_not_known_change_nothing() -> None:
    for fact in (chunked(2), embedded(3), failed(4, event=2)):
        assert state_after(fact).status is Status.PENDING
        assert state_after(fact).revisions == {}


def test_a_failure_shows_until_it_is_made_good() -> None:
    state = state_after(ingested(1), failed(5, event=1))
    assert state.status is Status.FAILED
    assert state.revisions[1].failure == "chunker: the pack is damaged"
    good = fold({KEY: state}, [chunked(6), embedded(7), indexed(7)])[KEY]
    assert good.status is Status.SEARCHABLE


def test_putting_it_again_clears_the_failure_and_a_late_one_of_the_first_attempt_is_ignored() -> None:
    state = state_after(ingested(1), failed(5, event=1), ingested(6, digest="s2", rechunk=True))
    assert state.status is Status.PENDING
    assert evolve(state, failed(7, event=1)).status is Status.PENDING
    assert evolve(state, failed(7, event=6)).status is Status.FAILED
    # Positions of the other stream can't be compared.
    assert evolve(state, failed(7, event=1, stream="SIGNALS")).status is Status.FAILED


def test_a_failure_of_an_earlier_revision_leaves_the_current_one_alone() -> None:
    state = state_after(ingested(1), ingested(2, revision=2), failed(5, event=1))
    assert state.status is Status.PENDING
    assert state.revisions[1].failure
    assert not state.revisions[2].failure


def test_own_failures_count_among_the_documents_facts() -> None:
    state = state_after(ingested(1), failed(9, event=1, own=True))
    assert (state.sequence, state.position) == (9, 1)
    assert state_after(ingested(1), failed(9, event=1)).sequence == 1


def test_a_new_revision_is_pending_and_the_old_one_keeps_what_is_known() -> None:
    state = state_after(ingested(1), chunked(2), embedded(3), indexed(3), ingested(4, revision=2), chunked(5, chunks=7))
    assert (state.status, state.revision) == (Status.PENDING, 2)
    assert state.revisions[1].chunks == 7
    assert state.revisions[1].status is Status.SEARCHABLE


def test_retired_stays_retired_whatever_the_pipeline_does() -> None:
    state = state_after(
        ingested(1),
        Retired(crate_id=CRATE, document_id=DOCUMENT, position=2, revision=1),
        chunked(3),
        embedded(4),
        indexed(4),
        failed(5, event=1),
    )
    assert (state.status, state.sequence, state.position) == (Status.RETIRED, 2, 2)
    assert state.revisions[1].status is Status.SEARCHABLE


def test_erased_keeps_nothing_but_the_tombstone() -> None:
    late: tuple[DocumentFact, ...] = (chunked(3), embedded(4), failed(5, event=1), indexed(4))
    state = state_after(
        ingested(1), indexed(0), Erased(crate_id=CRATE, document_id=DOCUMENT, position=2, revision=1), *late
    )
    assert (state.status, state.revision, state.revisions, state.job_id) == (Status.ERASED, 1, {}, "")


def test_a_put_after_an_erase_lives_on() -> None:
    facts: list[DocumentFact] = [
        ingested(1),
        Erased(crate_id=CRATE, document_id=DOCUMENT, position=2, revision=1),
        ingested(3, revision=2),
    ]
    state = state_after(*facts)
    assert (state.status, state.revision, set(state.revisions)) == (Status.PENDING, 2, {2})
    # The index may have reported the second revision before this service has read the erasure of the first.
    state = state_after(indexed(5, revision=2), *facts, chunked(4, revision=2), embedded(5, revision=2))
    assert state.status is Status.SEARCHABLE


def test_every_interleaving_of_the_two_streams_ends_equal() -> None:
    facts: list[DocumentFact] = [
        ingested(1),
        chunked(2),
        embedded(3),
        ingested(4, revision=2),
        chunked(5, revision=2, chunks=0),
        embedded(6, revision=2, records=0),
    ]
    signals = [indexed(3), indexed(6, revision=2)]
    ends = []
    for places in itertools.combinations(range(8), 2):
        rest = iter(facts)
        reports = iter(signals)
        order = [next(reports) if place in places else next(rest) for place in range(8)]
        ends.append(state_after(*order))
    assert all(end == ends[0] for end in ends)
    assert ends[0].status is Status.EMPTY


def test_reports_only_move_forward() -> None:
    state = state_after(indexed(9), indexed(4), ingested(1), embedded(8))
    assert state.reported == {1: 9}
    assert state.status is Status.SEARCHABLE


def test_a_pack_that_is_gone_leaves_what_was_known() -> None:
    state = state_after(ingested(1), ingested(2, digest="s2", manifest=None, rechunk=True))
    assert state.revisions[1].manifest == MANIFEST
    bare = state_after(ingested(1, manifest=None))
    assert bare.revisions[1].manifest is None
    assert bare.revisions[1].digest == b""


def test_the_digest_has_the_time_only_when_it_was_declared() -> None:
    later = datetime(2024, 6, 1, tzinfo=UTC)
    assert state_after(ingested(1)).revisions[1].digest == content_digest(MANIFEST, None)
    declared = state_after(ingested(1, effective_at=later))
    assert declared.revisions[1].digest == content_digest(MANIFEST, later)


@pytest.mark.parametrize(
    ("fact", "outcome"),
    [
        (ingested(1), PutOutcome.CREATED),
        (ingested(1, revision=2), PutOutcome.REPLACED),
        (ingested(1, rechunk=True), PutOutcome.RECHUNKED),
    ],
)
def test_the_outcome_can_be_told_from_the_fact(fact: Ingested, outcome: PutOutcome) -> None:
    assert fact.outcome is outcome


def test_documents_are_kept_apart_and_what_is_passed_in_is_left_alone() -> None:
    other = replace(ingested(2), document_id="e" * 32)
    before = fold({}, [ingested(1)])
    after = fold(before, [other, chunked(3)])
    assert set(after) == {KEY, ("main", "e" * 32)}
    assert before[KEY].revisions[1].chunks is None
    assert after["main", "e" * 32].revisions[1].chunks is None


def settled(position: int, event: int, state: FailureState = FailureState.RETRIED, **changes: object) -> Settled:
    fact = Settled(
        crate_id=CRATE,
        document_id=DOCUMENT,
        position=position,
        revision=1,
        failure_id=position - 1,
        service="chunker",
        state=state,
        settled_at=NOW,
        event_position=event,
    )
    return replace(fact, **changes)  # type: ignore[arg-type]  # keyword shorthand of the tests


def test_a_retry_sets_the_work_going_and_a_drop_does_not() -> None:
    broken = state_after(ingested(1), failed(2, 1))
    assert broken.status is Status.FAILED
    assert evolve(broken, settled(3, 1)).status is Status.PENDING
    assert evolve(broken, settled(3, 1, FailureState.DROPPED)) == broken
    assert evolve(broken, settled(3, 1, service="embedder")) == broken
    assert evolve(broken, settled(3, 1, revision=2)) == broken
    again = state_after(ingested(1), failed(2, 1), ingested(3, digest="s2"), failed(4, 3))
    assert evolve(again, settled(5, 1)) == again


def test_a_pack_found_lost_later_is_a_failure_until_the_document_is_put_again() -> None:
    found = (ingested(1), chunked(2), embedded(3), indexed(3))
    lost = failed(4, 1, code="not_found", service="ingest", own=True)
    assert state_after(*found).status is Status.SEARCHABLE
    assert state_after(*found, lost).status is Status.FAILED
    assert state_after(*found, lost, settled(5, 1, service="ingest")).status is Status.SEARCHABLE
    assert state_after(*found, lost, ingested(5, digest="s2")).status is Status.PENDING
    # The chunker's copy is gone, but nobody needs to cut the revision again.
    assert state_after(*found, failed(4, 1, code="not_found")).status is Status.SEARCHABLE


def test_a_fact_that_is_handed_over_late_moves_nothing_back() -> None:
    moved = state_after(ingested(3, revision=2), chunked(4, revision=2))
    late = evolve(moved, ingested(1))
    assert (late.revision, late.sequence, sorted(late.revisions)) == (2, 3, [1, 2])
    assert evolve(late, ingested(1)) == late
    retired = Retired(crate_id=CRATE, document_id=DOCUMENT, position=2, revision=1)
    erased = Erased(crate_id=CRATE, document_id=DOCUMENT, position=2, revision=1)
    assert evolve(moved, retired) == evolve(moved, erased) == moved
    gone = state_after(ingested(2), replace(erased, position=3))
    assert evolve(gone, ingested(1)) == gone
    # Nothing of it was known, but a failure of ingest's own had moved its aggregate on.
    first = state_after(failed(2, 1, own=True), ingested(1))
    assert (first.revision, first.position, first.sequence, first.status) == (1, 1, 2, Status.PENDING)
