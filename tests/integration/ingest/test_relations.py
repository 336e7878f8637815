"""Statements about relations, by gRPC and by publishers' events."""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1.ingest_events_pb2 import RelationDeclared
from google.protobuf.timestamp_pb2 import Timestamp

from tests.integration.ingest.ingest_world import Client, Pipeline, World

pytestmark = pytest.mark.asyncio(loop_scope="module")
_ids = itertools.count()
UNKNOWN = "0" * 32


async def declare(client: Client, **fields: Any) -> pb.DeclareRelationResponse:
    """State an edge from "new" to "old" unless told otherwise."""
    ends = {"source_source_id": "new", "target_source_id": "old", "type": "supersedes"}
    return await client.stub.DeclareRelation(pb.DeclareRelationRequest(crate_id=client.crate, **ends | fields))


async def stated(world: World, crate: str, position: int) -> RelationDeclared:
    """The fact at a position."""
    event = await world.buses["ingest"].at("KNOWLEDGE", position)
    message = getattr(event, "message", None)
    assert getattr(event, "crate", "") == crate
    assert isinstance(message, RelationDeclared)
    return message


async def expect(call: Any, code: grpc.StatusCode, message: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=message) as failure:
        await call
    assert failure.value.code() is code


async def test_a_statement_is_a_fact_about_ids_alone(world: World, client: Client) -> None:
    new = await client.put("new", b"The gate opens at 06:00.")
    reply = await declare(client)
    assert not reply.unchanged
    assert reply.source_document_id == new.document_id
    # The other end isn't known yet; when it comes it has the id that the statement names.
    old = await client.put("old", b"The gate opens at 07:00.")
    assert reply.target_document_id == old.document_id
    fact = await stated(world, client.crate, reply.position)
    assert (fact.source_document_id, fact.type, fact.target_document_id) == (
        new.document_id,
        "supersedes",
        old.document_id,
    )
    assert (fact.confidence_ppm, fact.origin, fact.withdrawn) == (1_000_000, "declared", False)
    assert not fact.HasField("effective_at")


async def test_the_same_again_is_unchanged_and_anything_else_a_new_fact(world: World, client: Client) -> None:
    first = await declare(client, confidence=0.25)
    again = await declare(client, confidence=0.25)
    assert (again.unchanged, again.position) == (True, first.position)
    surer = await declare(client, confidence=0.5)
    dated = await declare(client, confidence=0.5, effective_at=Timestamp(seconds=1_700_000_000))
    assert first.position < surer.position < dated.position
    assert (await stated(world, client.crate, surer.position)).confidence_ppm == 500_000
    other = await declare(client, type="contradicts")
    assert not other.unchanged

    gone = await declare(client, withdrawn=True)
    fact = await stated(world, client.crate, gone.position)
    assert (fact.withdrawn, fact.confidence_ppm, fact.effective_at.seconds) == (True, 500_000, 1_700_000_000)
    twice = await declare(client, withdrawn=True)
    assert (twice.unchanged, twice.position) == (True, gone.position)
    back = await declare(client, confidence=0.5)
    assert not back.unchanged


