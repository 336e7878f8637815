"""Protobuf <-> domain values of the embedder."""

from __future__ import annotations

import numpy as np
import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.embedder.v1 import embedder_events_pb2 as pb
from affidavit.embedder.v1 import embedder_service_pb2 as service_pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_events_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2 as settings_pb

from services.embedder import codec
from services.embedder.domain.models import Generation, Provider, ProviderKind, Purpose
from services.embedder.domain.reuse import PackAt, VectorSet
from services.embedder.domain.texts import ChunkText

DOC = "d" * 32
VECTORS = np.array([[1.0, 0.0], [0.6, 0.8]], dtype=np.float32)
KEYS = (b"k" * 32, b"l" * 32)


def ref(fill: bytes) -> event_pb.PackRef:
    return event_pb.PackRef(id=fill * 32, size_bytes=9)


def chunked_message(**changes: object) -> chunker_pb.DocumentChunked:
    fields = {"document_id": DOC, "revision": 2, "settings_digest": "s", "chunk_count": 2, "form": 3}
    return chunker_pb.DocumentChunked(**{**fields, **changes})  # type: ignore[arg-type]  # fields of mixed types


def test_document_chunked_is_read() -> None:
    assert codec.fact(chunked_message(chunks=ref(b"c"))) == codec.Chunked(
        document_id=DOC,
        revision=2,
        settings_digest="s",
        chunks=PackAt(2, b"c" * 32, 9),
        chunk_count=2,
        form=event_pb.FORM_INFORMAL,
    )


def test_document_without_chunks_has_no_pack() -> None:
    found = codec.fact(chunked_message(chunk_count=0))
    assert isinstance(found, codec.Chunked)
    assert found.chunks is None


def test_document_erased_is_read() -> None:
    assert codec.fact(ingest_pb.DocumentErased(document_id=DOC, revision=4)) == codec.Erased(DOC, 4)


def test_other_events_are_a_fault_of_the_wiring() -> None:
    retired = ingest_pb.DocumentRetired()
    for read in (codec.fact, codec.history, codec.generation, codec.embedding_provider):
        with pytest.raises(TypeError, match="DocumentRetired"):
            read(retired)


def test_chunk_texts_are_read() -> None:
    message = chunker_pb.ChunkSet(
        title="Manual",
        chunks=[
            chunker_pb.Chunk(ordinal=0, text="a", heading_path=["x", "y"]),
            chunker_pb.Chunk(ordinal=1, text="b"),
        ],
    )
    assert codec.chunk_texts({"chunks": message.SerializeToString()}) == (
        "Manual",
        (ChunkText("a", ("x", "y")), ChunkText("b")),
    )


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({}, "part 'chunks' is missing"),
        ({"chunks": b"\xff"}, "can't be read"),
        ({"chunks": chunker_pb.ChunkSet(chunks=[chunker_pb.Chunk(ordinal=1)]).SerializeToString()}, "not numbered"),
    ],
)
def test_damaged_chunks_are_refused(parts: dict[str, bytes], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        codec.chunk_texts(parts)


def test_vectors_come_back() -> None:
    parts = codec.vector_parts(VectorSet("m", KEYS, VECTORS))
    assert parts["float32"] == VECTORS.astype("<f4").tobytes()
    header = pb.VectorSet.FromString(parts["vectors"])
    assert (header.model_id, header.dimension, header.count) == ("m", 2, 2)
    again = codec.vector_set(parts, dimension=2)
    assert (again.model_id, again.keys) == ("m", KEYS)
    assert np.array_equal(again.vectors, VECTORS)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"vectors": b"\xff"}, "can't be read"),
        ({"vectors": pb.VectorSet(dimension=2, count=2, text_keys=[KEYS[0]]).SerializeToString()}, "text keys"),
        ({"vectors": pb.VectorSet(dimension=2, count=1, text_keys=[b"short"]).SerializeToString()}, "32 bytes"),
        ({"vectors": pb.VectorSet(dimension=3, count=2, text_keys=KEYS).SerializeToString()}, "3 numbers each, not 2"),
        ({"float32": b"\0" * 12}, "12 bytes"),
    ],
)
def test_damaged_vectors_are_refused(changes: dict[str, bytes], problem: str) -> None:
    parts = codec.vector_parts(VectorSet("m", KEYS, VECTORS)) | changes
    with pytest.raises(ValueError, match=problem):
        codec.vector_set(parts, dimension=2)


@pytest.mark.parametrize("part", ["vectors", "float32"])
def test_a_missing_part_is_named(part: str) -> None:
    parts = codec.vector_parts(VectorSet("m", KEYS, VECTORS))
    del parts[part]
    with pytest.raises(ValueError, match=f"part '{part}' is missing"):
        codec.vector_set(parts, dimension=2)


