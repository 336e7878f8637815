"""Preview over real gRPC."""

from __future__ import annotations

import grpc
import pytest
from affidavit.chunker.v1 import chunker_service_pb2 as pb
from affidavit.chunker.v1 import chunker_service_pb2_grpc as pb_grpc
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2

from services.chunker.servicer import MAX_PREVIEW_CHARS
from tests.integration.chunker.small_world import World


def request(text: str, **settings: int) -> pb.PreviewRequest:
    return pb.PreviewRequest(
        crate_id="main",
        document=ingest_pb.NormalizedDocument(text=text),
        chunking=settings_pb2.ChunkSettings(**settings),
    )


async def test_a_preview_cuts_and_stores_nothing(world: World) -> None:
    await world.configure(max_input_chars=80)
    stub = pb_grpc.ChunkerServiceStub(world.channel)
    text = "x" * 10 + " " + "a" * 5_000
    reply = await stub.Preview(request(text, size_chars=100, overlap_chars=100))
    assert "".join(chunk.text[chunk.overlap_chars :] for chunk in reply.chunks) == text
    assert max(len(chunk.text) for chunk in reply.chunks) == 80
    assert [notice.split(":")[0] for notice in reply.notices] == [
        "chunk_size 100 was lowered to 80",
        "chunk_overlap 100 was lowered to 40",
    ]
    assert [event.name for event in await world.events()] == ["CrateConfigured"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (request("a", size_chars=49), "chunk_size 49 is out of range"),
        (request("a" * (MAX_PREVIEW_CHARS + 1)), "a preview takes at most 2000000 characters"),
        (
            pb.PreviewRequest(
                crate_id="main",
                document=ingest_pb.NormalizedDocument(text="a", runs=[ingest_pb.TextRun(text_end=3)]),
            ),
            "the runs end at 3",
        ),
        (
            pb.PreviewRequest(crate_id="main", document=ingest_pb.NormalizedDocument(text="a", charset="no-such")),
            "no-such",
        ),
    ],
)
async def test_what_can_not_be_cut_is_refused(world: World, wrong: pb.PreviewRequest, said: str) -> None:
    await world.configure()
    with pytest.raises(grpc.aio.AioRpcError, match=said) as refused:
        await pb_grpc.ChunkerServiceStub(world.channel).Preview(wrong)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
