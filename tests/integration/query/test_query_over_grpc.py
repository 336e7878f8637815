"""Search and answers over real gRPC and the real log."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_events_pb2
from affidavit.query.v1 import query_service_pb2 as pb

from services import topology
from services.kernel.errors import Corrupt, NotFound, Unavailable
from services.query.codec.digests import policy_digest
from services.query.domain.profile import V1
from tests.integration.query.query_world import CRATE, Document, QueryWorld

QUESTION = "Which port does the relay listen on?"
SENTENCE = "The relay [2019] listens on port 7443."
AWKWARD = (
    "AFSC/RACE:USBL",
    "/",
    '"unclosed quote',
    "part:(QX-9 AND",
    "title:secret OR *:*",
    "cost && discount || price !",
    "rev. C++ ~2 ^5",
    '{"query":{"match_all":{}}}',
    "\\",
)


def ask(question: str = QUESTION, crate: str = CRATE) -> pb.AskRequest:
    return pb.AskRequest(crate_id=crate, question=question)


async def test_an_answer_travels_whole(world: QueryWorld) -> None:
    world.add("a", f"The kiosk is red. {SENTENCE}")
    world.add("b", "The west gate opens at 06:00.")
    answer = await world.query.Ask(ask())
    assert answer.text == "The relay [2019] listens on port 7443 [1]."
    (citation,) = answer.citations
    assert (citation.quote, citation.byte_start, citation.byte_end) == (SENTENCE, 18, 18 + len(SENTENCE))
    assert (list(citation.heading_path), citation.verbatim, citation.source_id) == (["Manual"], True, "a.txt")
    assert [(lane.lane, lane.used) for lane in answer.lanes] == [("keyword", True), ("vector", True)]
    assert (answer.position, answer.receipt, answer.receipt_status) == (19, b"bundle", "signed")
    assert not answer.unsupported
    (request,) = world.receipts.requests
    assert request.policy_digest == policy_digest(V1)
    assert (request.incarnation, len(request.engine_digest)) == (world.bus.incarnation(), 32)
    assert [item.content for item in request.evidence] == [SENTENCE.encode()]
    event = await world.bus.last(crate=CRATE, service="query", aggregate=answer.answer_id, stream=topology.SIGNALS)
    assert event is not None
    assert isinstance(event.message, query_events_pb2.AnswerIssued)
    assert (event.message.receipt_id, list(event.message.cited_document_ids)) == ("ab" * 32, ["a"])


async def test_a_stream_carries_the_same_bytes(world: QueryWorld) -> None:
    world.add("a", SENTENCE)
    answer = await world.query.Ask(ask())
    parts = [part async for part in world.query.AskStream(pb.AskStreamRequest(ask=ask()))]
    assert "".join(part.text for part in parts) == answer.text == parts[-1].final.text
    assert parts[-1].final.citations == answer.citations


async def test_rewritten_evidence_is_read_from_ingest(world: QueryWorld) -> None:
    original = b"<p>The relay listens on port 7443.</p>  "
    document = Document("a", original, "The relay listens on port 7443.", verbatim=False)
    document.chunk.runs[0].byte_start, document.chunk.runs[0].byte_end = 3, 34
    world.documents["a"] = document
    answer = await world.query.Ask(ask())
    assert not answer.citations[0].verbatim
    assert world.receipts.requests[0].evidence[0].content == original[3:34]


async def test_a_large_original_is_read_no_further_than_needed(world: QueryWorld) -> None:
    pieces = 256
    world.ingest.piece_bytes = 1 << 16
    original = b"The relay listens on port 7443.".ljust(pieces << 16)
    document = Document("a", original, "The relay listens on port 7443.", verbatim=False)
    document.chunk.runs[0].byte_end = 31
    world.documents["a"] = document
    await world.query.Ask(ask())
    assert world.receipts.requests[0].evidence[0].content == original[:31]
    assert world.ingest.sent < pieces


async def test_an_original_that_is_too_short_leaves_the_answer_unsigned(world: QueryWorld) -> None:
    document = Document("a", b"short", "The relay listens on port 7443.", verbatim=False)
    document.chunk.runs[0].byte_end = 38
    world.documents["a"] = document
    answer = await world.query.Ask(ask())
    assert answer.status == pb.ANSWER_STATUS_ANSWERED
    assert "has 5 bytes, but a citation ends at 38" in answer.receipt_status


async def test_signing_down_is_said(world: QueryWorld) -> None:
    world.add("a", SENTENCE)
    world.receipts.failure = Unavailable("no key")
    answer = await world.query.Ask(ask())
    assert answer.status == pb.ANSWER_STATUS_ANSWERED
    assert answer.receipt_status == "unsigned: the receipt service doesn't answer (unavailable): no key"


async def test_words_are_embedded_once(world: QueryWorld) -> None:
    world.add("a", SENTENCE)
    await world.query.Ask(ask("Which port is the relay tuned to?"))
    first = [text for texts in world.models.asked for text in texts]
    world.models.asked.clear()
    await world.query.Ask(ask("Which port is the relay tuned to?"))
    second = [text for texts in world.models.asked for text in texts]
    assert "tuned" in first
    assert not [text for text in second if " " not in text]


@pytest.mark.parametrize("fault", ["model", "cut"])
async def test_a_model_that_misbehaves_is_noted_not_trusted(world: QueryWorld, fault: str) -> None:
    world.add("a", SENTENCE)
    if fault == "model":
        world.models.model = "another"
        answer = await world.query.Ask(ask())
        assert "evidence was weighed by its words alone: crate main embeds with another now" in answer.notes[-1]
    else:
        world.models.cut = True
        answer = await world.query.Ask(ask())
        assert "the embedder's reply is malformed" in answer.lanes[1].note
    assert answer.status == pb.ANSWER_STATUS_ANSWERED


async def test_a_lane_that_fails_is_never_silent(world: QueryWorld) -> None:
    world.add("a", SENTENCE)
    world.models.failure = Corrupt("weights are damaged")
    found = await world.query.Search(pb.SearchRequest(crate_id=CRATE, query="relay port"))
    assert [result.document_id for result in found.results] == ["a"]
    assert [(lane.used, lane.note) for lane in found.lanes] == [(True, ""), (False, "weights are damaged")]
    world.index.failure = Corrupt("segments are damaged")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await world.query.Search(pb.SearchRequest(crate_id=CRATE, query="relay port"))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "segments are damaged" in str(caught.value.details())


@pytest.mark.parametrize("text", AWKWARD)
async def test_any_text_may_be_typed(world: QueryWorld, text: str) -> None:
    world.add("g11", 'Part AFSC/RACE:USBL (rev. C++) costs 40% less than part "QX-9" [2019].')
    answer = await world.query.Ask(ask(text))
    assert len(answer.lanes) == 2
    lexical = settings_pb2.RETRIEVAL_MODE_LEXICAL
    found = await world.query.Search(pb.SearchRequest(crate_id=CRATE, query=text, mode=lexical))
    named = {result.document_id for result in found.results}
    assert named == ({"g11"} if text in {AWKWARD[0], AWKWARD[3], AWKWARD[5], AWKWARD[6]} else set())
    if text in {"/", "\\"}:
        assert [lane.note for lane in found.lanes] == ["the query holds no word"] * 2
        assert found.position == 22


async def test_settings_come_straight_from_the_log(world: QueryWorld) -> None:
    world.add("a", SENTENCE)
    await world.configure(inline_citations=False, structured_sources=False, source_limit=1)
    answer = await world.query.Ask(ask())
    assert (answer.text, len(answer.citations), len(answer.sources)) == (SENTENCE, 1, 0)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ask(" "), grpc.StatusCode.INVALID_ARGUMENT),
        (ask("x" * 8_001), grpc.StatusCode.INVALID_ARGUMENT),
        (ask(crate="nowhere"), grpc.StatusCode.NOT_FOUND),
        (
            pb.AskRequest(crate_id=CRATE, question="x", mode=settings_pb2.ANSWER_MODE_AUDIT),
            grpc.StatusCode.UNIMPLEMENTED,
        ),
        (pb.AskRequest(crate_id=CRATE, question="x", at=7), grpc.StatusCode.UNIMPLEMENTED),
    ],
)
async def test_refusals_have_their_status(world: QueryWorld, request_: pb.AskRequest, code: grpc.StatusCode) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await world.query.Ask(request_)
    assert caught.value.code() is code
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        [part async for part in world.query.AskStream(pb.AskStreamRequest(ask=request_))]
    assert caught.value.code() is code


async def test_an_index_that_knows_no_such_crate_is_passed_on(world: QueryWorld) -> None:
    world.index.failure = NotFound("crate main is gone")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await world.query.Ask(ask())
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.NOT_FOUND, "crate main is gone")


async def test_many_questions_at_once_give_the_same_answer(world: QueryWorld) -> None:
    world.add("a", SENTENCE)
    answers = await asyncio.gather(*(world.query.Ask(ask()) for _ in range(8)))
    assert len({answer.text for answer in answers}) == 1
    assert len({answer.answer_id for answer in answers}) == 8
