"""Moments, reaches, states and relations across the contracts."""

from datetime import UTC, datetime

import pytest
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.index.v1 import living_pb2
from affidavit.query.v1 import query_service_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp

from services.kernel.errors import NotAvailableYet, Rejected
from services.query.codec import living
from services.query.domain.crate import CrateRules
from services.query.domain.living import LivingState, Moment, Reach, Relation, RelationType, StateReport
from services.query.domain.modes import AnswerMode
from tests.unit.query.test_answering_flow import NOW, QUESTION
from tests.unit.query.test_living_answers import versions
from tests.unit.query.test_query_edge import servicer

THEN = datetime(2021, 5, 3, tzinfo=UTC)
FULL = StateReport(
    "d", 2, LivingState.STALE, "review_date", "o", "2020", THEN, THEN, True, "f", "1.0", THEN, "d.md", "D", 7
)


@pytest.mark.parametrize("report", [FULL, StateReport("d", 1)])
def test_states_survive(report: StateReport) -> None:
    assert living.state_report(living.state_message(report)) == report


def test_what_profile_v1_asks_stays_unsaid() -> None:
    assert living.moment_message(Moment()) is None
    assert living.reach_value(Reach.CURRENT) == living_pb2.REACH_UNSPECIFIED
    assert living.reach(living_pb2.REACH_UNSPECIFIED) is None
    assert living.reach(living.reach_value(Reach.EVERY)) is Reach.EVERY
    assert living.moment_message(Moment(THEN, 3)) == living_pb2.Moment(as_of=living.timestamp(THEN), at=3)
    assert living.moment_message(Moment(None, 3)) == living_pb2.Moment(at=3)


def test_edges_of_unknown_types_or_ends_are_left_out() -> None:
    edge = living_pb2.Relation(
        source_document_id="a", type="supersedes", target_document_id="b", confidence_ppm=500_000
    )
    waiting = living_pb2.Relation(source_document_id="a", type="cites", reference="x")
    odd = living_pb2.Relation(source_document_id="a", type="likes", target_document_id="b")
    assert living.relations([edge, waiting, odd]) == (Relation("a", RelationType.SUPERSEDES, "b", 0.5),)


def test_families_are_read() -> None:
    (family,) = living.families([index_pb.Family(family="f", members=[living.state_message(FULL)])])
    assert (family.name, family.members) == ("f", (FULL,))


async def test_the_edge_tells_states_roles_and_sufficiency() -> None:
    request = pb.AskRequest(crate_id="main", question=QUESTION, explain=True, as_of=living.timestamp(NOW), at=9)
    reply = await servicer(versions()).Ask(request, None)
    assert reply.citations[0].role == pb.CITATION_ROLE_SUPPORT
    assert reply.citations[0].state.version == "2.0"
    assert reply.citations[0].load_bearing
    assert list(reply.sufficiency.domains) == ["tests"]
    assert list(reply.sufficiency.minimal_document_ids) == ["new"]
    assert (reply.moment.at, living.instant(reply.moment.as_of)) == (9, NOW)
    assert any(item.cited and item.source_id for item in reply.explanation)
    pieces = [piece async for piece in servicer(versions()).AskStream(pb.AskStreamRequest(ask=request), None)]
    assert "".join(piece.text for piece in pieces[:-1]) == reply.text
    assert pieces[-1].final == reply


async def test_a_search_shows_states_and_looks_further_where_nothing_in_force_matches() -> None:
    world = versions()
    reply = await servicer(world).Search(pb.SearchRequest(crate_id="main", query="relay port"), None)
    assert {result.document_id for result in reply.results} == {"new", "gate"}
    assert reply.results[0].state.state == living_pb2.LIVING_STATE_ACTIVE
    every = pb.SearchRequest(crate_id="main", query="relay port", reach=living_pb2.REACH_EVERY)
    assert "old" in {result.document_id for result in (await servicer(world).Search(every, None)).results}
    world.index.passages = world.index.passages[:1]
    reply = await servicer(world).Search(pb.SearchRequest(crate_id="main", query="relay port"), None)
    assert [result.document_id for result in reply.results] == ["old"]
    assert list(reply.notes) == ["nothing in force matches: superseded and deprecated documents are shown"]


async def test_bad_moments_and_reaches_are_refused() -> None:
    world = versions()
    with pytest.raises(Rejected, match="as_of can't be read"):
        await servicer(world).Ask(pb.AskRequest(question="x", as_of=Timestamp(seconds=1 << 60)), None)
    world.crates.held = CrateRules(mode=AnswerMode.LIGHT)
    with pytest.raises(NotAvailableYet, match="leave reach out"):
        await servicer(world).Search(pb.SearchRequest(query="x", reach=living_pb2.REACH_EVERY), None)
