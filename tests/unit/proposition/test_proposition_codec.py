"""Protobuf <-> domain values of proposition."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.index.v1 import index_events_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.proposition.v1 import proposition_events_pb2 as pb

from services.proposition import codec
from services.proposition.codec import Configured, Erased
from services.proposition.domain.evaluation import Evaluation, Policy, Problem, Source, Status
from services.proposition.domain.grading import Scores, Statement
from services.proposition.domain.providers import Generation, Provider

NOW = datetime(2026, 3, 4, 5, 6, 7, 890, tzinfo=UTC)
GOOD = Evaluation(
    ordinal=3,
    fingerprint=b"f" * 32,
    statements=(Statement(1, "Zoë is 5.", Scores(8, 9, 10, 8)), Statement(2, "x", Scores(8, 9, 10, 7))),
    model_id="m",
    prompt_version="1",
    source_hash=b"s" * 32,
    generation_request_id="a",
    grading_request_id="b",
    evaluated_at=NOW,
)


@pytest.mark.parametrize("status", [Status.SKIPPED, Status.SOURCE])
@pytest.mark.parametrize("problem", Problem)
def test_evaluations_come_back_as_they_were(status: Status, problem: Problem) -> None:
    failed = Evaluation(
        ordinal=1, status=status, problem=problem, diagnostics="why", statements=(Statement(1, "x"),), evaluated_at=NOW
    )
    assert codec.evaluations(codec.evaluation_parts([GOOD, failed])) == (GOOD, failed)
    assert (GOOD.accepted, GOOD.rejected, failed.accepted, failed.rejected) == (1, 1, 0, 1)


@pytest.mark.parametrize(
    "message",
    [
        pb.Evaluation(),
        pb.Evaluation(status=pb.EVALUATION_STATUS_EVALUATED, fingerprint=b"short"),
        pb.Evaluation(
            status=pb.EVALUATION_STATUS_EVALUATED, propositions=[pb.EvaluatedProposition(ordinal=1, fidelity=9)]
        ),
    ],
)
def test_evaluations_that_can_t_be_are_refused(message: pb.Evaluation) -> None:
    parts = {"evaluations": pb.EvaluationSet(evaluations=[message]).SerializeToString()}
    with pytest.raises(ValueError, match=r"status|fingerprint|scores"):
        codec.evaluations(parts)
    with pytest.raises(ValueError, match="is missing"):
        codec.evaluations({})
    with pytest.raises(ValueError, match="can't be read"):
        codec.evaluations({"evaluations": b"\xff"})


def test_chunks_are_read_with_all_that_helps_to_understand_them() -> None:
    message = chunker_pb.ChunkSet(
        title="T", chunks=[chunker_pb.Chunk(ordinal=0, text="x", heading_path=["A", "B"], context="a,b")]
    )
    parts = {"chunks": message.SerializeToString()}
    assert codec.sources(parts, 1) == (Source(text="x", title="T", heading_path=("A", "B"), context="a,b"),)
    with pytest.raises(ValueError, match="2 chunks were announced, 1 are there"):
        codec.sources(parts, 2)
    message.chunks[0].ordinal = 1
    with pytest.raises(ValueError, match="not numbered"):
        codec.sources({"chunks": message.SerializeToString()}, 1)


def answer(**fields: object) -> settings_pb2.Provider:
    base = settings_pb2.Provider(
        role=settings_pb2.PROVIDER_ROLE_ANSWER,
        kind=settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE,
        enabled=True,
        base_url="https://a/v1",
        model="m",
    )
    base.MergeFrom(settings_pb2.Provider(**fields))  # type: ignore[arg-type]  # fields of one message, by name
    return base


def configured(*providers: settings_pb2.Provider, policy: int = 0) -> Configured:
    message = ingest_pb.CrateConfigured(providers=providers)
    message.settings.proposition_failure_policy = policy  # type: ignore[assignment]  # the enum's number
    return codec.configured(message)


def test_the_answer_provider_has_defaults() -> None:
    embedding = settings_pb2.Provider(role=settings_pb2.PROVIDER_ROLE_EMBEDDING, enabled=True, model="e")
    found = configured(embedding, answer())
    assert found.provider == Provider(
        base_url="https://a/v1", model="m", timeout_s=30, max_output_tokens=2_048, max_concurrency=4
    )
    other = answer(
        credential="env:X",
        headers={"b": "2", "a": "env:Y"},
        timeout_s=7,
        max_input_chars=8,
        max_output_tokens=9,
        max_concurrency=10,
    )
    assert configured(other).provider == Provider(
        base_url="https://a/v1",
        model="m",
        credential="env:X",
        headers=(("a", "env:Y"), ("b", "2")),
        timeout_s=7,
        max_input_chars=8,
        max_output_tokens=9,
        max_concurrency=10,
    )


def test_providers_that_aren_t_used_are_told_apart() -> None:
    off = answer()
    off.enabled = False
    assert (configured().provider, configured(off).provider, configured(off).served) == (None, None, True)
    other = configured(answer(kind=settings_pb2.PROVIDER_KIND_TRITON))
    assert (other.provider, other.served) == (None, False)


@pytest.mark.parametrize(
    ("number", "policy"), [(0, Policy.FAIL_INDEXING), *enumerate(Policy, 1), (9, Policy.FAIL_INDEXING)]
)
def test_policies(number: int, policy: Policy) -> None:
    assert configured(policy=number).policy is policy


def test_events_are_read_or_refused() -> None:
    assert codec.fact(ingest_pb.DocumentErased(document_id="d", revision=2)) == Erased("d", 2)
    started = index_pb.GenerationStarted(generation=2, retrieval_strategy="proposition")
    assert codec.generation(started) == Generation(2, "proposition")
    assert codec.generation(started).needs_evaluation
    assert not Generation(1, "standard").needs_evaluation
    assert not Generation(1, "").needs_evaluation
    for read in (codec.fact, codec.generation, codec.configured):
        with pytest.raises(TypeError, match="DocumentIngested"):
            read(ingest_pb.DocumentIngested())
    assert codec.pack_of(ingest_pb.DocumentIngested()) is None
