"""Protobuf <-> domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC

from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1 import index_events_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.proposition.v1 import proposition_events_pb2 as pb
from affidavit.proposition.v1 import proposition_service_pb2 as service_pb
from google.protobuf.message import Message

from services.kernel.packs import read_part
from services.proposition.domain.evaluation import Evaluation, PackAt, Policy, Problem, Source, Status
from services.proposition.domain.grading import HIGHEST, LOWEST, Scores, Statement
from services.proposition.domain.providers import (
    DEFAULT_CONCURRENCY,
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_TIMEOUT_S,
    Generation,
    Provider,
)

CHUNKS_PART = "chunks"
EVALUATIONS_PART = "evaluations"
_HASH_BYTES = 32
_STATUSES = {
    Status.EVALUATED: pb.EVALUATION_STATUS_EVALUATED,
    Status.SKIPPED: pb.EVALUATION_STATUS_SKIPPED,
    Status.SOURCE: pb.EVALUATION_STATUS_SOURCE,
}
_PROBLEMS = {
    None: pb.EVALUATION_PROBLEM_UNSPECIFIED,
    Problem.PROVIDER_ERROR: pb.EVALUATION_PROBLEM_PROVIDER_ERROR,
    Problem.MALFORMED: pb.EVALUATION_PROBLEM_MALFORMED,
    Problem.TRUNCATED: pb.EVALUATION_PROBLEM_TRUNCATED,
    Problem.MISMATCHED: pb.EVALUATION_PROBLEM_MISMATCHED,
    Problem.MISSING_RATING: pb.EVALUATION_PROBLEM_MISSING_RATING,
    Problem.OUT_OF_RANGE: pb.EVALUATION_PROBLEM_OUT_OF_RANGE,
    Problem.NONE_ACCEPTED: pb.EVALUATION_PROBLEM_NONE_ACCEPTED,
}
_POLICIES = {
    settings_pb2.PROPOSITION_FAILURE_POLICY_SKIP_CHUNK: Policy.SKIP_CHUNK,
    settings_pb2.PROPOSITION_FAILURE_POLICY_EMBED_SOURCE_CHUNK: Policy.EMBED_SOURCE_CHUNK,
}
_STATUS_OF = {number: status for status, number in _STATUSES.items()}
_PROBLEM_OF = {number: problem for problem, number in _PROBLEMS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunked:
    """What a DocumentChunked says.

    Attributes:
        document_id: Document.
        revision: Its revision.
        settings_digest: Digest of what shaped the chunks.
        chunks: Where they lie; None when there is none.
        chunk_count: How many.
        form: Passed on as it is.
    """

    document_id: str
    revision: int
    settings_digest: str
    chunks: PackAt | None
    chunk_count: int
    form: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What a DocumentErased says: every revision up to this one is gone."""

    document_id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """What a PropositionsEvaluated says.

    Attributes:
        chunked: What was evaluated.
        generation: For which generation.
        pack: Where the evaluations lie; None when there is no chunk.
        evaluations: One per chunk.
        reused: Chunks whose evaluation was made before.
        calls: Requests that were sent.
    """

    chunked: Chunked
    generation: int
    pack: PackAt | None = None
    evaluations: tuple[Evaluation, ...] = ()
    reused: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """What a crate's settings say of evaluations.

    Attributes:
        provider: Its enabled answer provider; None when there is none of a kind that is served.
        served: False when there is one of another kind.
        policy: What a failed evaluation means.
    """

    provider: Provider | None
    served: bool
    policy: Policy


def fact(message: Message) -> Chunked | Erased:
    """Read the event of a step.

    Raises:
        TypeError: When it is another event: the step's filter is wrong.
    """
    if isinstance(message, chunker_pb.DocumentChunked):
        return Chunked(
            document_id=message.document_id,
            revision=message.revision,
            settings_digest=message.settings_digest,
            chunks=_at(message.revision, message.chunks) if message.HasField("chunks") else None,
            chunk_count=message.chunk_count,
            form=message.form,
        )
    if isinstance(message, ingest_pb.DocumentErased):
        return Erased(message.document_id, message.revision)
    raise TypeError(f"the proposition step isn't meant for {message.DESCRIPTOR.name}")


