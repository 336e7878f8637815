"""Admission and the choice of contexts."""

import math

import pytest

from services.query.domain.admission import Admitted, admit, covered_share, idf_of_unknown
from services.query.domain.fusion import Fused
from services.query.domain.selection import select_contexts
from services.query.domain.values import Form, Passage, RecordKey, TermWeight


def idf(records: int, frequency: int) -> float:
    return math.log(1 + (records - frequency + 0.5) / (frequency + 0.5))


def candidate(name: str, *, cosine: float = 0.0, held: tuple[str, ...] = (), ordinal: int = 0) -> tuple[Fused, Passage]:
    key = RecordKey(name, 1, ordinal)
    fused = Fused(key, 1.0, Form.TEXT, keyword_rank=1, vector_rank=1 if cosine else 0, cosine=cosine)
    return fused, Passage(key, "text", terms=frozenset(held))


GATE = (
    TermWeight("access", 0.0, 0),
    TermWeight("phrase", 0.0, 0),
    TermWeight("west", idf(1, 1), 1),
    TermWeight("gate", idf(1, 1), 1),
)


def test_unknown_terms_weigh_as_if_no_record_had_them() -> None:
    assert idf_of_unknown(GATE) == pytest.approx(idf(1, 0))
    assert idf_of_unknown((TermWeight("a", idf(1000, 7), 7),)) == pytest.approx(idf(1000, 0))
    assert idf_of_unknown(()) == idf_of_unknown((TermWeight("a", 0.0, 0),)) == 1.0


def test_the_words_around_a_deleted_fact_do_not_cover_the_question() -> None:
    assert covered_share(GATE, frozenset({"the", "west", "gate", "open"})) < 0.2
    assert covered_share(GATE, frozenset({"access", "phrase", "west", "gate"})) == pytest.approx(1.0)
    assert covered_share((), frozenset({"a"})) == 0.0


def test_coverage_or_cosine_admits() -> None:
    pairs = [
        candidate("words", held=("access", "phrase")),
        candidate("meaning", cosine=0.45),
        candidate("neither", cosine=0.44, held=("west", "gate")),
    ]
    admitted = admit(pairs, GATE, coverage=0.5, cosine=0.45)
    assert [item.candidate.key.document_id for item in admitted] == ["words", "meaning"]
    assert admitted[0].coverage > 0.8


def test_a_candidate_that_the_vector_lane_did_not_return_has_no_cosine() -> None:
    assert admit([candidate("a")], GATE, coverage=0.5, cosine=0.0) == ()


def test_contexts_are_the_best_of_each_document_first() -> None:
    admitted = [
        Admitted(*candidate(name, ordinal=place), 1.0) for name, place in (("a", 0), ("a", 1), ("b", 0), ("a", 2))
    ]
    chosen = select_contexts(admitted, limit=3)
    assert [(item.candidate.key.document_id, item.candidate.key.ordinal) for item in chosen] == [
        ("a", 0),
        ("b", 0),
        ("a", 1),
    ]
    assert len(select_contexts(admitted, limit=1)) == 1
    assert select_contexts((), limit=8) == ()