async def test_a_document_may_be_named_by_id_even_when_it_is_erased(client: Client) -> None:
    new, old = await client.put("new", b"a"), await client.put("old", b"b")
    by_id = {"source_source_id": "", "target_source_id": ""}
    ends = by_id | {"source_document_id": new.document_id, "target_document_id": old.document_id}
    first = await declare(client, **ends)
    assert (await declare(client)).position == first.position
    await client.erase("old")
    assert (await declare(client, **ends)).unchanged
    await expect(
        declare(client, **ends | {"target_document_id": UNKNOWN}),
        grpc.StatusCode.NOT_FOUND,
        f"document {UNKNOWN} does not exist in crate {client.crate}: name a document that is still to come by its",
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "replaces"}, "type 'replaces' is no relation: choose from supersedes, derived_from, cites"),
        ({"type": ""}, "is no relation"),
        ({"target_source_id": "new"}, "can't be related to itself"),
        ({"target_source_id": ""}, "name the target of the relation by target_document_id or by target_source_id"),
        (
            {"source_document_id": UNKNOWN},
            "name the source of the relation by source_document_id or by source_source_id",
        ),
        ({"source_source_id": "../x"}, "has a '..' in it"),
        ({"confidence": 1.5}, "confidence 1.5 is out of range"),
        ({"confidence": -0.1}, "confidence -0.1 is out of range"),
        ({"confidence": float("nan")}, "confidence nan is out of range"),
        ({"effective_at": Timestamp(seconds=1 << 50)}, "effective_at isn't a time between the years 1 and 9999"),
        ({"withdrawn": True, "confidence": 0.5}, "leave confidence and effective_at out"),
    ],
)
async def test_what_can_t_be_stated_is_refused(client: Client, fields: dict[str, Any], message: str) -> None:
    await expect(declare(client, **fields), grpc.StatusCode.INVALID_ARGUMENT, message)


async def test_what_was_never_stated_can_t_be_withdrawn(client: Client) -> None:
    await expect(declare(client, withdrawn=True), grpc.StatusCode.NOT_FOUND, "it was never stated that")
    await expect(
        client.stub.DeclareRelation(
            pb.DeclareRelationRequest(crate_id="nobody", type="cites", source_source_id="a", target_source_id="b")
        ),
        grpc.StatusCode.NOT_FOUND,
        "crate 'nobody' does not exist",
    )


async def test_writers_at_once_come_to_one_fact_per_statement(client: Client) -> None:
    same = await asyncio.gather(*(declare(client) for _ in range(6)))
    assert len({reply.position for reply in same}) == 1
    assert sum(not reply.unchanged for reply in same) == 1
    different = await asyncio.gather(*(declare(client, type="cites", confidence=n / 10) for n in range(6)))
    assert len({reply.position for reply in different}) == 6


async def test_an_edge_has_an_aggregate_of_its_own(world: World, client: Client) -> None:
    new = await client.put("new", b"a")
    await declare(client)
    last = await world.buses["ingest"].last(crate=client.crate, service="ingest", aggregate=new.document_id)
    assert last is not None
    assert last.name == "DocumentIngested"
    assert (await client.put("new", b"b")).revision == 2


def event(subject: str = "new", **data: object) -> dict[str, object]:
    return {
        "specversion": "1.0",
        "id": f"relation-{next(_ids)}",
        "source": "/tests/publisher",
        "type": "dev.affidavit.relation.declare",
        "subject": subject,
        "data": {"type": "supersedes", "target": "old", **data},
    }


async def submit(world: World, crate: str, payload: dict[str, object]) -> dict[str, Any]:
    data = json.dumps(payload).encode()
    reply = await world.buses["chunker"].nats.request(f"affidavit.submit.{crate}", data, timeout=10)
    found: dict[str, Any] = json.loads(reply.data)
    return found


async def test_publishers_state_relations_too(world: World, client: Client) -> None:
    first = await submit(world, client.crate, event(confidence=0.5, effective_at="2026-01-02T00:00:00Z"))
    assert (first["outcome"], first["notices"]) == ("declared", [])
    fact = await stated(world, client.crate, first["position"])
    assert (fact.source_document_id, fact.confidence_ppm) == (first["source_document_id"], 500_000)
    assert fact.effective_at.ToDatetime(tzinfo=UTC) == datetime(2026, 1, 2, tzinfo=UTC)
    again = await submit(world, client.crate, event(confidence=0.5, effective_at="2026-01-02T01:00:00+01:00"))
    assert (again["outcome"], again["position"]) == ("unchanged", first["position"])
    gone = await submit(world, client.crate, event(withdrawn=True))
    assert gone["outcome"] == "withdrawn"
    assert (await declare(client, withdrawn=True)).position == gone["position"]


