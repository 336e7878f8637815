"""The index by gRPC: limits, filters, terms, pages, refusals."""

from __future__ import annotations

from collections.abc import Awaitable

import grpc
import numpy as np
import pytest
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.index.v1 import index_service_pb2 as pb

from tests.integration.index.service_world import MODEL, World, axis, document_id, packed


async def refused(call: Awaitable[object], code: grpc.StatusCode) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is code, caught.value.details()
    return str(caught.value.details())


def key(number: int, ordinal: int, revision: int = 1) -> pb.ChunkKey:
    return pb.ChunkKey(document_id=document_id(number), revision=revision, ordinal=ordinal)


async def test_one_rule_for_limits(world: World) -> None:
    await world.started()
    index = world.index
    for limit in (0, 1_001, 2**32 - 1):
        keyword = index.SearchKeyword(pb.SearchKeywordRequest(crate_id="main", query="a", limit=limit))
        assert f"limit is {limit}: give 1 to 1,000" in await refused(keyword, grpc.StatusCode.INVALID_ARGUMENT)
        vector = index.SearchVector(
            pb.SearchVectorRequest(crate_id="main", vector=packed(axis(0)), model_id=MODEL, limit=limit)
        )
        assert "give 1 to 1,000" in await refused(vector, grpc.StatusCode.INVALID_ARGUMENT)
    for page_size in (1_001, 2**32 - 1):
        page = index.ListChunks(pb.ListChunksRequest(crate_id="main", document_id=document_id(1), page_size=page_size))
        assert f"page_size is {page_size}" in await refused(page, grpc.StatusCode.INVALID_ARGUMENT)
    for count in (0, 1_001):
        keys = [key(1, ordinal) for ordinal in range(count)]
        fetch = index.FetchChunks(pb.FetchChunksRequest(crate_id="main", keys=keys))
        assert f"the number of keys is {count}" in await refused(fetch, grpc.StatusCode.INVALID_ARGUMENT)


async def test_a_query_without_words_finds_nothing_and_says_so(world: World) -> None:
    await world.started()
    await world.applied(await world.put(1, ["some words"]))
    for query in ("", "   ", "?!...", "()", '"', "/"):
        reply = await world.index.SearchKeyword(pb.SearchKeywordRequest(crate_id="main", query=query, limit=5))
        assert list(reply.hits) == []
        assert list(reply.terms) == []
        assert reply.generation == 1
        assert reply.position > 0


async def test_query_syntax_is_plain_words(world: World) -> None:
    await world.started()
    await world.put(2, ["nothing of the kind"])
    await world.applied(await world.put(1, ["the harbour"]))
    for query in ("title:harbour OR *:*", 'harbour"', "harbour/", "harbour AND (", "-harbour^2~"):
        assert (1, 1, 0) in await world.keyword(query)


async def test_terms_carry_their_weights(world: World) -> None:
    await world.started()
    await world.put(1, ["common rare"])
    await world.applied(await world.put(2, ["common"]))
    reply = await world.index.SearchKeyword(
        pb.SearchKeywordRequest(crate_id="main", query="absent common rare", limit=5)
    )
    weights = {term.term: (term.document_frequency, term.idf) for term in reply.terms}
    assert [frequency for frequency, _ in weights.values()] == [0, 2, 1]
    absent, common, rare = (weight for _, weight in weights.values())
    assert absent == 0
    assert rare > common > 0


async def test_filters_work_inside_both_lanes(world: World) -> None:
    await world.started()
    for number in range(1, 8):
        form = event_pb.FORM_STRUCTURED if number == 7 else event_pb.FORM_TEXT
        domain = "seven.org" if number == 7 else "other.org"
        await world.ingest(number, form=form)
        last = await world.embed(
            number, ["same words"], form=form, source_domain=domain, vectors=[[1, 0.1 * number, 0, 0]]
        )
    await world.applied(last)
    for lane_filter in (
        pb.LaneFilter(forms=[event_pb.FORM_STRUCTURED]),
        pb.LaneFilter(source_domains=["seven.org"]),
        pb.LaneFilter(document_ids=[document_id(7)]),
    ):
        keyword = await world.index.SearchKeyword(
            pb.SearchKeywordRequest(crate_id="main", query="same words", limit=1, filter=lane_filter)
        )
        vector = await world.index.SearchVector(
            pb.SearchVectorRequest(crate_id="main", vector=packed(axis(0)), model_id=MODEL, limit=1, filter=lane_filter)
        )
        assert [hit.document_id for hit in keyword.hits] == [document_id(7)]
        assert [hit.document_id for hit in vector.hits] == [document_id(7)]
        assert keyword.hits[0].form == event_pb.FORM_STRUCTURED


async def test_an_unknown_kind_is_refused(world: World) -> None:
    await world.started()
    call = world.index.SearchKeyword(
        pb.SearchKeywordRequest(
            crate_id="main", query="a", limit=1, filter=pb.LaneFilter(kind=pb.RecordKind.ValueType(9))
        )
    )
    assert "filter.kind 9 is unknown" in await refused(call, grpc.StatusCode.INVALID_ARGUMENT)


