"""Protobuf <-> domain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.embedder.v1 import embedder_events_pb2 as events_pb
from affidavit.embedder.v1 import embedder_service_pb2 as service_pb
from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1 import index_events_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2 as settings_pb
from affidavit.proposition.v1 import proposition_events_pb2 as proposition_pb
from google.protobuf.message import Message

from services.embedder.domain import vectors as layout
from services.embedder.domain.models import DEFAULT_TIMEOUT_S, Generation, Provider, ProviderKind, Purpose
from services.embedder.domain.reuse import PackAt, VectorSet
from services.embedder.domain.texts import ChunkText
from services.kernel.packs import read_part

HEADER_PART = "vectors"
FLOATS_PART = "float32"
CHUNKS_PART = "chunks"
EVALUATIONS_PART = "evaluations"
_KEY_BYTES = 32
_KINDS = {
    settings_pb.PROVIDER_KIND_LOCAL_ONNX: ProviderKind.LOCAL,
    settings_pb.PROVIDER_KIND_OPENAI_COMPATIBLE: ProviderKind.OPENAI_COMPATIBLE,
}
_PURPOSES = {
    service_pb.EMBED_PURPOSE_QUERY: Purpose.QUERY,
    service_pb.EMBED_PURPOSE_DOCUMENT: Purpose.DOCUMENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunked:
    """What a DocumentChunked says, or a PropositionsEvaluated about the same chunks.

    Attributes:
        document_id: Document.
        revision: Its revision.
        settings_digest: Digest of what shaped the chunks.
        chunks: Where they lie; None when there is none.
        chunk_count: How many.
        form: Passed on as it is.
        evaluations: Where the propositions lie; None when there is none, or none are asked for.
        accepted_count: Accepted propositions.
        evaluated_for: Generation that the propositions are for; 0: they weren't looked for.
    """

    document_id: str
    revision: int
    settings_digest: str
    chunks: PackAt | None
    chunk_count: int
    form: int
    evaluations: PackAt | None = None
    accepted_count: int = 0
    evaluated_for: int = 0


@dataclass(frozen=True, slots=True)
class Erased:
    """What a DocumentErased says: every revision up to this one is gone."""

    document_id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """What a RecordsEmbedded says.

    Attributes:
        chunked: What was embedded.
        generation: For which generation.
        vectors: Where the vectors lie; None when there is no chunk.
        model_id: Model; empty without chunks.
        dimension: Length of a vector; 0 without chunks.
        windowed: Texts that needed windows.
        computed: Texts that were computed for this revision.
        earlier: Older vectors of the document, newest first.
    """

    chunked: Chunked
    generation: int
    vectors: PackAt | None = None
    model_id: str = ""
    dimension: int = 0
    windowed: int = 0
    computed: int = 0
    earlier: tuple[PackAt, ...] = ()


def fact(message: Message) -> Chunked | Erased:
    """Read the event of a step.

    Args:
        message: DocumentChunked, PropositionsEvaluated or DocumentErased.

    Returns:
        What it says.

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
    if isinstance(message, proposition_pb.PropositionsEvaluated):
        return Chunked(
            document_id=message.document_id,
            revision=message.revision,
            settings_digest=message.settings_digest,
            chunks=_at(message.revision, message.chunks) if message.HasField("chunks") else None,
            chunk_count=message.chunk_count,
            form=message.form,
            evaluations=_at(message.revision, message.evaluations) if message.HasField("evaluations") else None,
            accepted_count=message.accepted_count,
            evaluated_for=message.generation,
        )
    if isinstance(message, ingest_pb.DocumentErased):
        return Erased(document_id=message.document_id, revision=message.revision)
    raise TypeError(f"the embedder's step isn't meant for {message.DESCRIPTOR.name}")


def task(chunked: Chunked) -> str:
    """What progress on a revision is told under; its reader compares it with its own."""
    return f"{chunked.revision}:{chunked.settings_digest}"


def embeds(message: Message, chunked: Chunked) -> bool:
    """Whether an event of the embedder says that these very chunks are embedded, for whichever generation."""
    return isinstance(message, events_pb.RecordsEmbedded) and (message.revision, message.settings_digest) == (
        chunked.revision,
        chunked.settings_digest,
    )


def chunk_texts(parts: Mapping[str, bytes]) -> tuple[str, tuple[ChunkText, ...]]:
    """Read a chunks pack.

    Args:
        parts: Its parts.

    Returns:
        Title of the document, and its chunks in order.

    Raises:
        ValueError: When the part is missing or unreadable, or the ordinals have a gap.
    """
    message = chunker_pb.ChunkSet()
    read_part(message, parts, CHUNKS_PART)
    if [chunk.ordinal for chunk in message.chunks] != list(range(len(message.chunks))):
        raise ValueError("the chunks are not numbered 0, 1, 2 ...")
    return message.title, tuple(ChunkText(chunk.text, tuple(chunk.heading_path)) for chunk in message.chunks)


def accepted_texts(parts: Mapping[str, bytes]) -> tuple[str, ...]:
    """Read the accepted propositions of an evaluations pack.

    Args:
        parts: Its parts.

    Returns:
        Their texts, by chunk and ordinal.

    Raises:
        ValueError: When the part is missing or unreadable.
    """
    message = proposition_pb.EvaluationSet()
    read_part(message, parts, EVALUATIONS_PART)
    return tuple(
        proposition.text
        for evaluation in message.evaluations
        if evaluation.status == proposition_pb.EVALUATION_STATUS_EVALUATED
        for proposition in evaluation.propositions
        if proposition.accepted
    )


