"""Who holds crate A only gets nothing of crate B: over every RPC and every subject, by crate and by id.

Generated from the contracts: an RPC, a subject or a name in a request that has no case here fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg
import grpc
import pytest
import pytest_asyncio
from affidavit.event.v1.envelope_pb2 import TaskFailed
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2 as query_pb
from google.protobuf.descriptor import Descriptor

from docs import generate
from services import topology
from services.ingest.codec.submissions import SubmissionKind
from services.kernel.auth import LOCAL_OWNER, Credentials, Principal
from services.kernel.bus import Bus
from tests.integration.access.calls import PRINCIPAL, Caller, Outcome, fields, methods, path
from tests.integration.access.cases import CASES, NAMES, NO_NAMES, OWNER, READER, UNSCOPED, WRITER, Things
from tests.integration.whole_node import WholeNode

pytestmark = pytest.mark.asyncio(loop_scope="module")
METHODS = methods()
A, B, NOWHERE = "harbour-a", "harbour-b", "harbour-x"
CANARY = "Quenby's wharf code is 7341"
ROLES = (READER, WRITER, OWNER)
TEXT = "The harbour of {} lies north of the lighthouse, and it opens at six."


async def identify(shown: Credentials) -> Principal:
    """Who calls, by what it says of itself: stands in for tokens."""
    return Principal(shown.metadata.get(PRINCIPAL, LOCAL_OWNER))


@dataclass(frozen=True, slots=True)
class World:
    """The node, and what crate B holds."""

    node: WholeNode
    things: Things

    def caller(self, principal: str = "") -> Caller:
        """Calls as a principal; the machine's owner without one."""
        return Caller(self.node.channel, principal)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> AsyncIterator[World]:
    folder: Path = tmp_path_factory.mktemp("access")
    async with WholeNode.start(folder, postgres_server, identify=identify) as node:
        things = {crate: await furnish(node, crate) for crate in (A, B)}
        access = await asyncpg.connect(node.settings.postgres_dsn)
        for crate in (A, B):
            for role in ROLES:
                await access.execute("insert into access.grants values ($1, $2, $3)", f"{role}-of-{crate}", crate, role)
        await access.close()
        yield World(node, things[B])


async def furnish(node: WholeNode, crate: str) -> Things:
    """Fill a crate with one of everything."""
    await node.create(crate)
    await node.ingest.PutJob(pb.PutJobRequest(crate_id=crate, job=pb.Job(job_id=f"nightly-{crate[-1]}")))
    source = f"notes-{crate[-1]}.txt"
    text = TEXT.format(crate) + (f" {CANARY}." if crate == B else "")
    document = (await node.put(crate, source, text)).document_id
    await node.until(crate, source, pb.DOCUMENT_STATUS_SEARCHABLE)
    asked = await node.query.Ask(
        query_pb.AskRequest(crate_id=crate, question="When does the harbour open?", mode=settings_pb2.ANSWER_MODE_LIGHT)
    )
    assert asked.receipt_id, asked
    bus = await Bus.connect(node.settings.nats_url, role="chunker")
    failed = TaskFailed(service="chunker", stream=topology.KNOWLEDGE, position=1, code="corrupt", reason="a test")
    failure = await bus.append(crate=crate, aggregate="none", message=failed, key="failed")
    await bus.close()
    return Things(
        crate=crate,
        document=document,
        source=source,
        job=f"nightly-{crate[-1]}",
        receipt=asked.receipt_id,
        answer=asked.answer_id,
        failure=failure.position,
    )


def unknown() -> Things:
    """Names of the same forms that nobody ever gave."""
    return Things(
        crate=A,
        document="0" * 32,
        source="unheard-of.txt",
        job="unheard-of",
        receipt="0" * 64,
        answer="unheard-of-answer",
        failure=2**40,
    )


def names(of: Things) -> tuple[str, ...]:
    """What a caller calls things, longest first."""
    title = of.source.removesuffix(".txt")
    return (of.receipt, of.document, of.answer, of.source, title, of.job, str(of.failure))


def leaks(outcome: Outcome) -> bool:
    """Whether a word of B's content is anywhere in what came back."""
    seen = (outcome.text.encode(), *(reply.SerializeToString() for reply in outcome.replies), repr(outcome).encode())
    return any(CANARY.encode() in part or b"7341" in part for part in seen)


