"""Failures of every role: retried with success once the cause is gone, failing again, dropped, superseded."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from affidavit.event.v1.envelope_pb2 import TaskRetried
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import settings_pb2

from services.ingest.codec import facts
from services.ingest.domain.refusals import Refused
from services.kernel.envelope import Event
from tests.integration.embedder.provider_double import DIMENSION, Answer, Asked, ProviderServer, right
from tests.integration.whole_node import WholeNode, eventually

CRATE = "main"
TEXT = "The lock keeper of Almere opens the sluice at noon."
SEARCHABLE, FAILED, PENDING = (
    pb.DOCUMENT_STATUS_SEARCHABLE,
    pb.DOCUMENT_STATUS_FAILED,
    pb.DOCUMENT_STATUS_PENDING,
)


FACTS = {
    "source": ("ingest", "DocumentIngested"),
    "chunks": ("chunker", "DocumentChunked"),
    "vectors": ("embedder", "RecordsEmbedded"),
}


@pytest.fixture
async def node(tmp_path: Path, postgres_server: str) -> AsyncIterator[WholeNode]:
    async with WholeNode.start(tmp_path, postgres_server) as made:
        await made.create(CRATE)
        await made.put(CRATE, "first", "A first document, so that the crate has its generation.")
        await made.until(CRATE, "first", SEARCHABLE)
        yield made


async def retry(node: WholeNode, failure: pb.Failure) -> pb.RetryFailureResponse:
    return await node.ingest.RetryFailure(pb.RetryFailureRequest(crate_id=CRATE, failure_id=failure.failure_id))


async def drop(node: WholeNode, failure: pb.Failure) -> pb.DropFailureResponse:
    return await node.ingest.DropFailure(pb.DropFailureRequest(crate_id=CRATE, failure_id=failure.failure_id))


async def only_failure(node: WholeNode) -> pb.Failure:
    found = await node.failures(CRATE)
    assert len(found) == 1, found
    return found[0]


async def lose(node: WholeNode, tmp_path: Path, step: str, *readers: str) -> tuple[str, Path, Path]:
    """Put a document while the readers of a step's packs are away, and take its pack away: id, its file, and where."""
    await node.reopen(without=readers)
    document = (await node.put(CRATE, "sluice", TEXT)).document_id
    await eventually(lambda: node.files(CRATE, document, step))
    # The pack is there before the fact that names it; without that its writer would only make another one.
    writer, fact = FACTS[step]
    await eventually(lambda: node.bus.last_named(crate=CRATE, service=writer, aggregate=document, name=fact))
    (pack,) = node.files(CRATE, document, step)
    kept = tmp_path / pack.name
    shutil.move(pack, kept)
    await node.reopen()
    return document, pack, kept


@pytest.mark.parametrize(("step", "service"), [("source", "chunker"), ("chunks", "embedder"), ("vectors", "index")])
async def test_a_lost_pack_fails_its_document_until_it_is_back(
    node: WholeNode, tmp_path: Path, step: str, service: str
) -> None:
    _, pack, kept = await lose(node, tmp_path, step, service)
    failed = await node.until(CRATE, "sluice", FAILED)
    assert "blob" in failed.revisions[0].failure
    failure = await only_failure(node)
    assert (failure.task.service, failure.task.code, failure.source_id) == (service, "not_found", "sluice")
    assert failure.state == pb.FAILURE_STATE_OPEN

    again = await retry(node, failure)
    await eventually(lambda: _has_failures(node, 2))
    await node.until(CRATE, "sluice", FAILED)
    second, first = await node.failures(CRATE)
    assert (first.state, first.settled_position) == (pb.FAILURE_STATE_RETRIED, again.position)
    assert (second.state, second.task.retry) == (pb.FAILURE_STATE_OPEN, again.position)
    assert second.task.position == first.task.position

    shutil.move(kept, pack)
    reply = await retry(node, second)
    await node.until(CRATE, "sluice", SEARCHABLE)
    assert (await node.found(CRATE, "Almere sluice"))[0] == "sluice"
    repeated = await retry(node, second)
    assert (repeated.position, repeated.unchanged) == (reply.position, True)
    assert {failure.state for failure in await node.failures(CRATE)} == {pb.FAILURE_STATE_RETRIED}
    open_only = pb.ListFailuresRequest(crate_id=CRATE, open_only=True)
    assert not (await node.ingest.ListFailures(open_only)).failures


async def _has_failures(node: WholeNode, count: int) -> bool:
    return len(await node.failures(CRATE)) == count


