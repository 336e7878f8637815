"""Quotas over gRPC, over publishers' subject and on the command line's terms: refused whole, nothing half written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb

from tests.integration.whole_node import WholeNode

CRATE = "main"


@pytest.fixture
async def node(tmp_path: Path, postgres_server: str) -> AsyncIterator[WholeNode]:
    quotas = {"crate_documents": 3, "crate_bytes": 20_000, "crate_puts_in_flight": 4}
    async with WholeNode.start(tmp_path, postgres_server, settings=quotas) as made:
        await made.create(CRATE)
        yield made


async def refused(node: WholeNode, source_id: str, text: str) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await node.put(CRATE, source_id, text)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return str(caught.value.details())


def packs(node: WholeNode) -> set[str]:
    return {path.name for path in (node.settings.blobs / CRATE).glob("*/*") if ",source," in path.name}


async def test_nothing_is_written_beyond_the_quota(node: WholeNode) -> None:
    for number in range(3):
        await node.put(CRATE, f"d{number}", "A short text.")
    position, files = await node.bus.last_position(), packs(node)
    assert "erase documents" in await refused(node, "d3", "One too many.")
    event = {"specversion": "1.0", "id": "1", "source": "/t", "type": "dev.affidavit.document.put", "subject": "d3"}
    payload = json.dumps(event | {"data": "text", "datacontenttype": "text/plain"}).encode()
    reply = json.loads((await node.nats.request(f"affidavit.submit.{CRATE}", payload, timeout=10)).data)
    assert reply["error"]["code"] == "exhausted"
    assert packs(node) == files
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await node.document(CRATE, "d3")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND

    # Changing, retiring and erasing what is there goes on; erasing makes room, at the latest a moment later.
    assert (await node.put(CRATE, "d0", "A changed text.")).revision == 2
    assert "crate_bytes" in await refused(node, "d0", "x" * 30_000)
    assert (await node.put(CRATE, "d0", "A changed text.")).outcome == pb.PUT_OUTCOME_UNCHANGED
    await node.ingest.EraseDocument(pb.EraseDocumentRequest(crate_id=CRATE, source_id="d1"))
    await asyncio.sleep(0.6)
    assert (await node.put(CRATE, "d3", "There is room now.")).outcome == pb.PUT_OUTCOME_CREATED
    assert position < await node.bus.last_position()
    await node.create("other")
    await node.put("other", "d0", "Another crate has a quota of its own.")


async def test_too_many_puts_at_once_are_refused_and_the_others_go_in(node: WholeNode) -> None:
    found = await asyncio.gather(
        *(node.put(CRATE, "same", f"Text number {number}.") for number in range(40)), return_exceptions=True
    )
    codes = {error.code() for error in found if isinstance(error, grpc.aio.AioRpcError)}
    assert codes <= {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED}
    assert grpc.StatusCode.RESOURCE_EXHAUSTED in codes
    accepted = [reply for reply in found if isinstance(reply, pb.PutDocumentResponse)]
    assert accepted
    assert (await node.document(CRATE, "same")).revision == max(reply.revision for reply in accepted)
