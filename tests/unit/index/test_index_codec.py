"""Between protobuf and domain values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import numpy as np
import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.embedder.v1 import embedder_events_pb2 as embedder_pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_events_pb2 as events_pb
from affidavit.index.v1 import index_service_pb2 as service_pb
from affidavit.index.v1 import living_pb2 as living_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2 as settings_pb
from google.protobuf.message import Message

from services.index.codec import facts, packs, replies
from services.index.codec.forms import form, form_value
from services.index.domain.content import (
    ChunkKey,
    Description,
    Fetched,
    RecordCounts,
    RevisionPage,
    Signal,
    StoredChunk,
)
from services.index.domain.documents import Embedded, Erased, Ingested, Retired
from services.index.domain.force import Force, instant
from services.index.domain.generations import Generation, GenerationEnd, GenerationStart, GenerationStatus
from services.index.domain.records import Form, Kind, LaneFilter, LaneHit, Reach, TermStatistics
from services.index.domain.requests import parse_page_token

DOC = "c" * 32
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def embedded(count: int = 2, dimension: int = 3) -> Embedded:
    return Embedded(
        document_id=DOC,
        revision=2,
        settings_digest="d",
        generation=1,
        chunks_pack=b"c" * 32,
        vectors_pack=b"v" * 32,
        chunk_count=count,
        model_id="m",
        dimension=dimension,
        form=Form.STRUCTURED,
        position=7,
    )


def start() -> GenerationStart:
    return GenerationStart(
        generation=1,
        model_id="m",
        dimension=3,
        model_fingerprint="f",
        retrieval_strategy="standard",
        prompt_version="p",
        started_at=NOON,
        position=7,
    )


def with_time(message: Message, field: str) -> Message:
    getattr(message, field).FromDatetime(NOON)
    return message


def test_facts_about_documents_are_read() -> None:
    message = ingest_pb.DocumentIngested(document_id=DOC, revision=2, settings_digest="d", form=event_pb.FORM_INFORMAL)
    expected = Ingested(
        document_id=DOC,
        revision=2,
        settings_digest="d",
        form=Form.INFORMAL,
        effective_at=None,
        effective_from=instant(NOON),
        position=7,
    )
    assert facts.fact(message, 7, NOON) == expected
    dated = facts.fact(with_time(message, "effective_at"), 7, NOON)
    assert isinstance(dated, Ingested)
    assert dated.effective_at == NOON
    assert facts.fact(ingest_pb.DocumentRetired(document_id=DOC, revision=2), 7, NOON) == Retired(
        document_id=DOC, revision=2, position=7
    )
    assert facts.fact(ingest_pb.DocumentErased(document_id=DOC, revision=2), 7, NOON) == Erased(
        document_id=DOC, revision=2, position=7
    )


def test_vectors_facts_are_read_and_counted() -> None:
    message = embedder_pb.RecordsEmbedded(
        document_id=DOC,
        revision=2,
        settings_digest="d",
        generation=1,
        chunks=event_pb.PackRef(id=b"c" * 32),
        vectors=event_pb.PackRef(id=b"v" * 32),
        record_count=2,
        model_id="m",
        dimension=3,
        form=event_pb.FORM_STRUCTURED,
    )
    assert facts.fact(message, 7, NOON) == embedded()
    assert facts.record_count(message) == 2
    assert facts.record_count(ingest_pb.DocumentRetired()) == 0


def test_generations_round_trip() -> None:
    assert facts.fact(facts.generation_started(start()), 7, NOON) == start()
    activated = facts.generation_activated(3, NOON)
    assert activated.activated_at.ToDatetime(tzinfo=UTC) == NOON
    assert facts.fact(activated, 7, NOON) == GenerationEnd(generation=3, status=GenerationStatus.ACTIVE, position=7)
    assert facts.fact(events_pb.GenerationFailed(generation=3), 7, NOON) == GenerationEnd(
        generation=3, status=GenerationStatus.FAILED, position=7
    )


def test_events_about_neither_say_nothing() -> None:
    assert facts.fact(ingest_pb.CrateConfigured(revision=1), 7, NOON) is None


def test_the_strategy_is_read_from_the_crate() -> None:
    configured = ingest_pb.CrateConfigured(
        settings=settings_pb.CrateSettings(retrieval_strategy=settings_pb.RETRIEVAL_STRATEGY_PROPOSITION)
    )
    assert facts.retrieval_strategy(configured) == "proposition"
    assert facts.retrieval_strategy(ingest_pb.CrateConfigured()) == ""
    assert facts.retrieval_strategy(ingest_pb.DocumentErased()) == ""


def test_a_signal_names_the_revision_and_its_position() -> None:
    signal = Signal(
        number=1,
        crate_id="main",
        document_id=DOC,
        revision=2,
        settings_digest="d",
        generation=1,
        record_count=4,
        position=9,
    )
    assert facts.revision_indexed(signal) == events_pb.RevisionIndexed(
        document_id=DOC, revision=2, generation=1, record_count=4, position=9
    )


@pytest.mark.parametrize("known", list(Form))
def test_forms_round_trip(known: Form) -> None:
    assert form(form_value(known)) is known


def test_forms_that_are_not_known_are_weighed_like_text() -> None:
    assert form(event_pb.FORM_UNSPECIFIED) is Form.TEXT
    assert form(77) is Form.TEXT


def test_chunks_are_read_with_nul_replaced_in_what_tables_hold() -> None:
    chunk = chunker_pb.Chunk(
        ordinal=0, text="nul \0 stays in the blob", heading_path=["A", "B"], context="x", overlap_chars=2
    )
    part = chunker_pb.ChunkSet(
        chunks=[chunk, chunker_pb.Chunk(ordinal=1, text="b", overlap_chars=9)],
        title="ti\0tle",
        headings=["h\0"],
        source_id="s",
        source_domain="dom",
        media_type="text/plain",
        charset="utf-8",
        uri="u",
    ).SerializeToString()
    told, (first, second) = packs.description_and_chunks(part)
    assert told == Description(
        title="ti\ufffdtle",
        source_id="s",
        source_domain="dom",
        media_type="text/plain",
        charset="utf-8",
        uri="u",
        headings=("h\ufffd",),
    )
    assert (first.heading_path, first.context, first.overlap_chars) == (("A", "B"), "x", 2)
    assert packs.chunk_content(first.encoded) == first
    # An overlap can't be longer than the text.
    assert second.overlap_chars == 1


def test_chunk_sets_that_are_broken_are_refused() -> None:
    with pytest.raises(ValueError, match="no ChunkSet"):
        packs.description_and_chunks(b"\xff\xff\xff")
    gap = chunker_pb.ChunkSet(chunks=[chunker_pb.Chunk(ordinal=1, text="a")])
    with pytest.raises(ValueError, match="ordinals"):
        packs.description_and_chunks(gap.SerializeToString())


def vector_parts(rows: np.ndarray, count: int | None = None) -> dict[str, bytes]:
    header = embedder_pb.VectorSet(model_id="m", dimension=rows.shape[1], count=len(rows) if count is None else count)
    return {"vectors": header.SerializeToString(), "float32": rows.astype("<f4").tobytes()}


def test_vectors_are_read() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(packs.vectors(vector_parts(rows), embedded()), rows)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"vectors": b"\xff\xff"}, "no VectorSet"),
        ({}, "the pack 0 of 0 in 0 bytes"),
        (vector_parts(np.zeros((1, 3))), "names 2 vectors of length 3, the pack 1 of 3"),
        (vector_parts(np.zeros((2, 2))), "the pack 2 of 2"),
        (vector_parts(np.zeros((1, 3)), count=2), "in 12 bytes"),
        (vector_parts(np.array([[1, 2, np.nan], [1, 2, 3]])), "isn't finite"),
        (vector_parts(np.array([[1, 2, np.inf], [1, 2, 3]])), "isn't finite"),
    ],
)
def test_vectors_that_are_broken_are_refused(parts: dict[str, bytes], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        packs.vectors(parts, embedded())


def test_filters_are_read_without_repeats() -> None:
    message = service_pb.LaneFilter(
        kind=service_pb.RECORD_KIND_DOCUMENT,
        forms=[event_pb.FORM_TEXT, event_pb.FORM_TEXT, event_pb.FORM_INFORMAL],
        document_ids=["x", "y", "x"],
        source_domains=["b", "a"],
    )
    assert replies.lane_filter(message) == LaneFilter(
        kind=Kind.DOCUMENT, forms=(Form.TEXT, Form.INFORMAL), document_ids=("x", "y"), source_domains=("b", "a")
    )
    assert replies.lane_filter(service_pb.LaneFilter()) == LaneFilter(kind=Kind.CHUNK)


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"filter\.kind is 9"):
        replies.lane_filter(service_pb.LaneFilter(kind=service_pb.RecordKind.ValueType(9)))


def test_query_vectors_are_read() -> None:
    found = replies.query_vector(np.array([1, 2], dtype="<f4").tobytes())
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [1, 2])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "0 bytes"),
        (b"abc", "3 bytes"),
        (np.zeros(3, "<f4").tobytes(), "points nowhere"),
        (np.array([1, np.nan], "<f4").tobytes(), "points nowhere"),
    ],
)
def test_query_vectors_that_are_broken_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        replies.query_vector(data)


def test_the_keyword_reply_weighs_each_term_once_in_the_order_of_the_query() -> None:
    hits = [LaneHit(DOC, 2, 5, 1.5, Form.INFORMAL)]
    reply = replies.keyword_response(
        hits, ["b", "a", "b"], TermStatistics(10, {"a": 1, "b": 0}), position=9, generation=1
    )
    assert [(term.term, term.document_frequency) for term in reply.terms] == [("b", 0), ("a", 1)]
    assert reply.terms[0].idf == 0
    assert reply.terms[1].idf > 0
    assert (reply.position, reply.generation) == (9, 1)
    (hit,) = reply.hits
    assert (hit.document_id, hit.revision, hit.ordinal, hit.score, hit.form) == (DOC, 2, 5, 1.5, event_pb.FORM_INFORMAL)


def test_the_vector_reply_carries_hits_position_and_generation() -> None:
    reply = replies.vector_response([LaneHit(DOC, 1, 0, 0.5, Form.TEXT)], position=3, generation=2)
    assert (reply.position, reply.generation, reply.hits[0].score) == (3, 2, 0.5)


def stored(ordinal: int, *, effective_at: datetime | None = NOON) -> StoredChunk:
    return StoredChunk(
        key=ChunkKey(document_id=DOC, revision=2, ordinal=ordinal),
        encoded=chunker_pb.Chunk(ordinal=ordinal, text=f"text {ordinal}").SerializeToString(),
        description=Description(title="t", source_id="s", source_domain="d", media_type="m", charset="c", uri="u"),
        form=Form.STRUCTURED,
        force=Force(effective_from=0, position=4),
        effective_at=effective_at,
        ingested_position=4,
        terms=("a", "b"),
    )


def test_fetched_chunks_carry_what_is_told_about_their_revision() -> None:
    fetched = Fetched(position=8, chunks=(stored(1), stored(0, effective_at=None)))
    reply = replies.fetch_response(fetched, service_pb.FetchChunksRequest(with_terms=True))
    first, second = reply.chunks
    assert reply.position == 8
    assert (first.key.document_id, first.key.revision, first.key.ordinal) == (DOC, 2, 1)
    assert first.HasField("chunk")
    assert first.chunk.text == "text 1"
    assert (first.title, first.source_id, first.source_domain, first.media_type, first.charset, first.uri) == tuple(
        "tsdmcu"
    )
    assert first.form == event_pb.FORM_STRUCTURED
    assert first.effective_at.ToDatetime(tzinfo=UTC) == NOON
    assert first.ingested_position == 4
    assert list(first.terms) == ["a", "b"]
    assert not second.HasField("effective_at")
    assert not replies.fetch_response(fetched, service_pb.FetchChunksRequest(only_terms=["a"])).chunks[0].terms


def test_fetched_chunks_carry_no_more_than_was_asked_for() -> None:
    encoded = chunker_pb.Chunk(text="text", runs=[ingest_pb.TextRun(text_end=4)]).SerializeToString()
    fetched = Fetched(position=8, chunks=(replace(stored(1), encoded=encoded),))
    request = service_pb.FetchChunksRequest(with_terms=True, only_terms=["b", "z"], without_runs=True)
    (shown,) = replies.fetch_response(fetched, request).chunks
    assert list(shown.terms) == ["b"]
    assert (shown.chunk.text, len(shown.chunk.runs)) == ("text", 0)
    (whole,) = replies.fetch_response(fetched, service_pb.FetchChunksRequest(with_terms=True)).chunks
    assert (list(whole.terms), len(whole.chunk.runs)) == (["a", "b"], 1)


def test_chunk_keys_are_read() -> None:
    keys = [service_pb.ChunkKey(document_id=DOC, revision=2, ordinal=1)]
    assert replies.chunk_keys(keys) == (ChunkKey(document_id=DOC, revision=2, ordinal=1),)


def test_pages_name_the_next_one_until_the_last() -> None:
    page = RevisionPage(revision=2, chunk_count=3, headings=("h",), chunks=(stored(0), stored(1)))
    reply = replies.page_response(page)
    assert parse_page_token(reply.next_page_token) == (2, 2)
    assert list(reply.headings) == ["h"]
    last = RevisionPage(revision=2, chunk_count=3, headings=(), chunks=(stored(2),))
    assert replies.page_response(last).next_page_token == ""
    beyond = RevisionPage(revision=2, chunk_count=3, headings=(), chunks=())
    assert replies.page_response(beyond).next_page_token == ""


def test_only_a_generation_that_serves_counts_records() -> None:
    building = Generation(start=start(), status=GenerationStatus.BUILDING)
    active = Generation(start=start(), status=GenerationStatus.ACTIVE)
    reply = replies.generations_response([building, active], RecordCounts(chunks=5, documents=2))
    assert [(g.status, g.chunk_records, g.document_records) for g in reply.generations] == [
        ("building", 0, 0),
        ("active", 5, 2),
    ]
    assert reply.generations[0].started_at.ToDatetime(tzinfo=UTC) == NOON
    assert (reply.generations[0].model_id, reply.generations[0].dimension) == ("m", 3)


def test_reaches_are_read() -> None:
    assert [replies.reach(value) for value in living_pb.Reach.values()] == [
        Reach.CURRENT,
        Reach.CURRENT,
        Reach.IN_FORCE,
        Reach.EVERY,
    ]
    with pytest.raises(ValueError, match="reach is 9"):
        replies.reach(cast("living_pb.Reach.ValueType", 9))


def test_an_instant_is_read_to_the_microsecond_and_is_now_where_none_is_named() -> None:
    moment = living_pb.Moment()
    assert replies.as_of(moment, NOON) == instant(NOON)
    moment.as_of.FromDatetime(datetime(1950, 1, 1, tzinfo=UTC))
    moment.as_of.nanos = 1_999
    assert replies.as_of(moment, NOON) == instant(datetime(1950, 1, 1, 0, 0, 0, 1, tzinfo=UTC))
    moment.as_of.nanos = 10**9
    with pytest.raises(ValueError, match="between the years 1 and 9999"):
        replies.as_of(moment, NOON)
