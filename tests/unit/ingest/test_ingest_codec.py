"""Messages <-> values, both ways."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime

import pytest
from affidavit.chunker.v1.chunker_events_pb2 import DocumentChunked
from affidavit.embedder.v1.embedder_events_pb2 import RecordsEmbedded
from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1.index_events_pb2 import RevisionIndexed
from affidavit.ingest.v1 import ingest_events_pb2 as events_pb
from affidavit.ingest.v1 import settings_pb2 as cfg
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.codec import configuration, content, facts
from services.ingest.domain.chunking import ChunkPatch, ChunkSettings
from services.ingest.domain.documents import Form, Manifest, Pack, PutDecision, PutOutcome
from services.ingest.domain.lifecycle import (
    Chunked,
    Embedded,
    Erased,
    Failed,
    Indexed,
    Ingested,
    Retired,
)
from services.ingest.domain.normalize import Block, BlockKind, Normalized, Run
from services.ingest.domain.providers import Provider, ProviderKind, ProviderRole
from services.ingest.domain.refusals import Refused
from services.ingest.domain.settings import (
    AnswerMode,
    CrateSettings,
    PropositionFailurePolicy,
    RetrievalMode,
    RetrievalStrategy,
    SettingsPatch,
)
from services.ingest.domain.values import (
    CrateRow,
    JobRow,
)
from services.kernel.envelope import Event

NOW = datetime(2024, 5, 1, 12, 30, 15, 123_456, tzinfo=UTC)
DOC = "0123456789abcdef" * 2
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001  (bounds must be naive)
COUNTS = st.integers(0, 2**31 - 1)
SETTINGS = st.builds(
    CrateSettings,
    strict_grounding=st.booleans(),
    allow_client_history=st.booleans(),
    inline_citations=st.booleans(),
    structured_sources=st.booleans(),
    retrieval_mode=st.sampled_from(RetrievalMode),
    retrieval_strategy=st.sampled_from(RetrievalStrategy),
    proposition_failure_policy=st.sampled_from(PropositionFailurePolicy),
    source_limit=COUNTS,
    mode=st.sampled_from(AnswerMode),
    allow_downgrade=st.booleans(),
    profile=TEXTS,
)
PROVIDERS = st.builds(
    Provider,
    role=st.sampled_from(ProviderRole),
    kind=st.sampled_from(ProviderKind),
    enabled=st.booleans(),
    base_url=TEXTS,
    model=TEXTS,
    credential=TEXTS,
    max_input_chars=COUNTS,
    timeout_s=COUNTS,
    dimension=COUNTS,
)
PACKS = st.builds(Pack, st.binary(min_size=32, max_size=32), COUNTS)
CHUNKING = st.builds(ChunkSettings, COUNTS, COUNTS)
MANIFESTS = st.builds(
    Manifest,
    source_id=TEXTS,
    uri=TEXTS,
    media_type=TEXTS,
    charset=TEXTS,
    title=TEXTS,
    metadata=st.dictionaries(TEXTS, TEXTS, max_size=4).map(lambda found: tuple(sorted(found.items()))),
    source_domain=TEXTS,
    content_hash=st.binary(min_size=32, max_size=32),
    size_bytes=COUNTS,
    notices=st.lists(TEXTS, max_size=3).map(tuple),
)


def event(message: Message, *, service: str = "ingest", key: str = "a:1:b:0::s1", position: int = 7) -> Event:
    return Event(
        key=key,
        crate="main",
        service=service,
        aggregate=DOC,
        name=message.DESCRIPTOR.name,
        stream="KNOWLEDGE",
        position=position,
        time=NOW,
        message=message,
    )


@given(SETTINGS)
def test_settings_survive_the_wire(settings: CrateSettings) -> None:
    message = configuration.settings_message(settings)
    assert configuration.stored_settings(message) == settings
    assert configuration.settings_patch(message) == SettingsPatch(
        **{field.name: getattr(settings, field.name) for field in fields(settings)}
    )
    assert all(message.HasField(field.name) for field in message.DESCRIPTOR.fields)  # type: ignore[arg-type]  # literals


def test_absent_and_unspecified_fields_leave_settings_as_they_are() -> None:
    assert configuration.settings_patch(cfg.CrateSettings()) == SettingsPatch()
    unspecified = cfg.CrateSettings(retrieval_mode=cfg.RETRIEVAL_MODE_UNSPECIFIED, mode=cfg.ANSWER_MODE_UNSPECIFIED)
    assert configuration.settings_patch(unspecified) == SettingsPatch()
    # A field that a later release adds is absent in older events, and has its default.
    assert configuration.stored_settings(cfg.CrateSettings(source_limit=3)) == CrateSettings(source_limit=3)


def test_unknown_numbers_are_refused_by_name() -> None:
    with pytest.raises(Refused, match="retrieval_mode 9 is unknown: use one of hybrid, lexical, semantic"):
        configuration.settings_patch(cfg.CrateSettings(retrieval_mode=9))  # type: ignore[arg-type]  # the point
    with pytest.raises(Refused, match="provider role 0 is unknown: use one of embedding, answer, rerank"):
        configuration.provider(cfg.Provider())
    with pytest.raises(Refused, match="provider kind 0 is unknown"):
        configuration.provider(cfg.Provider(role=cfg.PROVIDER_ROLE_EMBEDDING))


@given(PROVIDERS)
def test_providers_survive_the_wire(provider: Provider) -> None:
    assert configuration.providers([configuration.provider_message(provider)]) == (provider,)


@given(CHUNKING)
def test_chunk_settings_survive_the_wire(chunking: ChunkSettings) -> None:
    message = configuration.chunk_message(chunking)
    assert configuration.chunk_settings(message) == chunking
    assert configuration.chunk_patch(message) == ChunkPatch(chunking.size_chars, chunking.overlap_chars)
    assert configuration.chunk_patch(cfg.ChunkSettings()) == ChunkPatch()


@given(TIMES)
def test_times_survive_the_wire_to_the_microsecond(time: datetime) -> None:
    assert configuration.moment("t", configuration.timestamp(time)) == time


def test_times_without_a_zone_or_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        configuration.timestamp(datetime(2024, 1, 1))  # noqa: DTZ001  (the point)
    with pytest.raises(Refused, match="effective_at isn't a time between the years 1 and 9999"):
        configuration.moment("effective_at", Timestamp(seconds=2**40))


@given(SETTINGS, st.lists(PROVIDERS, max_size=3), PACKS, TIMES, COUNTS)
def test_crates_survive_the_log(
    settings: CrateSettings, providers: list[Provider], secret: Pack, time: datetime, number: int
) -> None:
    row = CrateRow(
        crate_id="main",
        revision=number,
        settings=settings,
        providers=tuple(providers),
        secret=secret,
        configured_at=time,
        position=7,
    )
    assert facts.fact(event(facts.crate_configured(row))) == row


@given(CHUNKING, TIMES)
def test_jobs_survive_the_log(chunking: ChunkSettings, time: datetime) -> None:
    row = JobRow(crate_id="main", job_id="nightly", chunking=chunking, configured_at=time, position=7)
    assert facts.fact(event(facts.job_configured(row))) == row
    assert facts.job_aggregate("nightly") == "job-nightly"


@given(MANIFESTS, PACKS, TIMES, st.sampled_from(Form), st.sampled_from(PutOutcome))
def test_puts_survive_the_log(
    manifest: Manifest, source: Pack, time: datetime, form: Form, outcome: PutOutcome
) -> None:
    chunking = ChunkSettings(700, 70)
    decision = PutDecision(outcome=outcome, revision=3, expected=6, settings_digest="d" * 32)
    message = facts.document_ingested(
        DOC,
        decision,
        source=source,
        chunking=chunking,
        job_id="nightly",
        form=form,
        effective_at=time,
        ingested_at=NOW,
    )
    assert facts.fact(event(message), manifest) == Ingested(
        crate_id="main",
        document_id=DOC,
        position=7,
        revision=3,
        source=source,
        chunking=chunking,
        settings_digest="d" * 32,
        job_id="nightly",
        form=form,
        effective_at=time,
        ingested_at=NOW,
        manifest=manifest,
        rechunk=outcome is PutOutcome.RECHUNKED,
        submission="s1",
    )


def test_ends_survive_the_log() -> None:
    retired = facts.fact(event(facts.document_retired(DOC, 2, NOW)))
    assert retired == Retired(crate_id="main", document_id=DOC, position=7, revision=2, submission="s1")
    erased = facts.fact(event(facts.document_erased(DOC, 2, NOW), key="other"))
    assert erased == Erased(crate_id="main", document_id=DOC, position=7, revision=2)


def test_steps_of_the_pipeline_are_read() -> None:
    chunked = DocumentChunked(document_id=DOC, revision=2, settings_digest="d", chunk_count=5)
    assert facts.fact(event(chunked, service="chunker")) == Chunked(
        crate_id="main", document_id=DOC, position=7, revision=2, settings_digest="d", chunks=5
    )
    embedded = RecordsEmbedded(document_id=DOC, revision=2, settings_digest="d", record_count=5)
    assert facts.fact(event(embedded, service="embedder")) == Embedded(
        crate_id="main", document_id=DOC, position=7, revision=2, settings_digest="d", records=5
    )
    indexed = RevisionIndexed(document_id=DOC, revision=2, position=6)
    assert facts.fact(event(indexed, service="index")) == Indexed(
        crate_id="main", document_id=DOC, position=7, revision=2, applied=6
    )


@pytest.mark.parametrize("service", ["ingest", "chunker"])
def test_failures_are_read(service: str) -> None:
    task = envelope_pb2.TaskFailed(
        service=service,
        stream="KNOWLEDGE",
        position=5,
        document_id=DOC,
        revision=2,
        code="corrupt",
        reason="damaged",
        attempts=3,
    )
    task.failed_at.FromDatetime(NOW)
    fact = facts.fact(event(task, service=service))
    assert isinstance(fact, Failed)
    assert fact.own is (service == "ingest")


def test_other_events_are_refused() -> None:
    with pytest.raises(Refused, match="event 7 is ClockAdvanced, which ingest doesn't follow"):
        facts.fact(event(events_pb.ClockAdvanced()))
    with pytest.raises(Refused, match="form 0 is unknown"):
        facts.fact(event(events_pb.DocumentIngested(document_id=DOC)))


@given(MANIFESTS)
def test_manifests_survive_their_pack(manifest: Manifest) -> None:
    assert content.manifest_value(content.manifest_bytes(manifest)) == manifest


def test_bytes_that_are_no_manifest_are_refused() -> None:
    with pytest.raises(Refused, match="manifest can't be read"):
        content.manifest_value(b"\xff")


def test_a_normalised_document_is_written_whole() -> None:
    document = Normalized(
        media_type="text/markdown",
        charset="utf-8",
        form="text",
        title="Own title",
        text="# A\nb",
        runs=(Run(0, 5, 1, 6, 3, 8, verbatim=True),),
        blocks=tuple(Block(kind, 0, 5, ("A", "B"), "context") for kind in BlockKind),
        headings=("A",),
        metadata=(),
        notices=(),
    )
    message = events_pb.NormalizedDocument.FromString(content.normalized_bytes(document, "Given title"))
    assert (message.text, message.title, message.charset, list(message.headings)) == (
        "# A\nb",
        "Given title",
        "utf-8",
        ["A"],
    )
    assert list(message.runs) == [
        events_pb.TextRun(text_start=0, text_end=5, char_start=1, char_end=6, byte_start=3, byte_end=8, verbatim=True)
    ]
    kinds = [events_pb.BlockKind.Name(block.kind) for block in message.blocks]
    assert kinds == [f"BLOCK_KIND_{kind.name}" for kind in BlockKind]
    assert (list(message.blocks[0].heading_path), message.blocks[0].context) == (["A", "B"], "context")