def all_fields(descriptor: Descriptor, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names of all fields of a message, at any depth."""
    for field in descriptor.fields:
        yield field.name
        inner = field.message_type
        if inner is not None and inner.full_name not in seen:
            yield from all_fields(inner, seen | {inner.full_name})


async def test_every_rpc_has_a_case_that_names_all_it_can_name() -> None:
    assert sorted(CASES) == sorted(METHODS), "a new RPC needs its case in tests/integration/access/cases.py"
    for name, method in METHODS.items():
        wanted = {field for field in all_fields(method.input_type) if field.endswith(("_id", "_ids"))}
        assert wanted <= NAMES | NO_NAMES, f"{name} names something new: {wanted - NAMES - NO_NAMES}"
        sent = {field.name for request in CASES[name].requests(unknown()) for _, field in fields(request)}
        # Either of two names will do where the contract takes one of two.
        either = {"document_id", "source_id"} if "Document" in name else set()
        either |= {"source_document_id", "target_source_id"} if "Relation" in name else set()
        skipped = (wanted & NAMES) - sent
        assert not skipped - either, f"the case of {name} leaves out {skipped}"


async def test_every_rpc_asks_for_the_role_that_its_case_says() -> None:
    assert {name: topology.rpc_grant(path(method)) for name, method in METHODS.items()} == {
        name: case.role for name, case in CASES.items()
    }


@pytest.mark.parametrize("name", METHODS)
async def test_a_foreign_crate_looks_like_a_missing_one(world: World, name: str) -> None:
    caller, request = world.caller(f"owner-of-{A}"), CASES[name].requests
    foreign = await caller.call(METHODS[name], request(world.things))
    assert foreign.code is grpc.StatusCode.NOT_FOUND
    assert not foreign.replies
    missing = await caller.call(METHODS[name], request(replace(world.things, crate=NOWHERE)))
    assert foreign.without([B]) == missing.without([NOWHERE])
    # The owner of everything is told the same of a crate that doesn't exist, so that the text gives nothing away.
    if CASES[name].role != OWNER and name != UNSCOPED:
        nobody = await world.caller().call(METHODS[name], request(replace(world.things, crate=NOWHERE)))
        assert nobody.without([NOWHERE]) == foreign.without([B])


@pytest.mark.parametrize("name", METHODS)
async def test_the_ids_of_a_foreign_crate_mean_nothing_in_ones_own(world: World, name: str) -> None:
    caller, request = world.caller(f"owner-of-{A}"), CASES[name].requests
    theirs, nobodys = replace(world.things, crate=A), unknown()
    either = (*names(theirs), *names(nobodys))
    async with asyncio.timeout(20):
        while True:
            tried = await caller.call(METHODS[name], request(theirs))
            assert not leaks(tried)
            compared = await caller.call(METHODS[name], request(nobodys))
            # Other cases put documents of both names into A, one after the other: what only reads follows a little later.
            if CASES[name].role != READER or tried.without(either) == compared.without(either):
                break
            await asyncio.sleep(0.05)
    assert tried.without(either) == compared.without(either)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.role == READER and name != UNSCOPED])
async def test_whoever_holds_the_crate_is_let_in(world: World, name: str) -> None:
    answered = await world.caller(f"reader-of-{B}").call(METHODS[name], CASES[name].requests(world.things))
    assert "does not exist" not in answered.text
    # The crate retrieves chunks as they are, which only those are told who are let in.
    told = grpc.StatusCode.NOT_FOUND if "has no propositions" in answered.text else grpc.StatusCode.OK
    assert answered.code in (told, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.role != READER])
async def test_a_lower_role_does_not_do(world: World, name: str) -> None:
    for role in ROLES[: ROLES.index(CASES[name].role)]:
        refused = await world.caller(f"{role}-of-{B}").call(METHODS[name], CASES[name].requests(world.things))
        assert refused.code is grpc.StatusCode.NOT_FOUND
        assert not refused.replies
    document = await world.node.document(B, world.things.source)
    assert (document.status, document.revision) == (pb.DOCUMENT_STATUS_SEARCHABLE, 1)


async def test_nobody_gets_nothing(world: World) -> None:
    for name, case in CASES.items():
        refused = await world.caller("a stranger").call(METHODS[name], case.requests(world.things))
        assert refused.code is grpc.StatusCode.NOT_FOUND, name


async def test_a_stream_does_not_change_the_crate_on_its_way(world: World) -> None:
    method = METHODS["IngestService/UploadDocument"]
    header = pb.DocumentHeader(source_id="mine.txt", media_type="text/plain")
    requests = [
        pb.UploadDocumentRequest(crate_id=A, header=header),
        pb.UploadDocumentRequest(crate_id=B, body=b"text"),
    ]
    refused = await world.caller(f"owner-of-{A}").call(method, requests)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT


async def submit(world: World, principal: str, crate: str, kind: SubmissionKind, subject: str) -> dict[str, Any]:
    event = {"specversion": "1.0", "id": f"{principal}:{crate}:{subject}", "source": "/test"}
    event |= {"type": kind, "subject": subject, "datacontenttype": "text/plain"}
    if kind is SubmissionKind.PUT:
        event["data"] = "A text that a publisher sends."
    reply = await world.node.nats.request(
        f"{topology.SUBMIT_SUBJECT}.{crate}", json.dumps(event).encode(), headers={PRINCIPAL: principal}, timeout=10
    )
    found: dict[str, Any] = json.loads(reply.data)
    return found


async def test_publishers_have_one_subject() -> None:
    channels = set(generate.asyncapi()["channels"]) - {f"{row.service}.{row.name}" for row in generate.rows()}
    # Roles tell each other their progress; the reply goes to whoever asked.
    assert channels == {"submit", "submit-reply", "progress"}, "a new subject that callers reach needs its test here"
    assert {kind.name for kind in SubmissionKind} == {"PUT", "RETIRE", "ERASE", "RELATE"}


@pytest.mark.parametrize("kind", SubmissionKind)
async def test_a_foreign_crate_looks_like_a_missing_one_to_publishers(world: World, kind: SubmissionKind) -> None:
    foreign = await submit(world, f"owner-of-{A}", B, kind, world.things.source)
    missing = await submit(world, f"owner-of-{A}", NOWHERE, kind, world.things.source)
    assert foreign["error"]["code"] == "not_found"
    assert str(foreign).replace(B, "<crate>") == str(missing).replace(NOWHERE, "<crate>")
    assert (await world.node.document(B, world.things.source)).revision == 1


async def test_a_foreign_crate_is_refused_before_the_payload_is_looked_at(world: World) -> None:
    reply = await world.node.nats.request(
        f"{topology.SUBMIT_SUBJECT}.{B}", b"no event", headers={PRINCIPAL: f"owner-of-{A}"}, timeout=10
    )
    assert json.loads(reply.data)["error"]["code"] == "not_found"


async def test_publishers_need_the_role_of_the_rpc_that_does_the_same(world: World) -> None:
    assert (await submit(world, f"reader-of-{A}", A, SubmissionKind.PUT, "p.txt"))["error"]["code"] == "not_found"
    assert (await submit(world, f"writer-of-{A}", A, SubmissionKind.PUT, "p.txt"))["outcome"] == "created"
    assert (await submit(world, f"reader-of-{A}", A, SubmissionKind.RELATE, "p.txt"))["error"]["code"] == "not_found"
    assert (
        "data must be" in (await submit(world, f"writer-of-{A}", A, SubmissionKind.RELATE, "p.txt"))["error"]["message"]
    )
    assert (await submit(world, f"writer-of-{A}", A, SubmissionKind.ERASE, "p.txt"))["error"]["code"] == "not_found"
    assert (await submit(world, f"owner-of-{A}", A, SubmissionKind.ERASE, "p.txt"))["outcome"] == "erased"


async def test_a_grant_that_is_taken_away_is_gone_soon(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.kernel.auth._REMEMBERED_S", 0.05)
    access = await asyncpg.connect(world.node.settings.postgres_dsn)
    await access.execute("insert into access.grants values ('guest', $1, 'reader')", B)
    method, requests = METHODS["IngestService/GetCrate"], CASES["IngestService/GetCrate"].requests(world.things)
    assert (await world.caller("guest").call(method, requests)).code is grpc.StatusCode.OK
    await access.execute("delete from access.grants where principal = 'guest'")
    await access.close()
    await asyncio.sleep(0.1)
    assert (await world.caller("guest").call(method, requests)).code is grpc.StatusCode.NOT_FOUND
