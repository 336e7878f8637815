"""Propositions between protobuf and domain values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from affidavit.embedder.v1 import embedder_events_pb2 as embedder_pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_service_pb2 as service_pb
from affidavit.proposition.v1 import proposition_events_pb2 as proposition_pb

from services.index.codec import facts, packs, replies
from services.index.domain.content import ChunkKey, Evaluated, Fetched, Statement
from services.index.domain.documents import Embedded
from services.index.domain.records import Form, LaneHit
from tests.unit.index.test_index_codec import DOC, NOON, embedded, stored

EVALUATED = proposition_pb.EVALUATION_STATUS_EVALUATED


def evaluation(
    ordinal: int, *told: tuple[str, bool], status: proposition_pb.EvaluationStatus.ValueType = EVALUATED
) -> proposition_pb.Evaluation:
    propositions = [
        proposition_pb.EvaluatedProposition(ordinal=number, text=text, accepted=accepted)
        for number, (text, accepted) in enumerate(told, start=1)
    ]
    return proposition_pb.Evaluation(chunk_ordinal=ordinal, status=status, propositions=propositions)


def pack(*evaluations: proposition_pb.Evaluation) -> dict[str, bytes]:
    return {"evaluations": proposition_pb.EvaluationSet(evaluations=evaluations).SerializeToString()}


def test_accepted_propositions_are_numbered_within_their_chunk() -> None:
    parts = pack(
        evaluation(0, ("no", False), ("first", True), ("se\0cond", True)),
        evaluation(1, ("unread", True), status=proposition_pb.EVALUATION_STATUS_SKIPPED),
        evaluation(2, status=proposition_pb.EVALUATION_STATUS_SOURCE),
    )
    assert packs.evaluated(parts, replace(embedded(3), statement_count=2)) == Evaluated(
        alone=frozenset({2}), statements=(Statement(0, 1, "first"), Statement(0, 2, "se\ufffdcond"))
    )


@pytest.mark.parametrize(
    ("parts", "count", "problem"),
    [
        ({}, 0, "0 evaluations don't belong to 2 chunks"),
        ({"evaluations": b"\xff"}, 0, "no EvaluationSet"),
        (pack(evaluation(0), evaluation(2)), 0, "2 evaluations don't belong to 2 chunks"),
        (pack(evaluation(0, ("a", True)), evaluation(1)), 2, "2 propositions have vectors, 1 are there"),
        (pack(evaluation(0, *[("a", True)] * 1_024), evaluation(1)), 1_024, "over 1023 accepted propositions"),
    ],
)
def test_evaluations_that_do_not_fit_their_fact_are_refused(parts: dict[str, bytes], count: int, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        packs.evaluated(parts, replace(embedded(2), statement_count=count))


def test_rows_of_propositions_are_told_apart_from_chunks() -> None:
    message = embedder_pb.RecordsEmbedded(
        record_count=5, chunk_count=2, evaluations=event_pb.PackRef(id=b"e" * 32), form=event_pb.FORM_TEXT
    )
    fact = facts.fact(message, 7, NOON)
    assert isinstance(fact, Embedded)
    assert (fact.chunk_count, fact.statement_count, fact.row_count, fact.evaluations_pack) == (2, 3, 5, b"e" * 32)
    assert facts.record_count(message) == 5


def test_a_hit_tells_the_proposition_and_a_chunk_its_text() -> None:
    reply = replies.vector_response([LaneHit(DOC, 1, 4, 0.5, Form.TEXT, 3)], position=3, generation=2)
    assert (reply.hits[0].ordinal, reply.hits[0].statement) == (4, 3)
    (key,) = replies.chunk_keys([service_pb.ChunkKey(document_id=DOC, revision=1, ordinal=4, statement=3)])
    assert key == ChunkKey(document_id=DOC, revision=1, ordinal=4, statement=3)
    fetched = Fetched(position=1, chunks=(replace(stored(4), key=key, statement="A fact."),))
    (chunk,) = replies.fetch_response(fetched, service_pb.FetchChunksRequest()).chunks
    assert (chunk.statement, chunk.key.statement) == ("A fact.", 3)
