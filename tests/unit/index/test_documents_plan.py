"""What a batch of facts means: the net effect per document, in log order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.index.domain.documents import (
    DocumentState,
    Embedded,
    Erased,
    Fact,
    Ingested,
    Plan,
    Retired,
    Status,
    plan,
)
from services.index.domain.force import instant
from services.index.domain.records import Form

DOC = "0" * 31 + "1"
OTHER = "0" * 31 + "2"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def ingested(revision: int, position: int, *, digest: str = "d1", document: str = DOC) -> Ingested:
    return Ingested(
        document_id=document,
        revision=revision,
        settings_digest=digest,
        form=Form.TEXT,
        effective_at=NOON,
        effective_from=instant(NOON),
        position=position,
    )


def embedded(revision: int, position: int, *, digest: str = "d1", document: str = DOC, count: int = 3) -> Embedded:
    return Embedded(
        document_id=document,
        revision=revision,
        settings_digest=digest,
        generation=1,
        chunks_pack=b"c" * 32,
        vectors_pack=b"v" * 32,
        chunk_count=count,
        model_id="m",
        dimension=4,
        form=Form.TEXT,
        position=position,
    )


def retired(revision: int, position: int) -> Retired:
    return Retired(document_id=DOC, revision=revision, position=position)


def erased(revision: int, position: int) -> Erased:
    return Erased(document_id=DOC, revision=revision, position=position)


def only_state(made: Plan) -> DocumentState:
    (state,) = made.states
    return state


def after(*facts: Fact) -> DocumentState:
    return only_state(plan({}, facts))


def test_a_new_revision_becomes_searchable_when_it_is_embedded() -> None:
    known = plan({}, [ingested(1, 1)])
    assert only_state(known).status is Status.PENDING
    made = plan({DOC: only_state(known)}, [embedded(1, 2)])
    assert only_state(made).current_revision == 1
    assert only_state(made).status is Status.SEARCHABLE
    assert made.indexed == (embedded(1, 2),)
    assert made.stored == (embedded(1, 2),)
    assert made.indexed == (embedded(1, 2),)


def test_the_old_revision_stays_searchable_until_the_new_one_is_embedded() -> None:
    before = after(ingested(1, 1), embedded(1, 2))
    made = plan({DOC: before}, [ingested(2, 3)])
    assert only_state(made).current_revision == 1
    assert only_state(made).status is Status.SEARCHABLE
    replaced = plan({DOC: only_state(made)}, [embedded(2, 4)])
    assert only_state(replaced).current_revision == 2
    assert replaced.indexed == (embedded(2, 4),)


def test_a_late_older_revision_keeps_its_chunks_and_shows_nothing() -> None:
    before = after(ingested(1, 1), ingested(2, 2), embedded(2, 3))
    made = plan({DOC: before}, [embedded(1, 4)])
    assert only_state(made).current_revision == 2
    assert made.stored == (embedded(1, 4),)
    assert not made.indexed


def test_a_revision_that_was_cut_with_older_settings_is_ignored() -> None:
    before = after(ingested(1, 1, digest="d1"), ingested(1, 2, digest="d2"))
    late = plan({DOC: before}, [embedded(1, 3, digest="d1")])
    assert late == Plan(states=(before,))
    current = plan({DOC: before}, [embedded(1, 4, digest="d2")])
    assert only_state(current).current_digest == "d2"


def test_other_settings_of_the_same_revision_replace_its_chunks() -> None:
    before = after(ingested(1, 1), embedded(1, 2))
    made = plan({DOC: before}, [ingested(1, 3, digest="d2"), embedded(1, 4, digest="d2", count=5)])
    assert made.indexed == (embedded(1, 4, digest="d2", count=5),)
    assert only_state(made).current_count == 5


def test_rechunking_does_not_make_a_revision_younger() -> None:
    made = plan({}, [ingested(1, 1), ingested(1, 5, digest="d2")])
    (row,) = made.ingested
    assert (row.position, row.settings_digest) == (1, "d2")


def test_retiring_takes_the_document_out_and_late_vectors_do_not_bring_it_back() -> None:
    before = after(ingested(1, 1), embedded(1, 2), ingested(2, 3))
    made = plan({DOC: before}, [retired(1, 4)])
    assert only_state(made).status is Status.RETIRED
    late = plan({DOC: only_state(made)}, [embedded(2, 5)])
    assert not late.indexed
    assert late.stored == (embedded(2, 5),)
    assert only_state(late).status is Status.RETIRED


def test_a_put_after_retirement_is_a_new_revision_and_searchable_again() -> None:
    before = after(ingested(1, 1), embedded(1, 2), retired(1, 3))
    assert only_state(plan({DOC: before}, [ingested(1, 4, digest="d2")])).status is Status.RETIRED
    made = plan({DOC: before}, [ingested(2, 4), embedded(2, 5)])
    assert only_state(made).status is Status.SEARCHABLE
    assert made.indexed == (embedded(2, 5),)


def test_erasure_removes_rows_up_to_the_newest_revision_known() -> None:
    before = after(ingested(1, 1), embedded(1, 2))
    made = plan({DOC: before}, [ingested(2, 3), embedded(2, 4), erased(1, 5)])
    assert made.erased == ((DOC, 2),)
    assert not made.stored
    assert not made.ingested
    assert only_state(made).status is Status.ERASED
    # It was searchable for a while, and whoever counts on the signal must get it.
    assert made.indexed == (embedded(2, 4),)


def test_nothing_of_an_erased_revision_comes_back() -> None:
    before = after(ingested(1, 1), erased(1, 2))
    made = plan({DOC: before}, [embedded(1, 3), ingested(1, 4)])
    assert made == Plan(states=(before,))
    again = plan({DOC: before}, [ingested(2, 5), embedded(2, 6)])
    assert only_state(again).status is Status.SEARCHABLE
    assert not again.erased


def test_a_document_that_is_erased_and_put_again_in_one_batch_keeps_only_the_new_revision() -> None:
    made = plan({}, [ingested(1, 1), embedded(1, 2), erased(1, 3), ingested(2, 4), embedded(2, 5)])
    assert made.erased == ((DOC, 1),)
    assert made.stored == (embedded(2, 5),)
    assert made.stored == (embedded(2, 5),)
    assert [fact.revision for fact in made.indexed] == [1, 2]


def test_two_revisions_in_one_batch_store_both_and_show_the_last() -> None:
    made = plan({}, [ingested(1, 1), embedded(1, 2), ingested(2, 3), embedded(2, 4)])
    assert [fact.revision for fact in made.stored] == [1, 2]
    assert [fact.revision for fact in made.indexed] == [1, 2]
    assert [fact.revision for fact in made.indexed] == [1, 2]


def test_a_revision_without_chunks_is_empty_takes_its_predecessor_out_and_is_signalled() -> None:
    before = after(ingested(1, 1), embedded(1, 2))
    made = plan({DOC: before}, [ingested(2, 3), embedded(2, 4, count=0)])
    assert only_state(made).status is Status.EMPTY
    assert made.indexed == (embedded(2, 4, count=0),)


def test_an_older_ingestion_changes_nothing() -> None:
    before = after(ingested(2, 1))
    assert plan({DOC: before}, [ingested(1, 2)]) == Plan(states=(before,))


def test_documents_of_a_batch_do_not_touch_each_other() -> None:
    made = plan({}, [ingested(1, 1), ingested(1, 2, document=OTHER), embedded(1, 3, document=OTHER), retired(1, 4)])
    assert {state.document_id: state.status for state in made.states} == {
        DOC: Status.RETIRED,
        OTHER: Status.SEARCHABLE,
    }


@pytest.mark.parametrize("fact", [retired(1, 1), erased(1, 1), embedded(1, 1)])
def test_facts_about_an_unknown_document_are_harmless(fact: Fact) -> None:
    made = plan({}, [fact])
    assert not made.stored
