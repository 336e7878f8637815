"""Statuses, retire, erase, failures and progress on the real log and tables."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp

from services.ingest.adapters.tables_postgres import PostgresTables
from services.kernel.blobs import blob_names
from services.kernel.settings import NodeSettings
from tests.integration.ingest.ingest_world import WAIT_S, Client, Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = b"The access phrase for the west gate is zorblat-77."


def packs(settings: NodeSettings, document_id: str) -> list[str]:
    """Names of a document's packs."""
    return [name for name in blob_names(settings.blobs) if document_id in name]


async def expect(call: object, code: grpc.StatusCode, message: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=message) as failure:
        await call  # type: ignore[misc]  # any awaitable call
    assert failure.value.code() is code


async def test_a_revision_is_searchable_once_the_index_says_so(client: Client, pipeline: Pipeline) -> None:
    result = await client.put("x", TEXT)
    await pipeline.chunk(result.document_id, 3)
    position = await pipeline.embed(result.document_id, 3)
    await pipeline.index(result.document_id, position)
    document = await client.until("x", pb.DOCUMENT_STATUS_SEARCHABLE)
    assert document.revisions[0].chunks == 3
    # A new revision is pending again, and the report of the old one doesn't count for it.
    await client.put("x", TEXT + b" Changed.")
    document = await client.get("x")
    assert [revision.status for revision in document.revisions] == [
        pb.DOCUMENT_STATUS_PENDING,
        pb.DOCUMENT_STATUS_SUPERSEDED,
    ]


async def test_a_signal_may_come_before_its_facts_are_read(client: Client, pipeline: Pipeline) -> None:
    result = await client.put("x", TEXT)
    await pipeline.index(result.document_id, result.position + 2)
    await asyncio.sleep(0.2)
    await pipeline.chunk(result.document_id, 1)
    await pipeline.embed(result.document_id, 1)
    await client.until("x", pb.DOCUMENT_STATUS_SEARCHABLE)


async def test_a_failed_document_can_be_put_again_retired_and_erased(client: Client, pipeline: Pipeline) -> None:
    for number, end in enumerate((None, client.retire, client.erase)):
        name = f"doc{number}"
        result = await client.put(name, TEXT)
        await pipeline.fail(result.document_id, "the pack is damaged: put it again", position=result.position)
        document = await client.until(name, pb.DOCUMENT_STATUS_FAILED)
        assert document.revisions[0].failure == "chunker: the pack is damaged: put it again"
        if end is not None:
            assert not (await end(name)).unchanged
            continue
        again = await client.put(name, TEXT)
        assert (again.outcome, again.revision) == (pb.PUT_OUTCOME_RECHUNKED, 1)
        assert (await client.get(name)).status == pb.DOCUMENT_STATUS_PENDING
        fact = await pipeline.ingested(result.document_id)
        assert fact.rechunk
        await pipeline.finish(result.document_id)
        await client.until(name, pb.DOCUMENT_STATUS_SEARCHABLE)


async def test_failures_are_listed_newest_first(client: Client, pipeline: Pipeline) -> None:
    positions = []
    for name in ("a", "b", "c"):
        result = await client.put(name, TEXT)
        positions.append(await pipeline.fail(result.document_id, f"{name} failed", position=result.position))
        await client.until(name, pb.DOCUMENT_STATUS_FAILED)
    first = await client.stub.ListFailures(pb.ListFailuresRequest(crate_id=client.crate, page_size=2))
    assert [failure.failure_id for failure in first.failures] == positions[:0:-1]
    newest = first.failures[0]
    assert (newest.source_id, newest.task.reason, newest.task.service) == ("c", "c failed", "chunker")
    rest = await client.stub.ListFailures(
        pb.ListFailuresRequest(crate_id=client.crate, page_size=2, page_token=first.next_page_token)
    )
    assert [failure.failure_id for failure in rest.failures] == positions[:1]
    assert rest.next_page_token == ""