def task(chunked: Chunked) -> str:
    """What progress on a revision is told under; its reader compares it with its own."""
    return f"{chunked.revision}:{chunked.settings_digest}"


def generation(message: Message) -> Generation:
    """Read a GenerationStarted.

    Raises:
        TypeError: When it is another event.
    """
    if not isinstance(message, index_pb.GenerationStarted):
        raise TypeError(f"GenerationStarted was asked for, not {message.DESCRIPTOR.name}")
    return Generation(message.generation, message.retrieval_strategy)


def configured(message: Message) -> Configured:
    """Read what a CrateConfigured says of evaluations.

    Raises:
        TypeError: When it is another event.
    """
    if not isinstance(message, ingest_pb.CrateConfigured):
        raise TypeError(f"CrateConfigured was asked for, not {message.DESCRIPTOR.name}")
    policy = _POLICIES.get(message.settings.proposition_failure_policy, Policy.FAIL_INDEXING)
    for provider in message.providers:
        if provider.role == settings_pb2.PROVIDER_ROLE_ANSWER and provider.enabled:
            served = provider.kind == settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE
            return Configured(provider=_provider(provider) if served else None, served=served, policy=policy)
    return Configured(provider=None, served=True, policy=policy)


def _provider(message: settings_pb2.Provider) -> Provider:
    return Provider(
        base_url=message.base_url,
        model=message.model,
        credential=message.credential,
        headers=tuple(sorted(message.headers.items())),
        timeout_s=message.timeout_s or DEFAULT_TIMEOUT_S,
        max_input_chars=message.max_input_chars,
        max_output_tokens=message.max_output_tokens or DEFAULT_OUTPUT_TOKENS,
        max_concurrency=message.max_concurrency or DEFAULT_CONCURRENCY,
    )


def sources(parts: Mapping[str, bytes], count: int) -> tuple[Source, ...]:
    """Read a chunks pack.

    Args:
        parts: Its parts.
        count: Chunks that it must hold.

    Returns:
        The chunks in order.

    Raises:
        ValueError: When the part is missing or unreadable, or the chunks don't add up.
    """
    message = chunker_pb.ChunkSet()
    read_part(message, parts, CHUNKS_PART)
    if [chunk.ordinal for chunk in message.chunks] != list(range(len(message.chunks))):
        raise ValueError("the chunks are not numbered 0, 1, 2 ...")
    if len(message.chunks) != count:
        raise ValueError(f"{count} chunks were announced, {len(message.chunks)} are there")
    return tuple(
        Source(text=chunk.text, title=message.title, heading_path=tuple(chunk.heading_path), context=chunk.context)
        for chunk in message.chunks
    )


def evaluation_parts(values: Sequence[Evaluation]) -> dict[str, bytes]:
    """Lay evaluations out as the parts of a pack."""
    message = pb.EvaluationSet(evaluations=[_evaluation_message(value) for value in values])
    return {EVALUATIONS_PART: message.SerializeToString(deterministic=True)}


def evaluations(parts: Mapping[str, bytes]) -> tuple[Evaluation, ...]:
    """Read an evaluations pack.

    Raises:
        ValueError: When the part is missing or unreadable, or holds what no evaluation can be.
    """
    message = pb.EvaluationSet()
    read_part(message, parts, EVALUATIONS_PART)
    return tuple(_evaluation(value) for value in message.evaluations)


def propositions_evaluated(value: Evaluated) -> pb.PropositionsEvaluated:
    """Build the event."""
    chunked, found = value.chunked, value.evaluations
    return pb.PropositionsEvaluated(
        document_id=chunked.document_id,
        revision=chunked.revision,
        settings_digest=chunked.settings_digest,
        generation=value.generation,
        evaluations=_ref(value.pack),
        accepted_count=sum(evaluation.accepted for evaluation in found),
        rejected_count=sum(evaluation.rejected for evaluation in found),
        skipped_count=sum(evaluation.status is Status.SKIPPED for evaluation in found),
        source_count=sum(evaluation.status is Status.SOURCE for evaluation in found),
        reused_count=value.reused,
        call_count=value.calls,
        chunks=_ref(chunked.chunks),
        chunk_count=chunked.chunk_count,
        form=envelope_pb2.Form.ValueType(chunked.form),
    )


