"""Statements about relations: what is accepted, and what one comes to."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from affidavit.ingest.v1 import ingest_events_pb2 as pb
from affidavit.ingest.v1 import ingest_service_pb2 as service_pb
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.codec import facts, requests, submissions
from services.ingest.codec.submissions import SubmissionKind
from services.ingest.domain import relations
from services.ingest.domain.refusals import Refused, Unknown
from services.ingest.domain.relations import Edge, End, RelationOutcome, RelationResult, RelationType, Statement
from services.ingest.domain.values import Stated
from services.kernel.envelope import Event

A, B = "a" * 32, "b" * 32
NOW = datetime(2026, 1, 2, tzinfo=UTC)
EDGE = Edge(source=A, type=RelationType.SUPERSEDES, target=B)
STATEMENT = Statement(source=End(source_id="a"), type="supersedes", target=End(source_id="b"))
EDGES = st.builds(
    Edge,
    source=st.just(A),
    type=st.sampled_from(RelationType),
    target=st.just(B),
    confidence_ppm=st.integers(0, relations.PPM),
    effective_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    withdrawn=st.booleans(),
)


def test_a_statement_is_brought_to_its_one_form() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=timezone(timedelta(hours=2)))
    checked = relations.checked(replace(STATEMENT, type=" Derived-From ", effective_at=noon, confidence=0.1))
    edge = relations.edge(checked, A, B)
    assert edge == Edge(
        source=A,
        type=RelationType.DERIVED_FROM,
        target=B,
        confidence_ppm=100_000,
        effective_at=datetime(2026, 1, 2, 10, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (replace(STATEMENT, source=End()), "name the source of the relation"),
        (replace(STATEMENT, target=End(document_id=B, source_id="b")), "name the target of the relation"),
        (replace(STATEMENT, type="is"), "choose from supersedes, derived_from, cites, elaborates, implements, contr"),
        (replace(STATEMENT, confidence=float("inf")), "confidence inf is out of range"),
        (replace(STATEMENT, withdrawn=True, effective_at=NOW), "leave confidence and effective_at out"),
        (replace(STATEMENT, effective_at=datetime(2026, 1, 2)), "names no time zone"),  # noqa: DTZ001  (the case)
        (
            replace(STATEMENT, effective_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))),
            "isn't a time between the years 1 and 9999",
        ),
    ],
)
def test_what_can_t_be_used_is_refused(statement: Statement, message: str) -> None:
    with pytest.raises(Refused, match=message):
        relations.checked(statement)


@given(EDGES, EDGES)
def test_what_holds_is_not_said_again(held: Edge, wanted: Edge) -> None:
    recorded = relations.decide(held, wanted)
    after = recorded or held
    assert after.withdrawn == wanted.withdrawn
    assert relations.decide(after, wanted) is None
    if not wanted.withdrawn:
        assert after == wanted


def test_only_what_was_stated_is_taken_back() -> None:
    with pytest.raises(Unknown, match=f"it was never stated that {A} supersedes {B}: there is nothing to withdraw"):
        relations.decide(None, replace(EDGE, withdrawn=True))
    assert relations.decide(None, EDGE) == EDGE
    assert relations.edge(relations.checked(STATEMENT), A, B) == EDGE


@given(EDGES)
def test_events_keep_everything(edge: Edge) -> None:
    message = facts.relation_declared(edge, NOW)
    assert facts.edge(pb.RelationDeclared.FromString(message.SerializeToString())) == edge


def test_a_type_of_a_later_release_says_nothing_here() -> None:
    assert facts.edge(pb.RelationDeclared(type="amends")) is None


@pytest.mark.parametrize("withdrawn", [True, False])
def test_the_tables_learn_of_the_publisher_s_event(withdrawn: bool) -> None:
    message = facts.relation_declared(replace(EDGE, withdrawn=withdrawn), NOW)
    event = Event(
        stream="KNOWLEDGE", crate="main", service="ingest", aggregate="x", name="RelationDeclared",
        key="x:0:RelationDeclared:0::s1", message=message, position=7, time=NOW, deliveries=1,
    )  # fmt: skip
    outcome = RelationOutcome.WITHDRAWN if withdrawn else RelationOutcome.DECLARED
    assert facts.fact(event) == Stated(crate_id="main", document_id=A, position=7, outcome=outcome, submission="s1")


def test_each_edge_has_an_aggregate_of_its_own() -> None:
    secret = bytes(32)
    made = {
        relations.aggregate(key, source, kind, target)
        for key in (secret, b"1" * 32)
        for source, kind, target in ((A, "cites", B), (B, "cites", A), (A, "supersedes", B))
    }
    assert len(made) == 6
    assert all(len(name) == 32 for name in made)


def test_a_request_without_a_confidence_is_certain() -> None:
    read = requests.statement(
        service_pb.DeclareRelationRequest(source_source_id="a", type="supersedes", target_source_id="b")
    )
    assert read == STATEMENT
    assert requests.statement(service_pb.DeclareRelationRequest(confidence=0)).confidence == 0.0


def test_the_reply_to_a_publisher_tells_what_the_first_event_came_to() -> None:
    first = submissions.relation_reply(RelationResult(A, B, 7, RelationOutcome.DECLARED), ("late",))
    assert b'"outcome": "declared"' in first
    assert b'["late"]' in first
    again = submissions.relation_reply(RelationResult(A, "", 7, RelationOutcome.DECLARED, repeats=True))
    assert b'"outcome": "duplicate"' in again
    assert b'"first_outcome": "declared"' in again


def test_a_publisher_s_event() -> None:
    read = submissions.submission(
        b'{"specversion": "1.0", "id": "1", "source": "/x", "type": "dev.affidavit.relation.declare",'
        b' "time": "2026-01-02T00:00:00Z", "data": {"source_document_id": "s", "type": "cites",'
        b' "target_document_id": "t", "confidence": 1, "effective_at": null, "withdrawn": false}}'
    )
    assert (read.kind, read.sent_at, read.header.source_id) == (SubmissionKind.RELATE, NOW, "")
    assert read.statement == Statement(
        source=End(document_id="s"), type="cites", target=End(document_id="t"), confidence=1.0
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "supersedes"}, "data must be a JSON object"),
        ({"data_base64": "e30="}, "data must be a JSON object"),
        ({"data": {"type": "cites", "since": "2026"}}, "data has 'since', which a relation doesn't have"),
        ({"data": {"type": "cites", "confidence": "high"}}, "confidence must be a number"),
        ({"data": {"type": "cites", "confidence": True}}, "confidence must be a number"),
        ({"data": {"type": "cites", "confidence": 10**400}}, "confidence must be a number"),
        ({"data": {"type": "cites", "withdrawn": "yes"}}, "withdrawn must be true or false"),
        (
            {"effectiveat": "2026-01-02T00:00:00Z"},
            "effectiveat is no attribute of a relation's event: put it into data",
        ),
    ],
)
def test_a_publisher_is_told_what_is_wrong(change: dict[str, object], message: str) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/x", "type": "dev.affidavit.relation.declare", "subject": "a"}
    event |= {"data": {"type": "cites", "target": "b"}, **change}  # type: ignore[dict-item]  # wrong on purpose
    with pytest.raises(Refused, match=message):
        submissions.submission(json.dumps(event).encode())


def test_no_document_is_related_to_itself() -> None:
    with pytest.raises(Refused, match="a document can't be related to itself"):
        relations.edge(STATEMENT, A, A)


def test_a_withdrawal_of_a_withdrawal_says_nothing_new() -> None:
    gone = replace(EDGE, withdrawn=True)
    assert relations.decide(gone, gone) is None
    assert relations.decide(EDGE, gone) == gone


def test_the_clock_tells_the_time() -> None:
    assert facts.clock_advanced(NOW).now.ToDatetime(tzinfo=UTC) == NOW