async def test_failures_of_an_erased_document_are_gone(client: Client, pipeline: Pipeline) -> None:
    async def listed() -> list[tuple[str, str]]:
        found = await client.stub.ListFailures(pb.ListFailuresRequest(crate_id=client.crate))
        return [(failure.source_id, failure.task.reason) for failure in found.failures]

    for name in ("a", "b"):
        result = await client.put(name, TEXT)
        await pipeline.fail(result.document_id, f"{name} failed", position=result.position)
        await client.until(name, pb.DOCUMENT_STATUS_FAILED)
    await client.erase("b")
    assert await listed() == [("a", "a failed")]
    # Recorded in the very moment of the erasure.
    await pipeline.fail(result.document_id, "b failed too late", position=result.position + 1)
    marker = await client.put("c", TEXT)
    await pipeline.fail(marker.document_id, "c failed", position=marker.position)
    await client.until("c", pb.DOCUMENT_STATUS_FAILED)
    assert await listed() == [("c", "c failed"), ("a", "a failed")]


async def test_retire_then_put_then_retire(client: Client) -> None:
    result = await client.put("x", TEXT)
    first = await client.retire("x")
    assert not first.unchanged
    again = await client.retire("x")
    assert (again.unchanged, again.position) == (True, first.position)
    assert (await client.get("x")).status == pb.DOCUMENT_STATUS_RETIRED
    back = await client.put("x", TEXT)
    assert (back.outcome, back.revision) == (pb.PUT_OUTCOME_REPLACED, 2)
    assert not (await client.retire("x")).unchanged
    assert result.document_id == back.document_id


async def test_erase_leaves_a_tombstone_and_nothing_else(client: Client, node_settings: NodeSettings) -> None:
    result = await client.put("secret/name.txt", TEXT, title="Gate", metadata={"owner": "Zorblat"})
    await client.put("secret/name.txt", TEXT + b" More.")
    assert packs(node_settings, result.document_id)
    erased = await client.erase("secret/name.txt")
    assert not erased.unchanged
    assert not packs(node_settings, result.document_id)
    document = await client.get("secret/name.txt")
    assert document == pb.Document(
        document_id=result.document_id, status=pb.DOCUMENT_STATUS_ERASED, revision=2, title="", source_id=""
    )
    assert (await client.erase("secret/name.txt")).unchanged
    gone = pb.GetErasureRequest(crate_id=client.crate, document_id=erased.document_id, position=erased.position)
    async with asyncio.timeout(20):
        while not (await client.stub.GetErasure(gone)).gone:  # noqa: ASYNC110  (asks as a caller does)
            await asyncio.sleep(0.02)
    gone.position += 1_000
    assert not (await client.stub.GetErasure(gone)).gone
    assert (await client.retire("secret/name.txt")).unchanged
    request = pb.ReadDocumentRequest(crate_id=client.crate, document_id=result.document_id)
    with pytest.raises(grpc.aio.AioRpcError, match="has no revision 2 that can be read"):
        _ = [reply async for reply in client.stub.ReadDocument(request)]


async def test_a_put_after_an_erase_keeps_its_content(client: Client, node_settings: NodeSettings) -> None:
    result = await client.put("x", TEXT)
    await client.erase("x")
    back = await client.put("x", TEXT)
    assert (back.outcome, back.revision) == (pb.PUT_OUTCOME_REPLACED, 2)
    request = pb.ReadDocumentRequest(crate_id=client.crate, document_id=result.document_id)
    assert [reply.body async for reply in client.stub.ReadDocument(request)] == [TEXT]
    assert {name.split("/")[2] for name in packs(node_settings, result.document_id)} == {"2"}


