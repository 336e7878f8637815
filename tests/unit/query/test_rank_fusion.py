"""Fusion by ranks, by hand-computed figures."""

import pytest

from services.query.domain.fusion import (
    Fused,
    LaneWeights,
    best_per_document,
    collapse,
    fuse,
    fuse_documents,
    rank_one_lane,
)
from services.query.domain.values import Form, LaneHit, RecordKey, RetrievalMode

WEIGHTS = {
    Form.TEXT: LaneWeights(0.6, 0.4),
    Form.STRUCTURED: LaneWeights(0.8, 0.2),
    Form.INFORMAL: LaneWeights(0.6, 0.4),
}


def hit(name: str, score: float = 1.0, form: Form = Form.TEXT, ordinal: int = 0) -> LaneHit:
    return LaneHit(RecordKey(name, 1, ordinal), score, form)


def fused(keyword: list[LaneHit], vector: list[LaneHit]) -> tuple[Fused, ...]:
    return fuse(keyword, vector, weights=WEIGHTS, k=60)


def test_ranks_start_at_one_and_only_lists_that_hold_a_record_count() -> None:
    both, vector_only, keyword_only = fused([hit("a", 9.0), hit("b", 8.0)], [hit("c", 0.9), hit("a", 0.8)])[:3]
    assert both.key.document_id == "a"
    assert both.score == pytest.approx(0.4 / 61 + 0.6 / 62)
    assert (both.keyword_rank, both.vector_rank, both.keyword_score, both.cosine) == (1, 2, 9.0, 0.8)
    assert (vector_only.key.document_id, keyword_only.key.document_id) == ("c", "b")
    assert vector_only.score == pytest.approx(0.6 / 61)
    assert keyword_only.score == pytest.approx(0.4 / 62)
    assert (keyword_only.vector_rank, keyword_only.cosine) == (0, 0.0)


def test_a_candidate_is_weighed_by_its_own_form() -> None:
    first, second = fused([hit("text", 5.0)], [hit("table", 0.9, Form.STRUCTURED)])
    assert (first.key.document_id, second.key.document_id) == ("table", "text")
    assert first.score == pytest.approx(0.8 / 61)
    assert second.score == pytest.approx(0.4 / 61)


def test_equal_scores_go_by_best_rank_then_by_id() -> None:
    even = {form: LaneWeights(0.5, 0.5) for form in Form}
    by_id = fuse([hit("b")], [hit("a")], weights=even, k=60)
    assert [item.key.document_id for item in by_id] == ["a", "b"]
    lone = {form: LaneWeights(0.0, 0.0) for form in Form}
    by_rank = fuse([hit("z"), hit("a")], [], weights=lone, k=60)
    assert [item.key.document_id for item in by_rank] == ["z", "a"]


def test_records_of_one_chunk_are_collapsed_before_ranks_are_given() -> None:
    lane = [hit("a", 3.0), hit("a", 2.0), hit("b", 1.0)]
    assert collapse(lane) == (lane[0], lane[2])
    assert [(item.key.document_id, item.keyword_rank) for item in fused(lane, [])] == [("a", 1), ("b", 2)]


def test_one_lane_keeps_its_own_scores() -> None:
    lexical = rank_one_lane([hit("b", 7.0), hit("a", 7.0), hit("c", 9.0)], RetrievalMode.LEXICAL)
    assert [(item.key.document_id, item.score) for item in lexical] == [("c", 9.0), ("b", 7.0), ("a", 7.0)]
    assert [item.keyword_rank for item in lexical] == [3, 1, 2]
    assert all(item.vector_rank == 0 and item.keyword_score == item.score for item in lexical)
    (semantic,) = rank_one_lane([hit("a", 0.5)], RetrievalMode.SEMANTIC)
    assert (semantic.vector_rank, semantic.cosine, semantic.keyword_rank) == (1, 0.5, 0)


def test_documents_keep_their_best_record() -> None:
    candidates = fused([hit("a", ordinal=1), hit("a", ordinal=2), hit("b")], [])
    assert [(item.key.document_id, item.key.ordinal) for item in best_per_document(candidates)] == [("a", 1), ("b", 0)]


def test_documents_are_fused_by_their_records_words_and_their_best_chunks_meaning() -> None:
    words = [hit("a", 9.0), hit("c", 8.0), hit("d", 7.0)]
    meaning = [hit("b", 0.9, ordinal=2), hit("b", 0.8, ordinal=1), hit("a", 0.7, ordinal=3)]
    shown = [*meaning, hit("c", ordinal=5)]
    ranked = fuse_documents(words, meaning, shown=shown, weights=WEIGHTS, k=60)
    assert [(item.key.document_id, item.key.ordinal) for item in ranked] == [("a", 3), ("b", 2), ("c", 5), ("d", 0)]
    assert ranked[0].score == pytest.approx(0.4 / 61 + 0.6 / 62)
    assert (ranked[0].keyword_score, ranked[0].cosine) == (9.0, 0.7)
    assert ranked[1].score == pytest.approx(0.6 / 61)
    assert (ranked[1].keyword_rank, ranked[1].vector_rank) == (0, 1)


def test_documents_of_a_lane_alone_keep_its_order() -> None:
    meaning = [hit("b", ordinal=2), hit("a", ordinal=1)]
    alone = fuse_documents((), meaning, shown=(), weights=WEIGHTS, k=60)
    assert [(item.key.document_id, item.key.ordinal) for item in alone] == [("b", 2), ("a", 1)]
    assert fuse_documents([hit("a")], (), shown=(), weights=WEIGHTS, k=60)[0].key.ordinal == 0


def test_a_chunk_keeps_the_proposition_that_stands_higher_in_its_lane() -> None:
    def found(name: str, statement: int) -> LaneHit:
        return LaneHit(RecordKey(name, 1, 0, statement), 1.0, Form.TEXT)

    first, second = fused([found("a", 2), found("b", 3)], [found("b", 4), found("a", 5)])
    assert {first.key.document_id: first.key.statement, second.key.document_id: second.key.statement} == {
        "a": 2,
        "b": 4,
    }
    (both,) = fused([found("a", 2)], [found("a", 5)])
    assert (both.key.statement, both.keyword_rank, both.vector_rank) == (2, 1, 1)
    assert RecordKey("a", 1, 0, 2) == RecordKey("a", 1, 0), "a statement is no part of a chunk's name"