def vector_parts(vector_set: VectorSet) -> dict[str, bytes]:
    """Lay vectors out as the parts of a pack."""
    rows, dimension = vector_set.vectors.shape
    header = events_pb.VectorSet(
        model_id=vector_set.model_id, dimension=dimension, count=rows, text_keys=vector_set.keys
    )
    return {
        HEADER_PART: header.SerializeToString(deterministic=True),
        FLOATS_PART: layout.to_bytes(vector_set.vectors),
    }


def vector_set(parts: Mapping[str, bytes], *, dimension: int) -> VectorSet:
    """Read a vectors pack.

    Args:
        parts: Its parts.
        dimension: Length that its vectors must have.

    Returns:
        Vectors and their keys.

    Raises:
        ValueError: When a part is missing or doesn't agree with the other.
    """
    header = events_pb.VectorSet()
    read_part(header, parts, HEADER_PART)
    keys = tuple(header.text_keys)
    if len(keys) != header.count or any(len(key) != _KEY_BYTES for key in keys):
        raise ValueError(f"{header.count} vectors have {len(keys)} text keys, or keys that aren't {_KEY_BYTES} bytes")
    if header.dimension != dimension:
        raise ValueError(f"the vectors have {header.dimension} numbers each, not {dimension}")
    if FLOATS_PART not in parts:
        raise ValueError(f"part {FLOATS_PART!r} is missing")
    vectors = layout.from_bytes(parts[FLOATS_PART], count=header.count, dimension=dimension)
    return VectorSet(header.model_id, keys, vectors)


def records_embedded(value: Embedded) -> events_pb.RecordsEmbedded:
    """Build the event."""
    chunked = value.chunked
    return events_pb.RecordsEmbedded(
        document_id=chunked.document_id,
        revision=chunked.revision,
        settings_digest=chunked.settings_digest,
        generation=value.generation,
        chunks=_ref(chunked.chunks),
        vectors=_ref(value.vectors),
        record_count=chunked.chunk_count + chunked.accepted_count,
        model_id=value.model_id,
        dimension=value.dimension,
        form=envelope_pb2.Form.ValueType(chunked.form),
        windowed_count=value.windowed,
        computed_count=value.computed,
        earlier=[events_pb.EarlierVectors(revision=at.revision, vectors=_ref(at)) for at in value.earlier],
        evaluations=_ref(chunked.evaluations),
        chunk_count=chunked.chunk_count if chunked.evaluated_for else 0,
    )


def history(message: Message) -> tuple[PackAt | None, tuple[PackAt, ...]]:
    """Where the vectors of a document's past lie.

    Args:
        message: Its last RecordsEmbedded.

    Returns:
        That revision's own, and the older ones that it names, newest first.

    Raises:
        TypeError: When it is another event.
    """
    if not isinstance(message, events_pb.RecordsEmbedded):
        raise TypeError(f"RecordsEmbedded was asked for, not {message.DESCRIPTOR.name}")
    own = _at(message.revision, message.vectors) if message.HasField("vectors") else None
    return own, tuple(_at(earlier.revision, earlier.vectors) for earlier in message.earlier)


def generation(message: Message) -> Generation:
    """Read a GenerationStarted.

    Raises:
        TypeError: When it is another event.
    """
    if not isinstance(message, index_pb.GenerationStarted):
        raise TypeError(f"GenerationStarted was asked for, not {message.DESCRIPTOR.name}")
    return Generation(
        message.generation,
        message.model_id,
        message.dimension,
        message.retrieval_strategy,
        message.model_fingerprint,
    )


def embedding_provider(message: Message) -> Provider | None:
    """Find a crate's embedding provider.

    Args:
        message: Its last CrateConfigured.

    Returns:
        The enabled one; None when there is none.

    Raises:
        TypeError: When it is another event.
    """
    if not isinstance(message, ingest_pb.CrateConfigured):
        raise TypeError(f"CrateConfigured was asked for, not {message.DESCRIPTOR.name}")
    for provider in message.providers:
        if provider.role == settings_pb.PROVIDER_ROLE_EMBEDDING and provider.enabled:
            return Provider(
                kind=_KINDS.get(provider.kind, ProviderKind.OTHER),
                base_url=provider.base_url,
                model=provider.model,
                credential=provider.credential,
                max_input_chars=provider.max_input_chars,
                timeout_s=provider.timeout_s or DEFAULT_TIMEOUT_S,
                dimension=provider.dimension,
            )
    return None


def purpose(request: service_pb.EmbedRequest) -> Purpose | None:
    """What a request's texts are; None when it doesn't say."""
    return _PURPOSES.get(request.purpose)


def embed_response(model_id: str, vectors: layout.Vectors) -> service_pb.EmbedResponse:
    """Build the reply of Embed."""
    return service_pb.EmbedResponse(model_id=model_id, dimension=vectors.shape[1], vectors=layout.to_bytes(vectors))


def model(*, model_id: str, dimension: int, max_tokens: int, fingerprint: str, ready: bool) -> service_pb.Model:
    """Build the description of an embedding model."""
    return service_pb.Model(
        model_id=model_id,
        role="embedding",
        dimension=dimension,
        max_tokens=max_tokens,
        fingerprint=fingerprint,
        ready=ready,
    )


def list_models_response(models: Sequence[service_pb.Model]) -> service_pb.ListModelsResponse:
    """Build the reply of ListModels."""
    return service_pb.ListModelsResponse(models=models)


def _at(revision: int, ref: envelope_pb2.PackRef) -> PackAt:
    return PackAt(revision, ref.id, ref.size_bytes)


def _ref(at: PackAt | None) -> envelope_pb2.PackRef | None:
    return envelope_pb2.PackRef(id=at.pack_id, size_bytes=at.size_bytes) if at else None