async def test_puts_and_erases_at_the_same_time_end_in_one_history(client: Client) -> None:
    await client.put("x", TEXT)
    calls = [client.put("x", f"text {number}".encode()) for number in range(4)] + [
        client.erase("x"),
        client.retire("x"),
    ]
    await asyncio.gather(*calls)
    document = await client.get("x")
    if document.status == pb.DOCUMENT_STATUS_PENDING:
        request = pb.ReadDocumentRequest(crate_id=client.crate, document_id=document.document_id)
        assert b"".join([reply.body async for reply in client.stub.ReadDocument(request)]).startswith(b"text ")
    assert not (await client.erase("x")).unchanged or document.status == pb.DOCUMENT_STATUS_ERASED


async def test_an_answer_that_records_nothing_waits_until_the_tables_know_the_document(
    client: Client, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.put("a.txt", b"first")
    apply, let_go = PostgresTables.apply, asyncio.Event()

    async def late(tables: PostgresTables, *arguments: Any) -> None:
        await let_go.wait()
        await apply(tables, *arguments)

    monkeypatch.setattr(PostgresTables, "apply", late)
    log = pipeline.buses["ingest"]
    written = await log.last_position() + 2
    puts = [asyncio.create_task(client.put("a.txt", b"second")), asyncio.create_task(client.put("b.txt", b"new"))]
    async with asyncio.timeout(WAIT_S):
        while True:
            if await log.last_position() >= written:
                break
            await asyncio.sleep(0.01)
    again, retired = asyncio.create_task(client.put("a.txt", b"first")), asyncio.create_task(client.retire("b.txt"))
    assert not (await asyncio.wait([again, retired], timeout=0.3))[0]
    let_go.set()
    assert ((await again).outcome, (await again).revision) == (pb.PUT_OUTCOME_REPLACED, 3)
    assert not (await retired).unchanged
    await asyncio.gather(*puts)


async def test_unknown_documents_are_not_found(client: Client) -> None:
    for request in (
        pb.RetireDocumentRequest(crate_id=client.crate, source_id="nobody"),
        pb.RetireDocumentRequest(crate_id=client.crate, document_id="0" * 32),
        pb.RetireDocumentRequest(crate_id=client.crate, document_id="a\x00b"),
    ):
        await expect(client.stub.RetireDocument(request), grpc.StatusCode.NOT_FOUND, "does not exist")
    erase = pb.EraseDocumentRequest(crate_id=client.crate, source_id="nobody")
    await expect(client.stub.EraseDocument(erase), grpc.StatusCode.NOT_FOUND, "does not exist")
    get = pb.GetDocumentRequest(crate_id=client.crate, source_id="nobody")
    await expect(client.stub.GetDocument(get), grpc.StatusCode.NOT_FOUND, "does not exist in crate")
    for both in (
        pb.GetDocumentRequest(crate_id=client.crate),
        pb.GetDocumentRequest(crate_id=client.crate, source_id="x", document_id="0" * 32),
    ):
        await expect(client.stub.GetDocument(both), grpc.StatusCode.INVALID_ARGUMENT, "by one of the two")


async def test_progress_ends_when_nothing_is_pending(client: Client, pipeline: Pipeline) -> None:
    assert [counts.pending for counts in await client.watch()] == [0]
    ids = [(await client.put(name, TEXT)).document_id for name in ("a", "b", "c")]
    watching = asyncio.create_task(client.watch(document_ids=ids))
    await pipeline.chunk(ids[0], 5)
    await asyncio.sleep(0.5)
    position = await pipeline.embed(ids[0], 5)
    await pipeline.index(ids[0], position)
    await pipeline.finish(ids[1], chunks=0)
    await pipeline.fail(ids[2], "gone", position=1_000)
    messages = await asyncio.wait_for(watching, 10)
    assert messages[0].pending == 3
    assert max(message.chunks_total for message in messages) == 5
    last = messages[-1]
    assert (last.pending, last.searchable, last.empty, last.failed) == (0, 1, 1, 1)
    assert last.watermark >= position
    assert len(messages) == len({message.SerializeToString() for message in messages})


async def test_progress_of_a_job(client: Client, pipeline: Pipeline) -> None:
    await client.job("nightly")
    mine = await client.put("a", TEXT, job="nightly")
    await client.put("b", TEXT)
    await pipeline.finish(mine.document_id)
    await client.until("a", pb.DOCUMENT_STATUS_SEARCHABLE)
    assert [(m.pending, m.searchable) for m in await client.watch(job_id="nightly")] == [(0, 1)]


async def test_lists_have_pages_in_the_order_of_names(client: Client) -> None:
    names = [f"n{number:02}" for number in range(7)]
    for name in reversed(names):
        await client.put(name, TEXT)
    await client.erase("n03")
    await client.retire("n05")
    seen, token = [], ""
    while True:
        page = await client.stub.ListDocuments(
            pb.ListDocumentsRequest(crate_id=client.crate, page_size=2, page_token=token)
        )
        seen += [(document.source_id, len(document.revisions)) for document in page.documents]
        token = page.next_page_token
        if not token:
            break
    assert seen == [*((name, 1) for name in names if name != "n03"), ("", 0)]
    retired = await client.stub.ListDocuments(
        pb.ListDocumentsRequest(crate_id=client.crate, statuses=[pb.DOCUMENT_STATUS_RETIRED])
    )
    assert [document.source_id for document in retired.documents] == ["n05"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"page_size": 1_001}, "page_size 1001 is out of range"),
        ({"page_token": "x"}, "page_token isn't one that this list gave"),
        ({"page_token": "WyIxIl0="}, "page_token isn't one"),
        ({"job_id": "No Job"}, "job_id 'No Job' isn't usable"),
        ({"statuses": [99]}, "statuses 99 is unknown"),
    ],
)
async def test_lists_refuse_what_they_cannot_read(client: Client, fields: dict[str, Any], message: str) -> None:
    request = pb.ListDocumentsRequest(crate_id=client.crate, **fields)
    await expect(client.stub.ListDocuments(request), grpc.StatusCode.INVALID_ARGUMENT, message)


