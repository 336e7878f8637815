"""Protobuf to domain and back."""

from datetime import UTC, datetime

import numpy as np
import pytest
from affidavit.chunker.v1 import chunker_events_pb2
from affidavit.citation.v1 import citation_service_pb2 as citation_pb
from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2, settings_pb2
from affidavit.query.v1 import query_service_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp

from services.query.codec import incoming, outgoing
from services.query.domain.claims import AnswerFact, Claim, EvidenceBytes, Repaired
from services.query.domain.crate import CrateRules, Turn
from services.query.domain.extractive import compose
from services.query.domain.fusion import Fused
from services.query.domain.modes import AnswerMode, ModeDecision
from services.query.domain.outcomes import AnswerOutcome, Found, SearchOutcome, sources_of
from services.query.domain.units import units_of
from services.query.domain.values import (
    Form,
    LaneAnswer,
    LaneFilter,
    LaneHit,
    LaneUse,
    Passage,
    RecordKey,
    RecordKind,
    RetrievalMode,
    Run,
    TermWeight,
)
from tests.unit.query.passages import passage

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
MODE = ModeDecision(AnswerMode.VERIFIED, AnswerMode.LIGHT, "mode_not_available")


def stamp(moment: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(moment)
    return message


def test_settings_that_are_silent_have_their_defaults() -> None:
    assert incoming.crate_rules(ingest_events_pb2.CrateConfigured()) == CrateRules()


def test_settings_are_read() -> None:
    event = ingest_events_pb2.CrateConfigured(
        settings=settings_pb2.CrateSettings(
            strict_grounding=True,
            allow_client_history=False,
            inline_citations=False,
            structured_sources=False,
            retrieval_mode=settings_pb2.RETRIEVAL_MODE_LEXICAL,
            source_limit=3,
            mode=settings_pb2.ANSWER_MODE_LIGHT,
            allow_downgrade=False,
            profile="v9",
        ),
        providers=[
            settings_pb2.Provider(role=settings_pb2.PROVIDER_ROLE_EMBEDDING, enabled=True, model="e"),
            settings_pb2.Provider(role=settings_pb2.PROVIDER_ROLE_ANSWER, enabled=True, model="a"),
        ],
    )
    assert incoming.crate_rules(event) == CrateRules(
        strict_grounding=True,
        allow_client_history=False,
        inline_citations=False,
        structured_sources=False,
        retrieval_mode=RetrievalMode.LEXICAL,
        source_limit=3,
        mode=AnswerMode.LIGHT,
        allow_downgrade=False,
        profile="v9",
        answer_model="a",
    )
    event.providers[1].enabled = False
    assert incoming.crate_rules(event).answer_model == ""


def test_unspecified_and_unknown_modes_are_none() -> None:
    assert incoming.retrieval_mode(0) is None
    assert [incoming.answer_mode(value) for value in (0, 77)] == [None, None]
    assert incoming.retrieval_mode(settings_pb2.RETRIEVAL_MODE_SEMANTIC) is RetrievalMode.SEMANTIC
    assert incoming.answer_mode(settings_pb2.ANSWER_MODE_AUDIT) is AnswerMode.AUDIT


def test_filters_come_back_as_they_went() -> None:
    wanted = LaneFilter(RecordKind.DOCUMENT, (Form.TEXT, Form.INFORMAL), ("d",), ("s",))
    assert incoming.lane_filter(outgoing.lane_filter_message(wanted)) == wanted
    assert incoming.lane_filter(index_pb.LaneFilter(forms=[envelope_pb2.FORM_UNSPECIFIED])) == LaneFilter()


def test_history_is_read() -> None:
    assert incoming.history([pb.HistoryTurn(role="user", text="x")]) == (Turn("user", "x"),)


def test_lane_answers_are_read() -> None:
    hit = index_pb.Hit(document_id="d", revision=2, ordinal=3, score=0.5, form=envelope_pb2.FORM_STRUCTURED)
    expected = LaneHit(RecordKey("d", 2, 3), 0.5, Form.STRUCTURED)
    keyword = index_pb.SearchKeywordResponse(
        hits=[hit], position=7, terms=[index_pb.TermWeight(term="t", idf=1.5, document_frequency=4)], generation=1
    )
    assert incoming.keyword_answer(keyword) == LaneAnswer((expected,), 7, (TermWeight("t", 1.5, 4),), 1)
    vector = index_pb.SearchVectorResponse(hits=[hit, index_pb.Hit(document_id="e")], position=8, generation=2)
    answer = incoming.vector_answer(vector)
    assert answer.hits == (expected, LaneHit(RecordKey("e", 0, 0), 0.0, Form.TEXT))
    assert (answer.position, answer.generation, answer.terms) == (8, 2, ())


def test_chunks_are_read() -> None:
    run = ingest_events_pb2.TextRun(
        text_start=0, text_end=4, char_start=5, char_end=9, byte_start=6, byte_end=10, verbatim=True
    )
    item = index_pb.IndexedChunk(
        key=outgoing.key_message(RecordKey("d", 2, 3)),
        chunk=chunker_events_pb2.Chunk(ordinal=3, text="word", heading_path=["A"], context="c", runs=[run]),
        title="T",
        source_id="s",
        source_domain="o",
        media_type="text/csv",
        charset="windows-1251",
        uri="u",
        form=envelope_pb2.FORM_INFORMAL,
        effective_at=stamp(NOON),
        ingested_position=11,
        terms=["word"],
    )
    assert incoming.passage(item) == Passage(
        key=RecordKey("d", 2, 3),
        text="word",
        heading_path=("A",),
        context="c",
        runs=(Run(0, 4, 5, 9, 6, 10, verbatim=True),),
        terms=frozenset({"word"}),
        title="T",
        source_id="s",
        source_domain="o",
        media_type="text/csv",
        charset="windows-1251",
        uri="u",
        form=Form.INFORMAL,
        effective_at=NOON,
        ingested_position=11,
    )
    bare = incoming.passage(index_pb.IndexedChunk())
    assert (bare.charset, bare.form, bare.effective_at) == ("utf-8", Form.TEXT, None)


def test_vectors_travel_as_little_endian_floats() -> None:
    vector = np.asarray([0.5, -0.25], dtype=np.float32)
    (back,) = incoming.vectors(outgoing.vector_bytes(vector), 2, 1)
    assert back.tolist() == [0.5, -0.25]
    with pytest.raises(ValueError, match="2 vectors of 2 numbers"):
        incoming.vectors(b"1234", 2, 2)
    with pytest.raises(ValueError, match="0 numbers"):
        incoming.vectors(b"", 0, 0)


def test_repairs_become_lines() -> None:
    reply = citation_pb.RepairResponse(
        text="t [1].",
        cited=[1],
        unsupported=["lost"],
        actions=[
            citation_pb.RepairAction(kind=citation_pb.REPAIR_KIND_REMOVED, before=" [7]", after="", char_start=12)
        ],
    )
    assert incoming.repaired(reply) == Repaired("t [1].", (1,), ("lost",), ("removed at 12: ' [7]' -> ''",))


def test_a_claim_is_written_whole() -> None:
    claim = Claim(
        crate_id="main",
        answer_id="a",
        question="q",
        answer_text="t",
        raw_text="r",
        evidence=(EvidenceBytes(RecordKey("d", 1, 2), 3, 5, b"ab"),),
        candidates=(RecordKey("d", 1, 2), RecordKey("e", 1, 0)),
        position=9,
        incarnation=b"i",
        policy_digest=b"p",
        engine_digest=b"e",
        mode=MODE,
        repairs=("x",),
    )
    request = outgoing.receipt_request(claim)
    (evidence,) = request.evidence
    assert (evidence.document_id, evidence.revision, evidence.ordinal) == ("d", 1, 2)
    assert (evidence.byte_start, evidence.byte_end, evidence.content, evidence.role) == (3, 5, b"ab", 1)
    assert [item.document_id for item in request.candidates] == ["d", "e"]
    assert (request.crate_id, request.answer_id, request.question) == ("main", "a", "q")
    assert (request.answer_text, request.raw_answer_text, request.position) == ("t", "r", 9)
    assert (request.incarnation, request.policy_digest, request.engine_digest) == (b"i", b"p", b"e")
    assert (request.mode_requested, request.mode_applied, request.mode_reason) == (
        "verified",
        "light",
        "mode_not_available",
    )
    assert (list(request.repairs), request.llm_model) == (["x"], "")


def test_the_signal_holds_ids_only() -> None:
    event = outgoing.answer_issued(AnswerFact("a", "r", "answered", ("d",), 9, MODE, NOON))
    assert (event.answer_id, event.receipt_id, event.status, event.position) == ("a", "r", "answered", 9)
    assert (list(event.cited_document_ids), event.mode_requested, event.mode_applied) == (["d"], "verified", "light")
    assert event.issued_at == stamp(NOON)


def test_search_results_are_written() -> None:
    chunk = passage("It hums.", document="d", ordinal=2, title="T", headings=("H",))
    candidate = Fused(chunk.key, 0.5, Form.INFORMAL, 1, 2, 3.0, 0.25)
    outcome = SearchOutcome(
        (Found(candidate, chunk, "snip"),), (LaneUse("keyword", False, "why", 0),), 7, RecordKind.DOCUMENT
    )
    reply = outgoing.search_response(outcome)
    assert reply.position == 7
    assert [(lane.lane, lane.used, lane.note, lane.hits) for lane in reply.lanes] == [("keyword", False, "why", 0)]
    (result,) = reply.results
    assert (result.document_id, result.revision, result.ordinal, result.snippet) == ("d", 1, 2, "snip")
    assert (result.title, list(result.heading_path), result.source_id) == ("T", ["H"], "notes.txt")
    assert (result.score, result.keyword_rank, result.vector_rank) == (0.5, 1, 2)
    assert (result.keyword_score, result.cosine) == (3.0, 0.25)
    assert (result.form, result.kind) == (envelope_pb2.FORM_INFORMAL, index_pb.RECORD_KIND_DOCUMENT)


@pytest.mark.parametrize("dated", [True, False])
def test_answers_are_written(dated: bool) -> None:
    chunk = passage("Café hums.", document="d", title="T", headings=("H",))
    if dated:
        chunk = Passage(chunk.key, chunk.text, runs=chunk.runs, effective_at=NOON, uri="u")
    places = compose(units_of(chunk))
    outcome = AnswerOutcome(
        answer_id="a",
        answered=True,
        text="Café hums [1].",
        places=places,
        sources=sources_of(places),
        mode=MODE,
        lanes=(LaneUse("vector", True, "", 4),),
        position=7,
        receipt_id="r",
        receipt=b"b",
        receipt_status="signed",
        unsupported=("lost",),
        notes=("note",),
    )
    reply = outgoing.ask_response(outcome)
    assert (reply.status, reply.text, reply.position) == (pb.ANSWER_STATUS_ANSWERED, "Café hums [1].", 7)
    (citation,) = reply.citations
    assert (citation.marker, citation.byte_start, citation.byte_end, citation.char_end) == (1, 0, 11, 10)
    assert (citation.quote, citation.verbatim, citation.charset) == ("Café hums.", True, "utf-8")
    assert citation.HasField("effective_at") is dated
    (source,) = reply.sources
    assert (source.marker, source.document_id, source.uri) == (1, "d", "u" if dated else "")
    assert (reply.mode.requested, reply.mode.applied) == (
        settings_pb2.ANSWER_MODE_VERIFIED,
        settings_pb2.ANSWER_MODE_LIGHT,
    )
    assert reply.mode.reason == "mode_not_available"
    assert (reply.receipt, reply.receipt_id, reply.receipt_status) == (b"b", "r", "signed")
    assert (list(reply.unsupported), list(reply.notes), reply.answered_by) == (["lost"], ["note"], "extractive")
    assert outgoing.final_piece(outcome).final == reply
    assert outgoing.text_piece("x").text == "x"
