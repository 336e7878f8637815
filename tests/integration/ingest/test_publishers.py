"""Publishers' request-reply over core NATS."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb

from tests.integration.ingest.ingest_world import Client, Pipeline, World

pytestmark = pytest.mark.asyncio(loop_scope="module")
_ids = iter(range(10_000))


def event(kind: str, subject: str, **attributes: object) -> dict[str, object]:
    made = {
        "specversion": "1.0",
        "id": str(next(_ids)),
        "source": "/tests/publisher",
        "type": f"dev.affidavit.document.{kind}",
        "subject": subject,
        **attributes,
    }
    if kind == "put" and not made.keys() & {"data", "data_base64"}:
        made |= {"data": "The west gate opens at 06:00.", "datacontenttype": "text/plain"}
    return made


async def submit(world: World, crate: str, payload: dict[str, object] | bytes) -> dict[str, Any]:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    reply = await world.buses["chunker"].nats.request(f"affidavit.submit.{crate}", data, timeout=10)
    found: dict[str, Any] = json.loads(reply.data)
    return found


async def test_put_retire_and_erase(world: World, client: Client, pipeline: Pipeline) -> None:
    put = await submit(world, client.crate, event("put", "gate", title="Gate", owner="HR"))
    assert (put["outcome"], put["revision"]) == ("created", 1)
    document = await client.get("gate")
    assert (document.document_id, document.title) == (put["document_id"], "Gate")
    assert (await pipeline.event(document.document_id)).position == put["position"]

    again = await submit(world, client.crate, event("put", "gate", title="Gate", owner="HR"))
    assert (again["outcome"], again["position"]) == ("unchanged", put["position"])

    retired = await submit(world, client.crate, event("retire", "gate"))
    assert (retired["outcome"], retired["revision"]) == ("retired", 1)
    assert (await submit(world, client.crate, event("retire", "gate")))["outcome"] == "unchanged"
    erased = await submit(world, client.crate, event("erase", "gate"))
    assert erased["outcome"] == "erased"
    assert (await client.get("gate")).status == pb.DOCUMENT_STATUS_ERASED


async def test_a_repeated_event_says_what_the_first_one_came_to(world: World, client: Client) -> None:
    first = event("put", "x", data="A", datacontenttype="text/plain")
    reply = await submit(world, client.crate, first)
    await submit(world, client.crate, event("put", "x", data="B", datacontenttype="text/plain"))
    # Sent again after the document has moved on, it must not bring the old content back.
    again = await submit(world, client.crate, first)
    assert (again["outcome"], again["first_outcome"]) == ("duplicate", "created")
    assert (again["revision"], again["position"]) == (1, reply["position"])
    assert again["document_id"] == reply["document_id"]
    assert (await client.get("x")).revision == 2

    retire = event("retire", "x")
    gone = await submit(world, client.crate, retire)
    await submit(world, client.crate, event("put", "x", data="C", datacontenttype="text/plain"))
    repeated = await submit(world, client.crate, retire)
    assert (repeated["outcome"], repeated["first_outcome"]) == ("duplicate", "retired")
    assert repeated["position"] == gone["position"]
    assert (await client.get("x")).status == pb.DOCUMENT_STATUS_PENDING


async def test_another_body_under_the_same_id_isn_t_taken_for_stored(world: World, client: Client) -> None:
    first = event("put", "x", data="A", datacontenttype="text/plain")
    stored = await submit(world, client.crate, first)
    for other in (first | {"data": "B"}, first | {"subject": "y"}, first | {"type": "dev.affidavit.document.erase"}):
        reply = await submit(world, client.crate, other)
        assert (reply["outcome"], reply["first_outcome"]) == ("duplicate", "created")
        assert (reply["document_id"], reply["position"]) == (stored["document_id"], stored["position"])
        assert "was not used" in reply["notices"][0]
    assert (await client.get("x")).revision == 1


async def test_replies_say_that_they_are_json(world: World, client: Client) -> None:
    for payload in (event("put", "x"), event("put", "../x")):
        data = json.dumps(payload).encode()
        reply = await world.buses["chunker"].nats.request(f"affidavit.submit.{client.crate}", data, timeout=10)
        assert reply.headers is not None
        assert reply.headers["content-type"] == "application/json"


async def test_the_same_event_many_times_at_once_is_recorded_once(world: World, client: Client) -> None:
    one = event("put", "x")
    replies = await asyncio.gather(*(submit(world, client.crate, one) for _ in range(6)))
    assert len({reply["position"] for reply in replies}) == 1
    assert (await client.get("x")).revision == 1


async def test_the_same_id_in_another_crate_is_another_event(world: World, client: Client) -> None:
    other = f"{client.crate}-b"
    await client.create_crate(other)
    one = event("put", "x")
    here, there = await submit(world, client.crate, one), await submit(world, other, one)
    assert here["position"] != there["position"]
    assert there["outcome"] == "created"


async def test_bytes_come_as_base64(world: World, client: Client) -> None:
    body = "Срок хранения записей — 7 лет.".encode("windows-1251")
    payload = event(
        "put",
        "archive.txt",
        data_base64=base64.b64encode(body).decode(),
        datacontenttype="text/plain; charset=windows-1251",
    )
    await submit(world, client.crate, payload)
    revision = (await client.get("archive.txt")).revisions[0]
    assert (revision.size_bytes, revision.charset) == (len(body), "cp1251")


async def test_data_that_is_json_is_a_json_document(world: World, client: Client) -> None:
    await submit(world, client.crate, event("put", "r", data={"retention": "30 days"}))
    revision = (await client.get("r")).revisions[0]
    assert revision.media_type == "application/json"


async def test_refusals_have_a_code_and_a_message_and_others_go_on(world: World, client: Client) -> None:
    large = base64.b64encode(b"a" * (512 * 1024 + 1)).decode()
    cases: list[tuple[dict[str, object] | bytes, str, str]] = [
        (b"not json", "rejected", "the event isn't JSON"),
        (event("put", "../x"), "rejected", "has a '..' in it"),
        (event("move", "x"), "rejected", "is unknown: use one of dev.affidavit.document.put"),
        (event("retire", "nobody"), "not_found", "document 'nobody' does not exist"),
        (event("put", "x", jobid="nightly"), "not_found", "job 'nightly' does not exist"),
        (event("put", "x", job="nightly"), "not_found", "job 'nightly' does not exist"),
        (event("put", "x", time="yesterday"), "rejected", "time 'yesterday' isn't an RFC 3339 time"),
        (event("erase", "x", time="2024-05-01"), "rejected", "names no time zone"),
        (event("put", "x", data_base64=large), "rejected", "send it with UploadDocument"),
        (event("put", "x", data="\ud800 lone", datacontenttype="text/plain"), "", ""),
    ]
    replies = await asyncio.gather(*(submit(world, client.crate, payload) for payload, _, _ in cases))
    for (_, code, message), reply in zip(cases, replies, strict=True):
        if code:
            assert reply["error"]["code"] == code, reply
            assert message in reply["error"]["message"]
        else:
            assert reply["outcome"] == "created"


async def test_a_crate_that_is_missing_or_no_crate_is_refused(world: World) -> None:
    reply = await submit(world, "nobody", event("put", "x"))
    assert reply["error"]["code"] == "not_found"
    assert "crate 'nobody' does not exist" in reply["error"]["message"]
    assert (await submit(world, "No_Crate", event("put", "x")))["error"]["code"] == "rejected"


async def test_a_submission_without_a_reply_subject_is_carried_out(world: World, client: Client) -> None:
    payload = json.dumps(event("put", "quiet")).encode()
    await world.buses["chunker"].nats.publish(f"affidavit.submit.{client.crate}", payload)
    await client.until_there("quiet")


async def test_an_event_that_changed_nothing_is_known_when_it_is_delivered_again(
    world: World, client: Client, pipeline: Pipeline
) -> None:
    body = {"datacontenttype": "text/plain"}
    await submit(world, client.crate, event("put", "x", data="A", **body))
    same = event("put", "x", data="A", **body)
    unchanged = await submit(world, client.crate, same)
    assert unchanged["outcome"] == "unchanged"
    await submit(world, client.crate, event("put", "x", data="B", **body))
    await expect_repeated(world, client, same, unchanged)
    assert (await client.get("x")).revision == 2

    await submit(world, client.crate, event("retire", "x"))
    retire = event("retire", "x")
    retired = await submit(world, client.crate, retire)
    await submit(world, client.crate, event("put", "x", data="C", **body))
    await expect_repeated(world, client, retire, retired)
    assert (await client.get("x")).status == pb.DOCUMENT_STATUS_PENDING

    await submit(world, client.crate, event("erase", "x"))
    erase = event("erase", "x")
    erased = await submit(world, client.crate, erase)
    assert erased["outcome"] == "unchanged"
    await submit(world, client.crate, event("put", "x", data="D", **body))
    await expect_repeated(world, client, erase, erased)
    document = await client.get("x")
    await pipeline.finish(document.document_id)
    assert (await client.until("x", pb.DOCUMENT_STATUS_SEARCHABLE)).revision == 4


async def expect_repeated(world: World, client: Client, payload: dict[str, object], first: dict[str, Any]) -> None:
    again = await submit(world, client.crate, payload)
    assert (again["outcome"], again["first_outcome"]) == ("duplicate", "unchanged"), again
    assert [again[name] for name in ("position", "revision", "document_id")] == [
        first[name] for name in ("position", "revision", "document_id")
    ]


async def test_what_changed_nothing_delivered_many_times_at_once_is_noted_once(world: World, client: Client) -> None:
    first = await submit(world, client.crate, event("put", "x"))
    before = await world.buses["ingest"].last_position()
    same = event("put", "x")
    replies = await asyncio.gather(*(submit(world, client.crate, same) for _ in range(8)))
    assert {reply["position"] for reply in replies} == {first["position"]}
    assert sorted(reply["outcome"] for reply in replies) == ["duplicate"] * 7 + ["unchanged"]
    assert await world.buses["ingest"].last_position() == before + 1


@pytest.mark.parametrize("kind", ["put", "retire", "erase"])
async def test_many_events_about_one_document_at_once_all_succeed(world: World, client: Client, kind: str) -> None:
    await submit(world, client.crate, event("put", "x"))
    bodies = [{"data": f"Text {number}", "datacontenttype": "text/plain"} for number in range(30)]
    payloads = [event(kind, "x", **(body if kind == "put" else {})) for body in bodies]
    replies = await asyncio.gather(*(submit(world, client.crate, payload) for payload in payloads))
    assert [reply for reply in replies if "error" in reply] == []
    expected = {"put": 31, "retire": 1, "erase": 1}
    assert (await client.get("x")).revision == expected[kind]


async def test_times_at_the_calendar_s_ends_are_stored_or_refused(world: World, client: Client) -> None:
    for number, (given, code) in enumerate(
        [
            ("0001-01-01T00:00:00Z", ""),
            ("9999-12-31T23:59:59.999999Z", ""),
            ("0001-01-01T00:00:00+14:00", "rejected"),
            ("9999-12-31T23:59:59-14:00", "rejected"),
        ]
    ):
        # Nothing rests on the publisher's own time.
        assert "error" not in await submit(world, client.crate, event("put", f"sent-{number}", time=given))
        reply = await submit(world, client.crate, event("put", f"effective-{number}", effectiveat=given))
        assert reply.get("error", {}).get("code", "") == code
        body = f"---\neffective_date: {given}\n---\n\nThe gate opens."
        put = event("put", f"stated-{number}.md", data=body, datacontenttype="text/markdown")
        assert "error" not in await submit(world, client.crate, put)
    listed = await client.stub.ListDocuments(pb.ListDocumentsRequest(crate_id=client.crate))
    assert len(listed.documents) == 10
