"""The role in a node, with a script in place of the provider: step, failures and their retry, and the listing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_events_pb2 as index_pb
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.proposition.v1 import proposition_events_pb2 as events_pb
from affidavit.proposition.v1 import proposition_service_pb2 as pb
from affidavit.proposition.v1 import proposition_service_pb2_grpc as pb_grpc

from services.kernel.bus import Bus
from services.kernel.errors import NotFound
from services.kernel.settings import NodeSettings
from services.proposition.main import wire
from tests.integration.chunker.small_world import DOCUMENT, World
from tests.integration.proposition.proposition_world import answer_provider

ANSWERS: list[dict[str, object]] = [
    {"call": "propositions", "contains": "alpha", "reply": {"propositions": ["alpha is a letter."]}},
    {"call": "propositions", "contains": "beta", "reply": {"propositions": ["beta is a letter."]}},
    {"call": "ratings", "scores": 9},
]
UNKNOWN = "f" * 32


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "script.json"
    monkeypatch.setenv("AFFIDAVIT_PROPOSITION_SCRIPT", str(path))
    return path


@pytest.fixture
async def world(node_settings: NodeSettings, script: Path) -> AsyncIterator[World]:
    """A node that runs proposition; its script makes one proposition of each text."""
    write(script, ANSWERS)
    made = World(settings=node_settings, wires={"proposition": wire})
    await made.open()
    made.buses["index"] = await Bus.connect(node_settings.nats_url, role="index")
    yield made
    await made.stop()
    await made.close()


def write(script: Path, answers: list[dict[str, object]]) -> None:
    script.write_text(json.dumps(answers))


async def start(world: World, strategy: str = "proposition") -> None:
    await world.append(ingest_pb.CrateConfigured(revision=1, providers=[answer_provider()]), aggregate="crate")
    started = index_pb.GenerationStarted(generation=1, retrieval_strategy=strategy)
    await world.append(started, aggregate="generations", role="index")


async def chunk(world: World, *texts: str, revision: int = 1, document: str = DOCUMENT) -> None:
    await world.ingest("x", document=document, revision=revision)
    message = chunker_pb.DocumentChunked(
        document_id=document, revision=revision, settings_digest=f"s{revision}", chunk_count=len(texts)
    )
    if texts:
        chunks = [chunker_pb.Chunk(ordinal=ordinal, text=text) for ordinal, text in enumerate(texts)]
        body = chunker_pb.ChunkSet(chunks=chunks).SerializeToString()
        ref = await world.packs.write(f"main/{document}/{revision}/chunks", {"chunks": body})
        message.chunks.CopyFrom(event_pb.PackRef(id=ref.id, size_bytes=ref.size_bytes))
    await world.append(message, aggregate=document, role="chunker")


async def listed(
    world: World,
    *,
    document: str = DOCUMENT,
    size: int = 0,
    token: str = "",
    revision: int = 0,
    chunk_ordinal: int | None = None,
    generation: int = 0,
) -> pb.ListPropositionsResponse:
    request = pb.ListPropositionsRequest(
        crate_id="main",
        document_id=document,
        page_size=size,
        page_token=token,
        revision=revision,
        chunk_ordinal=chunk_ordinal,
        generation=generation,
    )
    reply: pb.ListPropositionsResponse = await pb_grpc.PropositionServiceStub(world.channel).ListPropositions(request)
    return reply


async def test_a_standard_generation_emits_nothing(world: World) -> None:
    await start(world, "standard")
    await chunk(world, "alpha")
    await world.settled("proposition", "evaluate")
    assert [event.name for event in await world.events()] == [
        "CrateConfigured",
        "GenerationStarted",
        "DocumentIngested",
        "DocumentChunked",
    ]


async def test_chunks_are_evaluated_and_listed(world: World) -> None:
    await start(world)
    await chunk(world, "alpha", "beta")
    (event,) = await world.named("PropositionsEvaluated")
    assert isinstance(event.message, events_pb.PropositionsEvaluated)
    assert event.message.accepted_count == 2
    reply = await listed(world)
    assert [(each.chunk_ordinal, each.ordinal, each.text, each.accepted) for each in reply.propositions] == [
        (0, 1, "alpha is a letter.", True),
        (1, 1, "beta is a letter.", True),
    ]
    assert [each.fidelity for each in reply.propositions] == [9, 9]
    assert [(each.chunk_ordinal, each.status, each.model_id, each.prompt_version) for each in reply.evaluations] == [
        (0, events_pb.EVALUATION_STATUS_EVALUATED, "scripted", "1"),
        (1, events_pb.EVALUATION_STATUS_EVALUATED, "scripted", "1"),
    ]
    assert all(each.evaluated_at.seconds for each in reply.evaluations)
    assert (reply.revision, reply.generation, reply.next_page_token) == (1, 1, "")
    assert (reply.chunk_count, reply.accepted_count, reply.rejected_count) == (2, 2, 0)


async def test_what_failed_is_retried_through_the_log(world: World, script: Path) -> None:
    write(script, [{"error": "refused"}])
    await start(world)
    await chunk(world, "alpha", "beta")
    (event,) = await world.named("TaskFailed")
    failed = event.message
    assert isinstance(failed, event_pb.TaskFailed)
    assert (failed.service, failed.code, failed.document_id) == ("proposition", "rejected", DOCUMENT)
    assert "chunk 0 of revision 1" in failed.reason
    with pytest.raises(grpc.aio.AioRpcError, match="has no propositions: see `affidavit failures list`"):
        await listed(world)
    write(script, ANSWERS)
    retried = event_pb.TaskRetried(
        failure_id=event.position, service="proposition", stream=failed.stream, position=failed.position
    )
    await world.append(retried, aggregate=f"failure-{event.position}")
    await world.named("PropositionsEvaluated")
    assert len((await listed(world)).propositions) == 2


async def test_what_may_pass_is_delivered_again(world: World, script: Path) -> None:
    write(script, [{"error": "away"}])
    await start(world)
    await chunk(world, "alpha")
    await world.until(lambda events: any(event.name == "DocumentChunked" for event in events))
    write(script, ANSWERS)
    await world.named("PropositionsEvaluated")
    assert not any(event.name == "TaskFailed" for event in await world.events())


async def test_erasing_removes_evaluations_of_that_revision_and_before(world: World) -> None:
    await start(world)
    refs = {
        revision: await world.packs.write(f"main/{DOCUMENT}/{revision}/propositions", {"evaluations": b"x"})
        for revision in (1, 2, 3)
    }
    await world.erase(revision=2)
    await world.settled("proposition", "evaluate")
    for revision in (1, 2):
        with pytest.raises(NotFound):
            await world.packs.read(f"main/{DOCUMENT}/{revision}/propositions", refs[revision].id)
    assert await world.packs.read(f"main/{DOCUMENT}/3/propositions", refs[3].id) == {"evaluations": b"x"}


async def test_a_listing_is_paged_by_chunk_and_stays_with_its_revision(world: World) -> None:
    await start(world)
    texts = [f"alpha {number}" for number in range(5)]
    await chunk(world, *texts)
    await world.named("PropositionsEvaluated")
    first = await listed(world, size=2)
    await chunk(world, "beta", revision=2)
    await world.named("PropositionsEvaluated", 2)
    second = await listed(world, size=2, token=first.next_page_token)
    third = await listed(world, size=2, token=second.next_page_token, revision=1, generation=1)
    pages = [[each.chunk_ordinal for each in page.evaluations] for page in (first, second, third)]
    assert pages == [[0, 1], [2, 3], [4]]
    assert [each.chunk_ordinal for each in second.propositions] == [2, 3]
    assert (second.revision, third.revision, third.next_page_token) == (1, 1, "")
    newest = await listed(world)
    assert (newest.revision, newest.chunk_count) == (2, 1)
    one = await listed(world, revision=1, chunk_ordinal=3)
    assert [each.chunk_ordinal for each in one.propositions] == [3]
    assert (one.next_page_token, one.chunk_count) == ("", 5)
    for kind, problem, wrong in (
        (grpc.StatusCode.INVALID_ARGUMENT, "page_size is 201: give 1 to 200", {"size": 201}),
        (grpc.StatusCode.INVALID_ARGUMENT, "is none of ours", {"token": "1.1"}),
        (grpc.StatusCode.INVALID_ARGUMENT, "is none of ours", {"token": "0.1.1"}),
        (grpc.StatusCode.INVALID_ARGUMENT, "is none of ours", {"token": "x" * 50}),
        (grpc.StatusCode.INVALID_ARGUMENT, "goes on with revision 1", {"token": "1.1.2", "revision": 2}),
        (grpc.StatusCode.INVALID_ARGUMENT, "don't go together", {"token": "1.1.2", "chunk_ordinal": 0}),
        (grpc.StatusCode.INVALID_ARGUMENT, "document_id is empty", {"document": ""}),
        (grpc.StatusCode.NOT_FOUND, "chunk 1 does not exist: revision 2", {"chunk_ordinal": 1}),
        (grpc.StatusCode.NOT_FOUND, "revision 3 of document", {"revision": 3}),
        (grpc.StatusCode.NOT_FOUND, "has no propositions", {"generation": 2}),
        (grpc.StatusCode.NOT_FOUND, "does not exist", {"document": UNKNOWN}),
        (grpc.StatusCode.NOT_FOUND, "does not exist", {"document": "../x"}),
    ):
        with pytest.raises(grpc.aio.AioRpcError, match=problem) as refused:
            await listed(world, **wrong)
        assert refused.value.code() is kind


async def test_an_erased_document_has_no_propositions(world: World) -> None:
    await start(world)
    await chunk(world, "alpha")
    await world.named("PropositionsEvaluated")
    await world.erase()
    await world.settled("proposition", "evaluate")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await listed(world)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    await chunk(world, "beta", revision=2)
    await world.named("PropositionsEvaluated", 2)
    assert [each.text for each in (await listed(world)).propositions] == ["beta is a letter."]
    with pytest.raises(grpc.aio.AioRpcError, match="revision 1 of document"):
        await listed(world, revision=1)


async def test_a_document_without_chunks_has_an_empty_list(world: World) -> None:
    await start(world)
    await chunk(world)
    await world.named("PropositionsEvaluated")
    reply = await listed(world)
    assert (reply.chunk_count, list(reply.propositions), list(reply.evaluations)) == (0, [], [])


async def test_a_page_holds_at_least_one_chunk_and_not_too_much_text(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.proposition.servicer._MAX_PAGE_CHARS", 10)
    await start(world)
    await chunk(world, "alpha", "beta")
    await world.named("PropositionsEvaluated")
    first = await listed(world)
    second = await listed(world, token=first.next_page_token)
    assert [[each.chunk_ordinal for each in page.evaluations] for page in (first, second)] == [[0], [1]]
    assert second.next_page_token == ""
