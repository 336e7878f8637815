"""Two lanes side by side, and what happens when one of them doesn't take part."""

from dataclasses import replace

import pytest

from services.kernel.errors import Conflict, NotAvailableYet, NotFound, Rejected, Unavailable
from services.query.domain.crate import CrateRules
from services.query.domain.living import View
from services.query.domain.profile import V1
from services.query.domain.values import LaneAnswer, LaneFilter, LaneUse, RecordKind, RetrievalMode
from services.query.retrieval import Request, Retriever, check_query, usable_profile
from tests.unit.query.doubles import EmbedderDouble, IndexDouble
from tests.unit.query.passages import passage

RELAY = passage("The relay listens on port 7443.", document="a")
GATE = passage("The west gate opens at 06:00.", document="b")


def retriever(index: IndexDouble, embedder: EmbedderDouble | None = None, *, timeout_s: float = 5.0) -> Retriever:
    return Retriever(index=index, embedder=embedder or EmbedderDouble(), lane_timeout_s=timeout_s)


def request(
    query: str = "relay port", mode: RetrievalMode = RetrievalMode.HYBRID, kind: RecordKind = RecordKind.CHUNK
) -> Request:
    return Request("main", query, mode, LaneFilter(kind=kind), V1, V1.lane_depth)


async def test_both_lanes_are_fused_and_the_cursor_is_the_smallest_position() -> None:
    index = IndexDouble((RELAY, GATE), positions=(7, 9, 8))
    outcome = await retriever(index).search(request(), limit=10, by_document=False)
    assert [found.passage.key.document_id for found in outcome.results] == ["a", "b"]
    assert outcome.results[0].snippet == RELAY.text
    assert outcome.position == 7
    assert outcome.lanes == (LaneUse("keyword", True, "", 1), LaneUse("vector", True, "", 2))
    assert {lane for lane, *_ in index.asked} == {"keyword", "vector"}
    assert all(limit == V1.lane_depth for *_, limit in index.asked)


@pytest.mark.parametrize(
    ("mode", "lane", "other"),
    [(RetrievalMode.LEXICAL, "keyword", "vector"), (RetrievalMode.SEMANTIC, "vector", "keyword")],
)
async def test_a_mode_uses_its_lane_alone(mode: RetrievalMode, lane: str, other: str) -> None:
    index = IndexDouble((RELAY, GATE))
    outcome = await retriever(index).search(request(mode=mode), limit=10, by_document=False)
    uses = {use.lane: use for use in outcome.lanes}
    assert uses[lane].used
    assert not uses[other].used
    assert uses[other].note == f"retrieval mode is {mode.value}"
    assert [asked for asked, *_ in index.asked] == [lane]
    assert outcome.results[0].candidate.score in {2.0, 0.9}


@pytest.mark.parametrize("failure", [Unavailable("engine is down"), Conflict("another model")])
async def test_a_lane_that_fails_is_said_and_the_other_answers(failure: Unavailable) -> None:
    outcome = await retriever(IndexDouble((RELAY,), vector_failure=failure)).search(
        request(), limit=10, by_document=False
    )
    assert [found.passage.key for found in outcome.results] == [RELAY.key]
    assert outcome.lanes[1] == LaneUse("vector", False, failure.message, 0)
    outcome = await retriever(IndexDouble((RELAY,), keyword_failure=failure)).search(
        request(), limit=10, by_document=False
    )
    assert outcome.lanes[0] == LaneUse("keyword", False, failure.message, 0)
    assert outcome.lanes[1].used


async def test_the_embedder_is_part_of_the_vector_lane() -> None:
    retrieval = await retriever(IndexDouble((RELAY,)), EmbedderDouble(failure=Unavailable("no model"))).retrieve(
        request()
    )
    assert retrieval.vector is None
    assert retrieval.lanes[1].note == "no model"


async def test_a_lane_that_takes_too_long_is_left_out() -> None:
    index = IndexDouble((RELAY,), delay_s=5.0)
    retrieval = await retriever(index, timeout_s=0.05).retrieve(request())
    assert retrieval.lanes[0] == LaneUse("keyword", False, "no answer within 0.05 s", 0)


async def test_no_lane_at_all_is_unavailable() -> None:
    index = IndexDouble(keyword_failure=Unavailable("one"), vector_failure=Unavailable("two"))
    with pytest.raises(Unavailable, match="keyword lane: one; vector lane: two"):
        await retriever(index).retrieve(request())


@pytest.mark.parametrize("failure", [NotFound("no crate main"), Rejected("limit")])
async def test_a_refusal_is_passed_on(failure: NotFound) -> None:
    with pytest.raises(type(failure)):
        await retriever(IndexDouble((RELAY,), keyword_failure=failure)).retrieve(request())


async def test_a_query_without_a_word_asks_no_lane() -> None:
    index = IndexDouble((RELAY,), positions=(1, 2, 3))
    outcome = await retriever(index).search(request("/ \\ ☕"), limit=10, by_document=False)
    assert (outcome.results, outcome.position, index.asked) == ((), 3, [])
    assert [(use.used, use.note) for use in outcome.lanes] == [(False, "the query holds no word")] * 2