def pack_of(message: Message) -> PackAt | None:
    """Where the evaluations of a PropositionsEvaluated lie; None when it has none, or is another event."""
    if isinstance(message, pb.PropositionsEvaluated) and message.HasField("evaluations"):
        return _at(message.revision, message.evaluations)
    return None


def list_response(
    evaluated: pb.PropositionsEvaluated, page: Sequence[Evaluation], next_page_token: str
) -> service_pb.ListPropositionsResponse:
    """Build the reply of ListPropositions."""
    reply = service_pb.ListPropositionsResponse(
        next_page_token=next_page_token,
        revision=evaluated.revision,
        generation=evaluated.generation,
        chunk_count=evaluated.chunk_count,
        accepted_count=evaluated.accepted_count,
        rejected_count=evaluated.rejected_count,
    )
    for value in page:
        message = _evaluation_message(value)
        told = reply.evaluations.add()
        for field in told.DESCRIPTOR.fields:
            if field.message_type is None:
                setattr(told, field.name, getattr(message, field.name))
        told.evaluated_at.CopyFrom(message.evaluated_at)
        for statement in message.propositions:
            listed = reply.propositions.add(chunk_ordinal=value.ordinal)
            for field in statement.DESCRIPTOR.fields:
                setattr(listed, field.name, getattr(statement, field.name))
    return reply


def _evaluation_message(value: Evaluation) -> pb.Evaluation:
    message = pb.Evaluation(
        chunk_ordinal=value.ordinal,
        fingerprint=value.fingerprint,
        status=_STATUSES[value.status],
        problem=_PROBLEMS[value.problem],
        diagnostics=value.diagnostics,
        model_id=value.model_id,
        prompt_version=value.prompt_version,
        source_hash=value.source_hash,
        generation_request_id=value.generation_request_id,
        grading_request_id=value.grading_request_id,
    )
    message.evaluated_at.FromDatetime(value.evaluated_at)
    for statement in value.statements:
        fidelity, clarity, completeness, focus = astuple(statement.scores) if statement.scores else (0, 0, 0, 0)
        message.propositions.add(
            ordinal=statement.ordinal,
            text=statement.text,
            fidelity=fidelity,
            clarity=clarity,
            completeness=completeness,
            focus=focus,
            accepted=statement.accepted,
        )
    return message


def _evaluation(message: pb.Evaluation) -> Evaluation:
    if message.status not in _STATUS_OF or message.problem not in _PROBLEM_OF:
        raise ValueError(f"chunk {message.chunk_ordinal} has a status or a problem that this version doesn't know")
    if message.fingerprint and len(message.fingerprint) != _HASH_BYTES:
        raise ValueError(f"the fingerprint of chunk {message.chunk_ordinal} isn't {_HASH_BYTES} bytes")
    return Evaluation(
        ordinal=message.chunk_ordinal,
        fingerprint=message.fingerprint,
        status=_STATUS_OF[message.status],
        problem=_PROBLEM_OF[message.problem],
        diagnostics=message.diagnostics,
        statements=tuple(_statement(proposition) for proposition in message.propositions),
        model_id=message.model_id,
        prompt_version=message.prompt_version,
        source_hash=message.source_hash,
        generation_request_id=message.generation_request_id,
        grading_request_id=message.grading_request_id,
        evaluated_at=message.evaluated_at.ToDatetime(UTC),
    )


def _statement(message: pb.EvaluatedProposition) -> Statement:
    scores = (message.fidelity, message.clarity, message.completeness, message.focus)
    if not any(scores):
        return Statement(message.ordinal, message.text)
    if not all(LOWEST <= score <= HIGHEST for score in scores):
        raise ValueError(f"proposition {message.ordinal} has scores that aren't {LOWEST} to {HIGHEST}")
    return Statement(message.ordinal, message.text, Scores(*scores))


def _at(revision: int, ref: envelope_pb2.PackRef) -> PackAt:
    return PackAt(revision, ref.id, ref.size_bytes)


def _ref(at: PackAt | None) -> envelope_pb2.PackRef | None:
    return envelope_pb2.PackRef(id=at.pack_id, size_bytes=at.size_bytes) if at else None