async def test_a_provider_that_refused_and_mended(node: WholeNode) -> None:
    server = ProviderServer()
    await server.start()
    provider = settings_pb2.Provider(
        role=settings_pb2.PROVIDER_ROLE_EMBEDDING,
        kind=settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE,
        enabled=True,
        base_url=server.url,
        model="unit",
        dimension=DIMENSION,
    )
    await node.ingest.CreateCrate(pb.CreateCrateRequest(crate_id="remote", providers=[provider]))

    await node.put("remote", "first", "A first document, so that the crate has its generation.")
    await node.until("remote", "first", SEARCHABLE)

    def refuse(_: Asked) -> Answer:
        return Answer(status=404)

    server.script = [refuse]
    await node.put("remote", "sluice", TEXT)
    await node.until("remote", "sluice", FAILED)
    (failure,) = await node.failures("remote")
    assert (failure.task.service, failure.task.code) == ("embedder", "rejected")
    server.script = [right]
    await node.ingest.RetryFailure(pb.RetryFailureRequest(crate_id="remote", failure_id=failure.failure_id))
    await node.until("remote", "sluice", SEARCHABLE)
    await server.stop()


async def test_a_fact_that_ingest_could_not_read_at_first(node: WholeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    read = facts.fact

    def older_release(event: Event, manifest: object = None) -> object:
        if event.name == "DocumentIngested" and not event.retry:
            raise Refused("form 9 is unknown to this release")
        return read(event, manifest)  # type: ignore[arg-type]  # passed on as given

    monkeypatch.setattr(facts, "fact", older_release)
    document = (await node.put(CRATE, "sluice", TEXT)).document_id
    await eventually(lambda: _has_failures(node, 1))
    failure = await only_failure(node)
    assert (failure.task.service, failure.task.document_id) == ("ingest", document)
    # The other roles had no trouble with it, and what they did isn't forgotten.
    await eventually(lambda: node.files(CRATE, document, "vectors"))
    await retry(node, failure)
    found = await node.until(CRATE, "sluice", SEARCHABLE)
    assert (found.document_id, found.revision, found.revisions[0].chunks) == (document, 1, 1)
    changed = await node.put(CRATE, "sluice", TEXT + " Twice on Sundays.")
    assert changed.revision == 2


async def test_a_drop_is_a_fact_and_leaves_the_document_as_it_is(node: WholeNode, tmp_path: Path) -> None:
    document, pack, kept = await lose(node, tmp_path, "source", "chunker")
    await node.until(CRATE, "sluice", FAILED)
    failure = await only_failure(node)
    dropped = await drop(node, failure)
    assert (await drop(node, failure)).unchanged
    shown = await only_failure(node)
    assert (shown.state, shown.settled_position) == (pb.FAILURE_STATE_DROPPED, dropped.position)
    assert shown.settled_at.seconds
    with pytest.raises(grpc.aio.AioRpcError, match="was dropped at position") as caught:
        await retry(node, failure)
    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert (await node.document(CRATE, "sluice")).status == FAILED
    event = await node.bus.last(crate=CRATE, service="ingest", aggregate=f"failure-{failure.failure_id}")
    assert event is not None
    assert (event.name, event.position) == ("TaskDropped", dropped.position)
    assert not pack.exists()
    assert kept.exists()
    assert (await node.put(CRATE, "sluice", TEXT)).document_id == document
    await node.until(CRATE, "sluice", SEARCHABLE)


async def test_the_same_content_again_mends_a_failed_document_and_settles_its_failure(
    node: WholeNode, tmp_path: Path
) -> None:
    await lose(node, tmp_path, "source", "chunker")
    await node.until(CRATE, "sluice", FAILED)
    failure = await only_failure(node)
    put = await node.put(CRATE, "sluice", TEXT)
    assert (put.outcome, put.revision) == (pb.PUT_OUTCOME_RECHUNKED, 1)
    await node.until(CRATE, "sluice", SEARCHABLE)
    shown = await only_failure(node)
    assert (shown.state, shown.settled_position) == (pb.FAILURE_STATE_SUPERSEDED, put.position)
    with pytest.raises(grpc.aio.AioRpcError, match="was superseded"):
        await retry(node, failure)


async def test_a_retry_of_what_was_erased_brings_nothing_back(node: WholeNode, tmp_path: Path) -> None:
    document, _, _ = await lose(node, tmp_path, "source", "chunker")
    await node.until(CRATE, "sluice", FAILED)
    failure = await only_failure(node)
    await node.ingest.EraseDocument(pb.EraseDocumentRequest(crate_id=CRATE, source_id="sluice"))
    # As if the retry had been written at the same moment.
    late = TaskRetried(
        failure_id=failure.failure_id,
        service="chunker",
        stream=failure.task.stream,
        position=failure.task.position,
        document_id=failure.task.document_id,
        revision=1,
    )
    await node.bus.append(crate=CRATE, aggregate=f"failure-{failure.failure_id}", message=late, key="late")
    await node.put(CRATE, "last", "A last document.")
    await node.until(CRATE, "last", SEARCHABLE)
    assert (await node.document(CRATE, "sluice")).status == pb.DOCUMENT_STATUS_ERASED
    last = await node.bus.last_named(crate=CRATE, service="chunker", aggregate=document, name="TaskFailed")
    assert last is not None
    assert last.position == failure.failure_id
    assert await _has_failures(node, 0)
    assert "sluice" not in await node.found(CRATE, "Almere")


async def test_failures_that_do_not_exist(node: WholeNode) -> None:
    for number in (0, 1, 2**63 + 5):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await retry(node, pb.Failure(failure_id=number))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