async def test_a_keyword_lane_that_finds_no_term_is_not_used() -> None:
    class Deaf(IndexDouble):
        async def search_keyword(self, *_: object) -> object:  # type: ignore[override]  # always the same
            return type(await super().search_keyword("main", "relay", LaneFilter(), 1, View()))(position=4)

    retrieval = await retriever(Deaf((RELAY,))).retrieve(request())
    assert retrieval.lanes[0] == LaneUse("keyword", False, "the query holds no word", 0)
    assert retrieval.position == 10


async def test_documents_come_once() -> None:
    index = IndexDouble((RELAY, passage("Another relay port.", document="a", ordinal=1), GATE))
    grouped = await retriever(index).search(request(), limit=10, by_document=True)
    assert [found.passage.key.document_id for found in grouped.results] == ["a", "b"]
    documents = await retriever(index).search(request(kind=RecordKind.DOCUMENT), limit=1, by_document=False)
    assert len(documents.results) == 1
    assert documents.kind is RecordKind.DOCUMENT


async def test_one_result_per_document_asks_each_lane_on_its_level_and_shows_the_nearest_chunk() -> None:
    later = passage("Another relay port.", document="a", ordinal=1)
    index = IndexDouble((later, RELAY, GATE), positions=(7, 9, 8))
    outcome = await retriever(index).search(request(), limit=10, by_document=True)
    assert sorted((lane, lane_filter.kind.value) for lane, _, lane_filter, _ in index.asked) == [
        ("keyword", "chunk"),
        ("keyword", "document"),
        ("vector", "chunk"),
    ]
    assert [found.passage.key for found in outcome.results] == [later.key, GATE.key]
    assert outcome.results[0].candidate.score == pytest.approx(1 / 61)
    assert (outcome.position, outcome.kind) == (7, RecordKind.CHUNK)


async def test_document_records_are_found_by_the_meaning_of_their_chunks() -> None:
    later = passage("Another relay port.", document="a", ordinal=1)
    index = IndexDouble((later, RELAY))
    outcome = await retriever(index).search(request(kind=RecordKind.DOCUMENT), limit=10, by_document=False)
    assert {(lane, lane_filter.kind.value) for lane, _, lane_filter, _ in index.asked} == {
        ("keyword", "document"),
        ("vector", "chunk"),
    }
    assert [found.passage.key.ordinal for found in outcome.results] == [0]
    assert outcome.kind is RecordKind.DOCUMENT


async def test_without_vectors_a_document_shows_its_best_chunk_by_words() -> None:
    class ByLevel(IndexDouble):
        async def search_keyword(
            self, crate_id: str, query: str, lane_filter: LaneFilter, limit: int, view: View
        ) -> LaneAnswer:
            answer = await super().search_keyword(crate_id, query, lane_filter, limit, view)
            if lane_filter.kind is RecordKind.CHUNK:
                return answer
            records = (replace(hit, key=replace(hit.key, ordinal=0)) for hit in answer.hits)
            return replace(answer, hits=tuple(records))

    later = passage("Another relay port.", document="a", ordinal=1)
    index = ByLevel((passage("Nothing here.", document="a"), later), vector_failure=Unavailable("engine is down"))
    outcome = await retriever(index).search(request(), limit=10, by_document=True)
    assert [found.passage.key for found in outcome.results] == [later.key]
    assert not outcome.lanes[1].used


async def test_chunks_and_one_lane_alone_stay_on_the_level_asked_for() -> None:
    index = IndexDouble((RELAY, GATE))
    await retriever(index).search(request(), limit=10, by_document=False)
    await retriever(index).search(request(mode=RetrievalMode.SEMANTIC), limit=10, by_document=True)
    await retriever(index).search(request(mode=RetrievalMode.LEXICAL), limit=10, by_document=True)
    assert {lane_filter.kind for _, _, lane_filter, _ in index.asked} == {RecordKind.CHUNK}
    assert len(index.asked) == 4


async def test_what_is_gone_or_came_after_the_cursor_is_left_out() -> None:
    late = type(GATE)(key=GATE.key, text=GATE.text, terms=GATE.terms, ingested_position=9)
    index = IndexDouble((RELAY, late), positions=(8, 10, 10))
    outcome = await retriever(index).search(request("gate relay"), limit=10, by_document=False)
    assert [found.passage.key.document_id for found in outcome.results] == ["a"]
    assert outcome.position == 8


async def test_nothing_found_needs_no_fetch() -> None:
    outcome = await retriever(IndexDouble(positions=(5, 6, 1))).search(request(), limit=10, by_document=False)
    assert (outcome.results, outcome.position) == ((), 5)


@pytest.mark.parametrize("query", ["", " \n\t"])
def test_blank_queries_are_refused(query: str) -> None:
    with pytest.raises(Rejected, match="question is empty"):
        check_query(query, name="question")


def test_long_queries_are_refused() -> None:
    assert check_query(f" {'x' * 7_998} ", name="query") == "x" * 7_998
    with pytest.raises(Rejected, match="8001 characters"):
        check_query("x" * 8_001, name="query")


def test_unknown_profiles_are_not_available_yet() -> None:
    assert usable_profile(CrateRules()) is V1
    with pytest.raises(NotAvailableYet, match=r"v4\.1"):
        usable_profile(CrateRules(profile="v4.1"))