def embedded(**changes: object) -> codec.Embedded:
    chunked = codec.fact(chunked_message(chunks=ref(b"c")))
    assert isinstance(chunked, codec.Chunked)
    fields = {
        "chunked": chunked,
        "generation": 1,
        "vectors": PackAt(2, b"v" * 32, 7),
        "model_id": "m",
        "dimension": 2,
        "windowed": 1,
        "computed": 2,
        "earlier": (PackAt(1, b"e" * 32, 5),),
    }
    return codec.Embedded(**{**fields, **changes})  # type: ignore[arg-type]  # fields of mixed types


def test_records_embedded_is_built() -> None:
    assert codec.records_embedded(embedded()) == pb.RecordsEmbedded(
        document_id=DOC,
        revision=2,
        settings_digest="s",
        generation=1,
        chunks=ref(b"c"),
        vectors=event_pb.PackRef(id=b"v" * 32, size_bytes=7),
        record_count=2,
        model_id="m",
        dimension=2,
        form=event_pb.FORM_INFORMAL,
        windowed_count=1,
        computed_count=2,
        earlier=[pb.EarlierVectors(revision=1, vectors=event_pb.PackRef(id=b"e" * 32, size_bytes=5))],
    )


def test_history_names_own_and_older_vectors() -> None:
    message = codec.records_embedded(embedded())
    assert codec.history(message) == (PackAt(2, b"v" * 32, 7), (PackAt(1, b"e" * 32, 5),))


def test_history_of_an_empty_revision_has_only_older_vectors() -> None:
    message = codec.records_embedded(embedded(vectors=None))
    assert not message.HasField("vectors")
    assert codec.history(message) == (None, (PackAt(1, b"e" * 32, 5),))


def test_generation_is_read() -> None:
    message = index_pb.GenerationStarted(
        generation=1, model_id="m", dimension=2, retrieval_strategy="standard", model_fingerprint="f"
    )
    assert codec.generation(message) == Generation(1, "m", 2, "standard", "f")


def provider(**changes: object) -> settings_pb.Provider:
    fields = {
        "role": settings_pb.PROVIDER_ROLE_EMBEDDING,
        "kind": settings_pb.PROVIDER_KIND_OPENAI_COMPATIBLE,
        "enabled": True,
        "base_url": "https://a",
        "model": "m",
        "credential": "env:KEY",
        "max_input_chars": 100,
        "timeout_s": 5,
        "dimension": 3,
    }
    return settings_pb.Provider(**{**fields, **changes})  # type: ignore[arg-type]  # fields of mixed types


def test_embedding_provider_is_read() -> None:
    answer = provider(role=settings_pb.PROVIDER_ROLE_ANSWER)
    message = ingest_pb.CrateConfigured(providers=[answer, provider()])
    assert codec.embedding_provider(message) == Provider(
        kind=ProviderKind.OPENAI_COMPATIBLE,
        base_url="https://a",
        model="m",
        credential="env:KEY",
        max_input_chars=100,
        timeout_s=5,
        dimension=3,
    )


def test_timeout_has_a_default() -> None:
    found = codec.embedding_provider(ingest_pb.CrateConfigured(providers=[provider(timeout_s=0)]))
    assert found is not None
    assert found.timeout_s == 30


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (settings_pb.PROVIDER_KIND_LOCAL_ONNX, ProviderKind.LOCAL),
        (settings_pb.PROVIDER_KIND_TRITON, ProviderKind.OTHER),
        (settings_pb.PROVIDER_KIND_UNSPECIFIED, ProviderKind.OTHER),
    ],
)
def test_provider_kinds(kind: settings_pb.ProviderKind, expected: ProviderKind) -> None:
    found = codec.embedding_provider(ingest_pb.CrateConfigured(providers=[provider(kind=kind)]))
    assert found is not None
    assert found.kind is expected


def test_disabled_provider_is_none() -> None:
    assert codec.embedding_provider(ingest_pb.CrateConfigured(providers=[provider(enabled=False)])) is None


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (service_pb.EMBED_PURPOSE_QUERY, Purpose.QUERY),
        (service_pb.EMBED_PURPOSE_DOCUMENT, Purpose.DOCUMENT),
        (service_pb.EMBED_PURPOSE_UNSPECIFIED, None),
    ],
)
def test_purposes(wire: service_pb.EmbedPurpose.ValueType, expected: Purpose | None) -> None:
    assert codec.purpose(service_pb.EmbedRequest(purpose=wire)) is expected


def test_replies_are_built() -> None:
    assert codec.embed_response("m", VECTORS) == service_pb.EmbedResponse(
        model_id="m", dimension=2, vectors=VECTORS.astype("<f4").tobytes()
    )
    model = codec.model(model_id="m", dimension=2, max_tokens=5, fingerprint="f", ready=True)
    assert codec.list_models_response([model]) == service_pb.ListModelsResponse(
        models=[
            service_pb.Model(model_id="m", role="embedding", dimension=2, max_tokens=5, fingerprint="f", ready=True)
        ]
    )
