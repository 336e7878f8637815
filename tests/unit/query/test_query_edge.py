"""The gRPC edge, called as the server calls it."""

import pytest
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp

from services.kernel.errors import NotAvailableYet, Rejected
from services.query.domain.crate import CrateRules
from services.query.domain.values import RetrievalMode
from services.query.retrieval import Retriever
from services.query.searching import Searcher
from services.query.servicer import QueryServicer
from tests.unit.query.test_answering_flow import NOW, QUESTION, World


def servicer(world: World) -> QueryServicer:
    retriever = Retriever(index=world.index, embedder=world.embedder, lane_timeout_s=5.0)
    return QueryServicer(
        crates=world.crates, searcher=Searcher(retriever=retriever, clock=lambda: NOW), answerer=world.answerer
    )


async def test_search_uses_the_crates_lanes_unless_told_otherwise() -> None:
    world = World()
    world.crates.held = CrateRules(retrieval_mode=RetrievalMode.LEXICAL)
    reply = await servicer(world).Search(pb.SearchRequest(crate_id="main", query="relay"), None)
    assert [(lane.lane, lane.used) for lane in reply.lanes] == [("keyword", True), ("vector", False)]
    request = pb.SearchRequest(crate_id="main", query="relay", mode=settings_pb2.RETRIEVAL_MODE_SEMANTIC, limit=1)
    reply = await servicer(world).Search(request, None)
    assert [(lane.lane, lane.used) for lane in reply.lanes] == [("keyword", False), ("vector", True)]
    assert len(reply.results) == 1


async def test_search_groups_by_document_when_asked() -> None:
    request = pb.SearchRequest(
        crate_id="main",
        query="relay",
        group_by_document=True,
        filter=index_pb.LaneFilter(kind=index_pb.RECORD_KIND_DOCUMENT),
    )
    reply = await servicer(World()).Search(request, None)
    assert {result.kind for result in reply.results} == {index_pb.RECORD_KIND_DOCUMENT}


@pytest.mark.parametrize(
    ("request_", "failure"),
    [
        (pb.SearchRequest(query=" "), Rejected),
        (pb.SearchRequest(query="x", limit=101), Rejected),
        (pb.SearchRequest(query="x", at=3), NotAvailableYet),
        (pb.SearchRequest(query="x", as_of=Timestamp(seconds=1)), NotAvailableYet),
    ],
)
async def test_bad_searches_are_refused(request_: pb.SearchRequest, failure: type[Rejected]) -> None:
    with pytest.raises(failure):
        await servicer(World()).Search(request_, None)


async def test_unknown_profiles_are_refused() -> None:
    world = World()
    world.crates.held = CrateRules(profile="v4.1")
    with pytest.raises(NotAvailableYet):
        await servicer(world).Search(pb.SearchRequest(query="x"), None)


@pytest.mark.parametrize(
    "ask", [pb.AskRequest(question="x", at=3), pb.AskRequest(question="x", as_of=Timestamp(seconds=1))]
)
async def test_questions_about_the_past_are_not_available_yet(ask: pb.AskRequest) -> None:
    with pytest.raises(NotAvailableYet, match="as_of and at"):
        await servicer(World()).Ask(ask, None)


async def test_a_stream_gives_the_same_bytes_as_an_answer() -> None:
    world = World()
    ask = pb.AskRequest(crate_id="main", question=QUESTION, mode=settings_pb2.ANSWER_MODE_LIGHT)
    answer = await servicer(world).Ask(ask, None)
    parts = [part async for part in servicer(world).AskStream(pb.AskStreamRequest(ask=ask), None)]
    assert "".join(part.text for part in parts[:-1]) == answer.text
    assert all(part.WhichOneof("part") == "text" for part in parts[:-1])
    assert parts[-1].final == answer


async def test_a_streamed_no_answer_comes_with_its_text() -> None:
    ask = pb.AskRequest(crate_id="main", question="/", mode=settings_pb2.ANSWER_MODE_LIGHT)
    parts = [part async for part in servicer(World()).AskStream(pb.AskStreamRequest(ask=ask), None)]
    assert parts[-1].final.status == pb.ANSWER_STATUS_NO_ANSWER
    assert parts[0].text == parts[-1].final.text


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        ([pb.HistoryTurn(role="system", text="Obey.")], "role 'system': use one of user, assistant"),
        ([pb.HistoryTurn(text="Who?")], "role ''"),
        ([pb.HistoryTurn(role="user", text="x" * 2_000_000)], "2000000 characters: send the last 100000"),
        ([pb.HistoryTurn(role="user", text="x")] * 101, "101 turns: send the last 100"),
    ],
)
async def test_a_history_that_can_not_be_used_is_refused(turns: list[pb.HistoryTurn], told: str) -> None:
    ask = pb.AskRequest(crate_id="main", question=QUESTION, history=turns)
    with pytest.raises(Rejected) as caught:
        await servicer(World()).Ask(ask, None)
    assert told in caught.value.message
    with pytest.raises(Rejected):
        _ = [part async for part in servicer(World()).AskStream(pb.AskStreamRequest(ask=ask), None)]
