"""Living knowledge against a whole node: states, versions, time travel, evidence that suffices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import grpc
import pytest
from affidavit.index.v1 import index_service_pb2, living_pb2
from affidavit.ingest.v1 import ingest_service_pb2, settings_pb2
from affidavit.query.v1 import query_service_pb2

from tests.e2e.crate import ANSWERED, LEXICAL, NO_ANSWER, SEMANTIC, Crate

ACTIVE = living_pb2.LIVING_STATE_ACTIVE
SUPERSEDED = living_pb2.LIVING_STATE_SUPERSEDED
DEPRECATED = living_pb2.LIVING_STATE_DEPRECATED
CONTESTED = living_pb2.LIVING_STATE_CONTESTED
STALE = living_pb2.LIVING_STATE_STALE
VERIFIED = settings_pb2.ANSWER_MODE_VERIFIED
AUDIT = settings_pb2.ANSWER_MODE_AUDIT
SUPPORT = query_service_pb2.CITATION_ROLE_SUPPORT
LEAVE = "How many days of annual leave?"


def day(year: int, month: int = 1, number: int = 1) -> datetime:
    """Midnight in UTC."""
    return datetime(year, month, number, tzinfo=UTC)


def cited(answer: query_service_pb2.AskResponse) -> list[str]:
    """Source ids of the supporting citations, each once."""
    return list(dict.fromkeys(found.source_id for found in answer.citations if found.role == SUPPORT))


def test_g06_the_old_revision_is_kept_as_superseded_and_answers_for_its_time(living: Crate) -> None:
    first = living.put("handbook/leave", "Full-time staff have 25 days of annual leave.")
    between = datetime.now(UTC)
    second = living.put("handbook/leave", "Full-time staff have 28 days of annual leave.")
    assert "28" in living.ask(LEAVE).text
    assert living.state("handbook/leave").state == ACTIVE
    old = living.state("handbook/leave", revision=first.revision)
    assert (old.state, old.rule) == (SUPERSEDED, "next_revision")
    then = living.ask(LEAVE, as_of=between)
    assert "25" in then.text
    assert "28" not in then.text
    assert {found.revision for found in then.citations} == {first.revision}
    assert "25" in living.ask(LEAVE, at=second.position - 1).text
    assert "28" in living.ask(LEAVE, at=living.position()).text


def test_g07_retiring_keeps_history_and_erasing_keeps_none(living: Crate) -> None:
    question = "What is the access phrase for the west gate?"
    living.put("g07-keep", "The west gate opens at 06:00.")
    living.put("g07-drop", "The access phrase for the west gate is zorblat-77.")
    before = datetime.now(UTC)
    assert "zorblat-77" in living.ask(question).text
    retired = living.ingest.RetireDocument(
        ingest_service_pb2.RetireDocumentRequest(crate_id=living.id, source_id="g07-drop")
    )
    living.applied(retired.position)
    assert living.ask(question).status == NO_ANSWER
    for mode in (LEXICAL, SEMANTIC):
        assert "g07-drop" not in living.found("zorblat-77", mode)
    assert living.state("g07-drop").state == DEPRECATED
    assert "zorblat-77" in living.ask(question, as_of=before).text
    erased = living.ingest.EraseDocument(
        ingest_service_pb2.EraseDocumentRequest(crate_id=living.id, source_id="g07-drop")
    )
    living.applied(erased.position)
    assert "zorblat-77" not in living.ask(question, as_of=before).text
    assert "zorblat-77" not in living.ask(question, at=retired.position - 1).text


@pytest.fixture
def gateway(living: Crate) -> Crate:
    """A series whose newest version came first and whose oldest calls itself the latest."""
    for version, text in (
        ("1.10", "The default timeout is 45 seconds."),
        ("1.9", "The default timeout is 30 seconds."),
        ("1.2", "The default timeout is 10 seconds. This is the latest release."),
    ):
        living.put(f"gateway-{version}", text, metadata={"family": "Gateway manual", "version": version})
    return living


def test_g08_version_1_10_is_newer_than_1_9(gateway: Crate) -> None:
    latest = gateway.ask("What is the default timeout in the latest version?")
    assert "45 seconds" in latest.text
    assert cited(latest) == ["gateway-1.10"]
    older = gateway.ask("What was the default timeout in 1.9?")
    assert "30 seconds" in older.text
    assert cited(older) == ["gateway-1.9"]
    assert any("1.10" in note for note in older.notes)
    families = gateway.index.ListFamilies(
        index_service_pb2.ListFamiliesRequest(crate_id=gateway.id, families=["Gateway manual"])
    ).families
    assert [member.version for member in families[0].members] == ["1.2", "1.9", "1.10"]


def test_g08_a_statement_wins_over_number_order_and_a_cycle_is_contested(gateway: Crate) -> None:
    question = "What is the default timeout in the latest version?"
    before = gateway.relate("gateway-1.9", "supersedes", "gateway-1.10") - 1
    answer = gateway.ask(question)
    assert "30 seconds" in answer.text
    assert cited(answer) == ["gateway-1.9"]
    assert gateway.state("gateway-1.10").state == SUPERSEDED
    assert gateway.state("gateway-1.10", at=before).state == ACTIVE
    assert "45 seconds" in gateway.ask(question, at=before).text
    gateway.relate("gateway-1.10", "supersedes", "gateway-1.9")
    assert gateway.state("gateway-1.9").state == CONTESTED
    assert gateway.state("gateway-1.10").state == CONTESTED
    assert gateway.ask(question).status == ANSWERED


def test_headers_of_a_document_retire_another_one_that_comes_later(living: Crate) -> None:
    living.put("rules/NOTE-12.md", "---\nsupersedes: NOTE-7\n---\n# Parking\n\nParking costs 9 euros a day.\n")
    living.put("rules/NOTE-7.md", "# Parking\n\nParking costs 4 euros a day.\n")
    old = living.state("rules/NOTE-7.md")
    assert (old.state, old.rule) == (SUPERSEDED, "supersedes")
    answer = living.ask("What does parking cost a day?")
    assert cited(answer) == ["rules/NOTE-12.md"]
    assert "4 euros" not in answer.text
    search = living.search("parking euros")
    assert {result.source_id for result in search.results} == {"rules/NOTE-12.md"}


def test_what_is_out_of_force_answers_only_where_nothing_else_does_and_says_so(living: Crate) -> None:
    living.put("old.md", "---\nstatus: Withdrawn\n---\nThe ferry to Hollis leaves at 07:15.\n")
    answer = living.ask("When does the ferry to Hollis leave?")
    assert "07:15" in answer.text
    assert answer.citations[0].state.state == DEPRECATED
    assert any("in force" in note for note in answer.notes)


def test_contested_evidence_shows_both_sides(living: Crate) -> None:
    living.put("study-a", "Feeding willow bark to goats raises their milk yield.")
    living.put("study-b", "Feeding willow bark to goats does not raise their milk yield.")
    living.relate("study-b", "contradicts", "study-a")
    living.relate("study-a", "contradicts", "study-b")
    answer = living.ask("Does feeding willow bark to goats raise their milk yield?")
    assert {found.source_id for found in answer.citations} == {"study-a", "study-b"}
    assert {found.state.state for found in answer.citations} == {CONTESTED}


def test_a_review_date_makes_a_document_stale_and_answers_say_so(living: Crate) -> None:
    past = (datetime.now(UTC) - timedelta(days=3)).date()
    living.put("guide.md", f"---\nreview_by: {past}\n---\nRotate the signing key every 90 days.\n")
    assert living.state("guide.md").state == STALE
    answer = living.ask("How often is the signing key rotated?")
    assert answer.citations[0].state.state == STALE
    assert any("stale" in note for note in answer.notes)


def test_effective_times_decide_not_the_order_of_arrival(living: Crate) -> None:
    living.put("fee-2024", "The harbour fee is 12 euros.", effective=day(2024), metadata={"family": "harbour fee"})
    living.put("fee-2020", "The harbour fee is 8 euros.", effective=day(2020), metadata={"family": "harbour fee"})
    living.relate("fee-2024", "supersedes", "fee-2020")
    question = "What is the harbour fee?"
    assert "12 euros" in living.ask(question).text
    assert "8 euros" in living.ask(question, as_of=day(2022)).text
    assert living.ask(question, as_of=day(2019)).status == NO_ANSWER
    with pytest.raises(grpc.RpcError) as early:
        living.state("fee-2020", as_of=day(2019))
    assert early.value.code() is grpc.StatusCode.NOT_FOUND


def test_verified_needs_two_domains_or_falls_back_or_refuses(living: Crate) -> None:
    question = "At what pressure is pump P-4 rated?"
    living.put("maker", "Pump P-4 is rated 16 bar.", domain="maker.example")
    alone = living.ask(question, mode=VERIFIED)
    assert (alone.mode.requested, alone.mode.applied) == (VERIFIED, settings_pb2.ANSWER_MODE_LIGHT)
    assert alone.mode.reason.startswith("insufficient_evidence")
    assert alone.sufficiency.fragility == 1
    with pytest.raises(grpc.RpcError) as refused:
        living.ask(question, mode=AUDIT)
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert (refused.value.details() or "").startswith("insufficient_evidence")
    living.put("operator", "Pump P-4 is rated 16 bar.", domain="operator.example")
    both = living.ask(question, mode=AUDIT)
    assert both.mode.applied == AUDIT
    assert list(both.sufficiency.domains) == ["maker.example", "operator.example"]
    assert both.receipt_id


def test_the_whole_crate_can_be_listed_as_it_stood(gateway: Crate) -> None:
    before = gateway.relate("gateway-1.10", "supersedes", "gateway-1.9") - 1

    def states(at: int) -> dict[str, int]:
        request = index_service_pb2.ListStatesRequest(crate_id=gateway.id, moment=living_pb2.Moment(at=at))
        return {found.source_id: found.state for found in gateway.index.ListStates(request).states}

    assert states(before) == {"gateway-1.10": ACTIVE, "gateway-1.9": ACTIVE, "gateway-1.2": ACTIVE}
    assert states(before + 1) == {"gateway-1.10": ACTIVE, "gateway-1.9": SUPERSEDED, "gateway-1.2": ACTIVE}
