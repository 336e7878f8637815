"""WatchProgress moves while a document is embedded, by what the embedder tells."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb

from services.kernel.progress import Progress, telling
from tests.integration.ingest.ingest_world import Client, Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_chunks_count_as_they_are_told(client: Client, pipeline: Pipeline) -> None:
    document_id = (await client.put("long.txt", b"a long text")).document_id
    await pipeline.chunk(document_id, 4000)
    digest = (await pipeline.ingested(document_id)).settings_digest
    bus = pipeline.buses["embedder"]
    watched = client.stub.WatchProgress(pb.WatchProgressRequest(crate_id=client.crate))
    seen: list[int] = []

    async def until(embedded: int) -> None:
        while not seen or seen[-1] != embedded:
            reply = await watched.read()
            assert isinstance(reply, pb.WatchProgressResponse)
            assert reply.pending == 1
            seen.append(reply.chunks_embedded)

    async with asyncio.timeout(30):
        async with telling(bus, client.crate, Progress(document_id, "1:of other chunks", done=7)):
            await until(0)
        progress = Progress(document_id, f"1:{digest}", done=1024)
        async with telling(bus, client.crate, progress):
            for done in (1024, 2048, 3072):
                progress.done = done
                await until(done)
            # More than there is can't be.
            progress.done = 9999
            await until(4000)
        await pipeline.index(document_id, await pipeline.embed(document_id, 4000))
        while (reply := await watched.read()) is not grpc.aio.EOF:
            last = reply
    assert isinstance(last, pb.WatchProgressResponse)
    assert (last.pending, last.searchable) == (0, 1)
    assert 7 not in seen


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b'{"task": "1:x"}', b'{"task": 1, "done": "many"}'])
async def test_what_can_t_be_read_is_left_out(client: Client, pipeline: Pipeline, body: bytes) -> None:
    document_id = (await client.put("long.txt", b"a long text")).document_id
    await pipeline.finish(document_id)
    await pipeline.buses["embedder"].nats.publish(f"affidavit.progress.{client.crate}.embedder.{document_id}", body)
    assert (await client.watch())[-1].searchable == 1


async def test_what_there_isn_t_is_not_watched(client: Client) -> None:
    known = (await client.put("a.txt", b"a text")).document_id
    for selection, named in (
        ({"job_id": "nope"}, "job nope"),
        ({"document_ids": [known, "0" * 32]}, f"document {'0' * 32}"),
    ):
        with pytest.raises(grpc.aio.AioRpcError, match=named) as caught:
            await client.watch(**selection)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.aio.AioRpcError, match="job nope") as caught:
        await client.stub.ListDocuments(pb.ListDocumentsRequest(crate_id=client.crate, job_id="nope"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