async def test_a_vector_of_another_model_is_a_conflict_with_the_way_out(world: World) -> None:
    await world.started()
    for vector, model in ((packed(axis(0)), "other"), (packed(axis(0)), ""), (packed([1, 0, 0]), MODEL)):
        request = pb.SearchVectorRequest(crate_id="main", vector=vector, model_id=model, limit=1)
        details = await refused(world.index.SearchVector(request), grpc.StatusCode.ABORTED)
        assert f"built on {MODEL} with 4" in details
        assert "embed the query with that model" in details


async def test_vectors_that_point_nowhere_are_refused(world: World) -> None:
    await world.started()
    for vector in (b"", b"abc", packed([0, 0, 0, 0]), packed([1, float("nan"), 0, 0])):
        request = pb.SearchVectorRequest(crate_id="main", vector=vector, model_id=MODEL, limit=1)
        await refused(world.index.SearchVector(request), grpc.StatusCode.INVALID_ARGUMENT)


async def test_chunks_are_fetched_with_their_terms_in_the_order_of_the_keys(world: World) -> None:
    await world.started()
    await world.ingest(1)
    await world.applied(await world.embed(1, ["boats moor", "fees apply"], title="Harbour"))
    reply = await world.index.FetchChunks(
        pb.FetchChunksRequest(crate_id="main", keys=[key(1, 1), key(1, 0), key(1, 9), key(2, 0)], with_terms=True)
    )
    assert [chunk.chunk.text for chunk in reply.chunks] == ["fees apply", "boats moor"]
    assert list(reply.chunks[1].terms) == ["boat", "harbour", "moor", "part"]
    assert reply.chunks[0].title == "Harbour"
    assert reply.chunks[0].source_id == "doc-1.txt"
    assert reply.position > 0
    bare = await world.index.FetchChunks(pb.FetchChunksRequest(crate_id="main", keys=[key(1, 0)]))
    assert not bare.chunks[0].terms


async def test_chunks_of_a_replaced_revision_are_left_out(world: World) -> None:
    await world.started()
    await world.put(1, ["old"])
    await world.applied(await world.put(1, ["new"], 2))
    reply = await world.index.FetchChunks(
        pb.FetchChunksRequest(crate_id="main", keys=[key(1, 0), key(1, 0, revision=2)])
    )
    assert [chunk.chunk.text for chunk in reply.chunks] == ["new"]


async def test_a_listing_stays_with_its_revision(world: World) -> None:
    await world.started()
    await world.applied(await world.put(1, [f"old {n}" for n in range(5)]))
    request = pb.ListChunksRequest(crate_id="main", document_id=document_id(1), page_size=2)
    first = await world.index.ListChunks(request)
    assert [chunk.chunk.text for chunk in first.chunks] == ["old 0", "old 1"]
    assert list(first.headings) == ["Part"]
    await world.applied(await world.put(1, ["new 0"], 2))
    request.page_token = first.next_page_token
    second = await world.index.ListChunks(request)
    assert [chunk.chunk.text for chunk in second.chunks] == ["old 2", "old 3"]
    request.page_token = second.next_page_token
    third = await world.index.ListChunks(request)
    assert [chunk.chunk.text for chunk in third.chunks] == ["old 4"]
    assert third.next_page_token == ""


async def test_foreign_tokens_and_unknown_documents_are_refused(world: World) -> None:
    await world.started()
    token = world.index.ListChunks(
        pb.ListChunksRequest(crate_id="main", document_id=document_id(1), page_token="x' or 1=1")  # noqa: S106
    )
    assert "none of ours" in await refused(token, grpc.StatusCode.INVALID_ARGUMENT)
    for document, revision in ((document_id(1), 0), (document_id(1), 2**32 - 1), ("no id", 0)):
        call = world.index.ListChunks(pb.ListChunksRequest(crate_id="main", document_id=document, revision=revision))
        await refused(call, grpc.StatusCode.NOT_FOUND)


async def test_the_watermark_names_the_log(world: World) -> None:
    await world.started()
    position = await world.put(1, ["text"])
    await world.applied(position)
    reply = await world.index.GetWatermark(pb.GetWatermarkRequest(crate_id="main"))
    assert reply.position == position
    assert reply.incarnation == world.context.bus.incarnation()
    assert len(reply.incarnation) == 16


async def test_generations_count_their_records(world: World) -> None:
    await world.started()
    await world.put(1, ["a b", "c d"])
    await world.ingest(2)
    await world.embed(2, [])
    await world.put(3, ["e f"])
    await world.applied(await world.retire(3))
    reply = await world.index.ListGenerations(pb.ListGenerationsRequest(crate_id="main"))
    (generation,) = reply.generations
    assert (generation.chunk_records, generation.document_records) == (2, 1)
    assert generation.dimension == 4
    assert generation.started_at.seconds > 0


async def test_what_comes_later_is_refused_as_not_available_yet(world: World) -> None:
    await world.started()
    call = world.index.Rebuild(pb.RebuildRequest(crate_id="main"))
    assert "not available yet" in await refused(call, grpc.StatusCode.UNIMPLEMENTED)


async def test_a_limit_of_one_thousand_is_served(world: World) -> None:
    await world.started()
    vectors = np.eye(4)[np.zeros(30, dtype=int)].tolist()
    await world.ingest(1)
    await world.applied(await world.embed(1, [f"word {n}" for n in range(30)], vectors=vectors))
    found = await world.keyword("word", limit=1_000)
    assert found == [(1, 1, ordinal) for ordinal in range(30)]
    assert await world.vector(axis(0), limit=1_000) == found
