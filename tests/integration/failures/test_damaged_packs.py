"""Packs that are lost or damaged after their document had become searchable."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb

from services.kernel.bus import Appended, Bus
from services.kernel.packs import pack_id
from tests.integration.whole_node import WholeNode, eventually

CRATE = "main"
TEXT = "The lock keeper of Almere opens the sluice at noon."


@pytest.fixture
async def node(tmp_path: Path, postgres_server: str) -> AsyncIterator[WholeNode]:
    async with WholeNode.start(tmp_path, postgres_server) as made:
        await made.create(CRATE)
        await made.put(CRATE, "sluice", TEXT)
        await made.until(CRATE, "sluice", pb.DOCUMENT_STATUS_SEARCHABLE)
        yield made


async def original(node: WholeNode) -> bytes:
    document = (await node.document(CRATE, "sluice")).document_id
    request = pb.ReadDocumentRequest(crate_id=CRATE, document_id=document)
    return b"".join([piece.body async for piece in node.ingest.ReadDocument(request)])


async def pack(node: WholeNode, step: str) -> Path:
    (found,) = node.files(CRATE, (await node.document(CRATE, "sluice")).document_id, step)
    return found


def damage(path: Path) -> bytes:
    """Turn one byte of a pack round."""
    sound = path.read_bytes()
    path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    return sound


@pytest.mark.parametrize("lost", [True, False])
async def test_whoever_reads_it_first_marks_the_document(node: WholeNode, lost: bool) -> None:
    path = await pack(node, "source")
    sound = damage(path)
    if lost:
        path.unlink()
    for _ in range(2):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await original(node)
        assert caught.value.code() in (grpc.StatusCode.DATA_LOSS, grpc.StatusCode.NOT_FOUND)
    document = await node.document(CRATE, "sluice")
    assert document.status == pb.DOCUMENT_STATUS_FAILED
    assert "ingest the document again" in document.revisions[0].failure
    (failure,) = await node.failures(CRATE)
    assert (failure.task.service, failure.task.code) == ("ingest", "not_found" if lost else "corrupt")

    request = pb.RetryFailureRequest(crate_id=CRATE, failure_id=failure.failure_id)
    with pytest.raises(grpc.aio.AioRpcError, match="still gone or damaged"):
        await node.ingest.RetryFailure(request)
    path.write_bytes(sound)
    await node.ingest.RetryFailure(request)
    document = await node.document(CRATE, "sluice")
    assert (document.status, document.revision) == (pb.DOCUMENT_STATUS_SEARCHABLE, 1)
    assert await original(node) == TEXT.encode()


@pytest.mark.parametrize("step", ["source", "chunks", "vectors"])
async def test_ingesting_the_same_again_mends_it_even_unnoticed(node: WholeNode, step: str) -> None:
    damage(await pack(node, step))
    put = await node.put(CRATE, "sluice", TEXT)
    assert (put.outcome, put.revision) == (pb.PUT_OUTCOME_RECHUNKED, 1)
    document = await node.until(CRATE, "sluice", pb.DOCUMENT_STATUS_SEARCHABLE)
    assert await original(node) == TEXT.encode()
    assert await node.found(CRATE, "Almere sluice") == ["sluice"]
    assert (await node.put(CRATE, "sluice", TEXT)).outcome == pb.PUT_OUTCOME_UNCHANGED
    for later in ("chunks", "vectors"):
        for path in node.files(CRATE, document.document_id, later):
            assert pack_id(path.read_bytes()).hex() == path.name.rsplit(",", 1)[-1]


async def test_ingesting_a_failed_document_again_mends_it(node: WholeNode) -> None:
    (await pack(node, "source")).unlink()
    with pytest.raises(grpc.aio.AioRpcError):
        await original(node)
    await node.put(CRATE, "sluice", TEXT)
    await node.until(CRATE, "sluice", pb.DOCUMENT_STATUS_SEARCHABLE)
    assert await original(node) == TEXT.encode()
    assert [failure.state for failure in await node.failures(CRATE)] == [pb.FAILURE_STATE_SUPERSEDED]


async def test_what_was_mended_stays_mended_when_consumers_are_lost(
    node: WholeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Bus._publish

    async def forgetful(bus: Bus, stream: str, subject: str, headers: dict[str, str], body: bytes) -> Appended:
        kept = {name: value for name, value in headers.items() if name != "Nats-Msg-Id"}
        return await publish(bus, stream, subject, kept, body)

    monkeypatch.setattr(Bus, "_publish", forgetful)
    for step in ("source", "chunks"):
        document = await node.document(CRATE, "sluice")
        for path in node.files(CRATE, document.document_id, step):
            path.unlink()
        if step == "chunks":
            # A missing one isn't seen by ingesting again; a damaged one is.
            path.write_bytes(b"damaged")
        assert (await node.put(CRATE, "sluice", TEXT)).outcome == pb.PUT_OUTCOME_RECHUNKED
        await node.until(CRATE, "sluice", pb.DOCUMENT_STATUS_SEARCHABLE)
    position, files = await node.bus.last_position(), sorted(node.settings.blobs.rglob("*,*"))
    for consumer in await node.bus.js.consumers_info("KNOWLEDGE"):
        if consumer.config.durable_name:
            await node.bus.js.delete_consumer("KNOWLEDGE", consumer.name)

    async def settled() -> bool:
        found = [one for one in await node.bus.js.consumers_info("KNOWLEDGE") if one.config.durable_name]
        return len(found) == 4 and not any(one.num_pending or one.num_ack_pending for one in found)

    await eventually(settled)
    assert await node.bus.last_position() == position
    assert sorted(node.settings.blobs.rglob("*,*")) == files
    assert await node.failures(CRATE) == []
    assert (await node.document(CRATE, "sluice")).status == pb.DOCUMENT_STATUS_SEARCHABLE