async def test_an_event_of_a_publisher_is_carried_out_once(world: World, client: Client) -> None:
    one = event()
    first = await submit(world, client.crate, one)
    await submit(world, client.crate, event(withdrawn=True))
    # Sent again after it was taken back, it must not come back.
    again = await submit(world, client.crate, one)
    assert (again["outcome"], again["first_outcome"], again["position"]) == (
        "duplicate",
        "declared",
        first["position"],
    )
    # And so it is with one that changed nothing.
    two = await submit(world, client.crate, event(type="cites"))
    same = event(type="cites")
    unchanged = await submit(world, client.crate, same)
    assert (unchanged["outcome"], unchanged["position"]) == ("unchanged", two["position"])
    await submit(world, client.crate, event(type="cites", withdrawn=True))
    repeated = await submit(world, client.crate, same)
    assert (repeated["outcome"], repeated["first_outcome"]) == ("duplicate", "unchanged")
    assert repeated["position"] == two["position"]
    assert (await declare(client, type="cites", withdrawn=True)).unchanged
    assert (await submit(world, client.crate, event(type="cites")))["outcome"] == "declared"
    put = {**one, "type": "dev.affidavit.document.put", "data": "text", "datacontenttype": "text/plain"}
    assert (await submit(world, client.crate, put))["first_outcome"] == "declared"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "supersedes"}, "data must be a JSON object"),
        (
            {"data": {"type": "cites", "target": "b", "since": "2026"}},
            "data has 'since', which a relation doesn't have",
        ),
        ({"data": {"target": "b"}}, "type is missing or empty"),
        ({"data": {"type": "cites", "target": "b", "confidence": "high"}}, "confidence must be a number"),
        ({"data": {"type": "cites", "target": "b", "confidence": 10**400}}, "confidence must be a number"),
        ({"data": {"type": "cites", "target": "b", "withdrawn": "yes"}}, "withdrawn must be true or false"),
        ({"data": {"type": "cites", "target": "b", "effective_at": "2026-01-02T00:00:00"}}, "names no time zone"),
        ({"confidence": 1}, "confidence is no attribute of a relation's event"),
        ({"subject": None}, "name the source of the relation"),
    ],
)
async def test_a_publisher_is_told_what_is_wrong(
    world: World, client: Client, change: dict[str, object], message: str
) -> None:
    reply = await submit(world, client.crate, {**event(), **change})
    assert reply["error"]["code"] == "rejected"
    assert message in reply["error"]["message"]


async def test_a_publisher_s_clock_that_is_ahead_is_noted(world: World, client: Client) -> None:
    late = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    reply = await submit(world, client.crate, {**event(), "time": late})
    assert "clock is" in reply["notices"][0]
    put = {**event(), "type": "dev.affidavit.document.put", "data": "x", "datacontenttype": "text/plain", "time": late}
    stored = await submit(world, client.crate, put)
    assert "clock is" in stored["notices"][0]
    again = await submit(world, client.crate, put | {"id": "another", "time": datetime.now(UTC).isoformat()})
    assert (again["outcome"], again["notices"]) == ("unchanged", [])


async def test_the_document_s_own_effective_time_counts_and_the_caller_wins(client: Client, pipeline: Pipeline) -> None:
    body = b"---\nEffective-Date: 2021-03-01\n---\n# Leave\n\nSee [the old one](old.md#days).\n"
    first = await client.put("leave.md", body, media_type="text/markdown")
    fact = await pipeline.ingested(first.document_id)
    assert fact.effective_at.ToDatetime(tzinfo=UTC) == datetime(2021, 3, 1, tzinfo=UTC)
    again = await client.put("leave.md", body, media_type="text/markdown")
    assert (again.outcome, again.position) == (pb.PUT_OUTCOME_UNCHANGED, first.position)
    later = Timestamp(seconds=1_700_000_000)
    moved = await client.put("leave.md", body, media_type="text/markdown", effective_at=later)
    assert (moved.outcome, moved.revision) == (pb.PUT_OUTCOME_REPLACED, 2)
    assert (await pipeline.ingested(first.document_id)).effective_at == later
    assert (await client.put("leave.md", body, media_type="text/markdown", effective_at=later)).revision == 2
