"""Puts over gRPC on the real log and tables."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from blake3 import blake3

from tests.integration.ingest.ingest_world import Client, Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = b"Full-time staff have 25 days of annual leave."
OTHER = b"Full-time staff have 28 days of annual leave."


async def test_create_replace_and_no_op(client: Client, pipeline: Pipeline) -> None:
    first = await client.put("handbook/leave", TEXT)
    assert (first.outcome, first.revision) == (pb.PUT_OUTCOME_CREATED, 1)
    event = await pipeline.event(first.document_id)
    assert (event.position, event.aggregate) == (first.position, first.document_id)

    again = await client.put("handbook/leave", TEXT)
    assert (again.outcome, again.revision, again.position) == (pb.PUT_OUTCOME_UNCHANGED, 1, first.position)
    assert (await pipeline.event(first.document_id)).position == first.position

    second = await client.put("handbook/leave", OTHER)
    assert (second.outcome, second.revision) == (pb.PUT_OUTCOME_REPLACED, 2)
    assert second.document_id == first.document_id

    document = await client.get("handbook/leave")
    assert [revision.revision for revision in document.revisions] == [2, 1]
    current, old = document.revisions
    assert current.content_hash == blake3(OTHER).digest()
    assert (old.status, old.superseded_by) == (pb.DOCUMENT_STATUS_SUPERSEDED, 2)
    assert document.status == current.status == pb.DOCUMENT_STATUS_PENDING


async def test_a_b_a_are_three_revisions(client: Client) -> None:
    outcomes = [(await client.put("x", body)).revision for body in (TEXT, OTHER, TEXT, TEXT)]
    assert outcomes == [1, 2, 3, 3]


async def test_what_is_put_can_be_read_at_once_and_byte_for_byte(client: Client) -> None:
    body = "Zeile \N{LATIN SMALL LETTER U WITH DIAERESIS}ber\r\nNUL \x00 und mehr\r".encode() * 30_000
    result = await client.put("bytes", body)
    request = pb.ReadDocumentRequest(crate_id=client.crate, document_id=result.document_id)
    pieces = [reply.body async for reply in client.stub.ReadDocument(request)]
    assert b"".join(pieces) == body
    assert len(pieces) > 1


async def test_an_earlier_revision_can_be_read(client: Client) -> None:
    result = await client.put("x", TEXT)
    await client.put("x", OTHER)
    request = pb.ReadDocumentRequest(crate_id=client.crate, document_id=result.document_id, revision=1)
    assert [reply.body async for reply in client.stub.ReadDocument(request)] == [TEXT]
    request.revision = 3
    with pytest.raises(grpc.aio.AioRpcError, match="has no revision 3") as failure:
        _ = [reply async for reply in client.stub.ReadDocument(request)]
    assert failure.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("body", [b"", b" \n\t "])
async def test_empty_documents_are_documents(client: Client, pipeline: Pipeline, body: bytes) -> None:
    result = await client.put("empty", body)
    assert result.outcome == pb.PUT_OUTCOME_CREATED
    await pipeline.finish(result.document_id, chunks=0)
    document = await client.until("empty", pb.DOCUMENT_STATUS_EMPTY)
    assert document.revisions[0].status == pb.DOCUMENT_STATUS_EMPTY


async def test_any_change_of_what_is_said_about_it_is_a_revision(client: Client) -> None:
    await client.put("x", TEXT)
    changes: list[dict[str, Any]] = [
        {"title": "Leave"},
        {"title": "Leave", "metadata": {"owner": "HR"}},
        {"title": "Leave", "metadata": {"owner": "HR"}, "uri": "https://hr.example.org/leave"},
    ]
    for number, change in enumerate(changes, start=2):
        assert (await client.put("x", TEXT, **change)).revision == number
        assert (await client.put("x", TEXT, **change)).outcome == pb.PUT_OUTCOME_UNCHANGED


async def test_concurrent_puts_of_one_document_become_one_history(client: Client, pipeline: Pipeline) -> None:
    bodies = [f"text {number}".encode() for number in range(8)]
    results = await asyncio.gather(*(client.put("contended", body) for body in bodies))
    assert sorted(result.revision for result in results) == list(range(1, 9))
    document = await client.get("contended")
    hashes = {revision.revision: revision.content_hash for revision in document.revisions}
    assert hashes == {result.revision: blake3(body).digest() for result, body in zip(results, bodies, strict=True)}
    assert (await pipeline.ingested(document.document_id)).revision == 8


async def test_concurrent_puts_of_the_same_content_are_recorded_once(client: Client) -> None:
    results = await asyncio.gather(*(client.put("same", TEXT) for _ in range(8)))
    assert sorted(result.outcome for result in results) == [pb.PUT_OUTCOME_CREATED, *[pb.PUT_OUTCOME_UNCHANGED] * 7]
    assert {result.position for result in results} == {results[0].position}


async def test_many_documents_at_once(client: Client) -> None:
    results = await asyncio.gather(*(client.put(f"doc/{number}", TEXT) for number in range(200)))
    assert len({result.document_id for result in results}) == 200
    listed = await client.stub.ListDocuments(pb.ListDocumentsRequest(crate_id=client.crate, page_size=1_000))
    assert len(listed.documents) == 200


async def test_the_same_name_in_two_crates_is_two_documents(client: Client) -> None:
    other = f"{client.crate}-other"
    await client.create_crate(other)
    here, there = await client.put("x", TEXT), await client.put("x", OTHER, crate=other)
    assert here.document_id != there.document_id
    assert (await client.get("x")).revisions[0].content_hash == blake3(TEXT).digest()
    request = pb.GetDocumentRequest(crate_id=other, document_id=here.document_id)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await client.stub.GetDocument(request)
    assert failure.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_nul_in_what_is_said_reaches_no_table(client: Client) -> None:
    result = await client.put("nul", b"Boiler B is inspected every\x00 April.", title="a\x00b", metadata={"k": "\x00"})
    assert any("the given title" in notice for notice in result.notices)
    document = await client.get("nul")
    assert document.title == "a\ufffdb"
    assert document.revisions[0].content_hash == blake3(b"Boiler B is inspected every\x00 April.").digest()


async def test_the_longest_names_and_metadata_are_stored(client: Client) -> None:
    name = "\U0001f600" * 1_024
    metadata = {f"{number:02}".ljust(256, "\U0001f600"): "v" * 8_192 for number in range(64)}
    await client.put(name, TEXT, metadata=metadata)
    assert (await client.get(name)).source_id == name


@pytest.mark.parametrize(
    ("source_id", "header", "message"),
    [
        ("", {}, "source_id is empty"),
        ("/abs", {}, "is absolute"),
        ("a/../b", {}, "has a '..' in it"),
        ("x", {"metadata": {"document_id": "1"}}, "'document_id' is reserved"),
        ("x", {"metadata": {"k": "v" * 9_000}}, "'k' has a value of 9000 bytes"),
        ("x", {"job": "Bad Job"}, "job_id 'Bad Job' isn't usable"),
    ],
)
async def test_what_cannot_be_put_is_refused(
    client: Client, source_id: str, header: dict[str, object], message: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await client.put(source_id, TEXT, **header)  # type: ignore[arg-type]  # the table mixes types
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert message in str(failure.value.details())


async def test_what_cannot_be_read_is_refused_with_its_name_and_leaves_its_neighbours_alone(client: Client) -> None:
    puts = (
        client.put("good.json", b'{"a": 1}', media_type="application/json"),
        client.put("bad.json", b'{"a": ', media_type="application/json"),
        client.put("image.png", b"\x89PNG\r\n\x1a\n" + bytes(64), media_type="image/png"),
    )
    good, bad, image = await asyncio.gather(*puts, return_exceptions=True)
    assert isinstance(good, pb.PutDocumentResponse)
    for name, refused in (("bad.json", bad), ("image.png", image)):
        assert isinstance(refused, grpc.aio.AioRpcError)
        assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert f"document '{name}' can't be read: " in str(refused.details())
    listed = await client.stub.ListDocuments(pb.ListDocumentsRequest(crate_id=client.crate))
    assert [document.source_id for document in listed.documents] == ["good.json"]


async def test_a_large_body_is_read_in_a_process_of_its_own(client: Client) -> None:
    line = "A line of a large log, with some words in it.\n"
    body = (line * (3 * 1024 * 1024 // len(line))).encode()
    pieces = [
        pb.UploadDocumentRequest(crate_id=client.crate, header=pb.DocumentHeader(source_id="large.txt")),
        *(pb.UploadDocumentRequest(body=body[at : at + 1024 * 1024]) for at in range(0, len(body), 1024 * 1024)),
    ]
    reply = await client.stub.UploadDocument(iter(pieces))
    assert reply.result.outcome == pb.PUT_OUTCOME_CREATED
    bad = [
        pb.UploadDocumentRequest(crate_id=client.crate, header=pb.DocumentHeader(source_id="large.json")),
        *pieces[1:],
    ]
    with pytest.raises(grpc.aio.AioRpcError, match=r"document 'large\.json' can't be read") as failure:
        await client.stub.UploadDocument(iter(bad))
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_unknown_job_is_not_found(client: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="job 'nightly' does not exist") as failure:
        await client.put("x", TEXT, job="nightly")
    assert failure.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_body_that_is_too_large_names_the_other_call(client: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="send it with UploadDocument") as failure:
        await client.put("x", b"a" * (1024 * 1024 + 1))
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (await client.put("x", b"a" * 1024 * 1024)).revision == 1


async def test_upload_in_pieces(client: Client) -> None:
    header = pb.DocumentHeader(source_id="up", media_type="text/plain")
    pieces = [
        pb.UploadDocumentRequest(crate_id=client.crate, header=header),
        *(pb.UploadDocumentRequest(crate_id=client.crate, body=b"line of text\n" * 50_000) for _ in range(3)),
    ]
    reply = await client.stub.UploadDocument(iter(pieces))
    assert reply.result.outcome == pb.PUT_OUTCOME_CREATED
    document = await client.get("up")
    assert document.revisions[0].size_bytes == 13 * 150_000


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([b"x"], "the first message of an upload must be its header"),
        (["x", "x"], "an upload has one header"),
        (["x", b"x" * (1024 * 1024 + 1)], "is too large: at most 1048576 each"),
        ([], "the upload is empty"),
    ],
)
async def test_uploads_that_are_refused(client: Client, parts: list[str | bytes], message: str) -> None:
    pieces = [
        pb.UploadDocumentRequest(crate_id=client.crate, body=part)
        if isinstance(part, bytes)
        else pb.UploadDocumentRequest(crate_id=client.crate, header=pb.DocumentHeader(source_id=part))
        for part in parts
    ]
    with pytest.raises(grpc.aio.AioRpcError, match=message) as failure:
        await client.stub.UploadDocument(iter(pieces))
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