async def test_a_lost_pack_is_corrupt_or_missing_and_says_so(client: Client, node_settings: NodeSettings) -> None:
    result = await client.put("x", TEXT)
    (pack,) = node_settings.blobs.rglob(f"{result.document_id},1,source,*")
    pack.write_bytes(pack.read_bytes()[:-1] + b"?")
    request = pb.ReadDocumentRequest(crate_id=client.crate, document_id=result.document_id)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        _ = [reply async for reply in client.stub.ReadDocument(request)]
    assert failure.value.code() is grpc.StatusCode.DATA_LOSS


@pytest.mark.parametrize(
    "stamp",
    [Timestamp(seconds=-62_135_596_800), Timestamp(seconds=253_402_300_799, nanos=999_999_999)],
)
async def test_the_first_and_the_last_time_can_be_read_again(client: Client, stamp: Timestamp) -> None:
    await client.put("edge", TEXT, effective_at=stamp)
    shown = (await client.get("edge")).revisions[0].effective_at
    assert shown.seconds == stamp.seconds
    listed = await client.stub.ListDocuments(pb.ListDocumentsRequest(crate_id=client.crate))
    assert listed.documents[0].revisions[0].effective_at == shown
    again = await client.put("edge", TEXT, effective_at=stamp)
    assert again.outcome == pb.PUT_OUTCOME_UNCHANGED
    assert (await client.put("edge", TEXT + b" More.")).revision == 2


async def test_the_erasure_of_a_document_that_there_isn_t(client: Client) -> None:
    live = (await client.put("live", TEXT)).document_id
    request = pb.GetErasureRequest(crate_id=client.crate, document_id=live)
    assert not (await client.stub.GetErasure(request)).gone
    for document_id, code in (
        ("", grpc.StatusCode.INVALID_ARGUMENT),
        ("nobody", grpc.StatusCode.NOT_FOUND),
        ("a.>", grpc.StatusCode.NOT_FOUND),
        ("0" * 32, grpc.StatusCode.NOT_FOUND),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.stub.GetErasure(pb.GetErasureRequest(crate_id=client.crate, document_id=document_id))
        assert caught.value.code() is code
