# ruff: noqa: RUF001  (the signs that models write are the subject here, look-alikes included)
"""Marker repair over real gRPC and the real log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import grpc
import pytest
from affidavit.citation.v1 import citation_events_pb2 as events_pb
from affidavit.citation.v1 import citation_service_pb2 as pb
from affidavit.citation.v1 import citation_service_pb2_grpc as pb_grpc

from services.citation.main import wire
from services.citation.settings import CitationSettings
from services.kernel.settings import NodeSettings
from tests.integration.chunker.small_world import World

MAX_TEXT_CHARS = CitationSettings().citation_max_chars

RAW = (
    "The pump is rated 16 bar [1]. It is serviced once a year 【2】 and inspected every month ［3］. "
    "The rating is 16 bar [[1]]. The maker is in Oslo [7]. All of this holds [1][1, 3]."
)
TEXT = (
    "The pump is rated 16 bar [1]. It is serviced once a year [2] and inspected every month [3]. "
    "The rating is 16 bar [1]. The maker is in Oslo. All of this holds [1][3]."
)
ANSWER = "a" * 32


@pytest.fixture
async def world(node_settings: NodeSettings) -> AsyncIterator[World]:
    """A node that runs citation, with one crate."""
    made = World(settings=node_settings, wires={"citation": wire})
    await made.open()
    await made.configure()
    yield made
    await made.stop()
    await made.close()


def request(raw_text: str = RAW, *, answer_id: str = "", source_count: int = 4) -> pb.RepairRequest:
    return pb.RepairRequest(crate_id="main", answer_id=answer_id, raw_text=raw_text, source_count=source_count)


async def stream(world: World, *messages: pb.RepairStreamRequest) -> list[pb.RepairStreamResponse]:
    stub = pb_grpc.CitationServiceStub(world.channel)
    return [reply async for reply in stub.RepairStream(iter(messages))]


def pieces(text: Sequence[str], answer_id: str = "") -> list[pb.RepairStreamRequest]:
    start = pb.RepairStreamRequest(start=request("", answer_id=answer_id))
    return [start, *(pb.RepairStreamRequest(text=piece) for piece in text)]


async def test_g09_at_once_and_streamed_give_the_same_bytes(world: World) -> None:
    stub = pb_grpc.CitationServiceStub(world.channel)
    whole = await stub.Repair(request())
    assert whole.text == TEXT
    assert list(whole.cited) == [1, 2, 3]
    assert list(whole.unsupported) == ["The maker is in Oslo."]
    assert whole.rules == "markers-1"
    assert [action.kind for action in whole.actions].count(pb.REPAIR_KIND_REMOVED) == 1
    for size in (1, 7, 1_000):
        replies = await stream(world, *pieces([RAW[at : at + size] for at in range(0, len(RAW), size)]))
        assert "".join(reply.text for reply in replies[:-1]) == TEXT
        assert replies[-1].final == whole
    assert await world.events("SIGNALS") == []


async def test_an_answer_s_repair_is_a_signal_that_stands_once(world: World) -> None:
    stub = pb_grpc.CitationServiceStub(world.channel)
    await stub.Repair(request(answer_id=ANSWER))
    await stream(world, *pieces([RAW], answer_id=ANSWER))
    (event,) = await world.events("SIGNALS")
    assert (event.crate, event.service, event.aggregate) == ("main", "citation", ANSWER)
    assert event.message == events_pb.CitationRepaired(answer_id=ANSWER, repairs=5, unsupported=1, rules="markers-1")


async def test_quoted_evidence_stays(world: World) -> None:
    quote = "costs 40% less, see [3]_ and [2019]"
    wanted = request(f"{quote} 【1】.")
    wanted.literals.add(char_start=0, char_end=len(quote))
    reply = await pb_grpc.CitationServiceStub(world.channel).Repair(wanted)
    assert reply.text == f"{quote} [1]."
    assert list(reply.cited) == [1]


async def test_an_empty_text_is_an_empty_text(world: World) -> None:
    reply = await pb_grpc.CitationServiceStub(world.channel).Repair(request(""))
    assert (reply.text, list(reply.cited), list(reply.actions)) == ("", [], [])
    (only,) = await stream(world, *pieces([]))
    assert only.final == reply


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (request(source_count=101), "source_count 101 is out of range"),
        (request("a" * (MAX_TEXT_CHARS + 1)), "longer than 200000 characters"),
        (request(answer_id="a.b"), "answer_id may hold letters"),
        (pb.RepairRequest(crate_id="main", raw_text="a", literals=[pb.LiteralSpan(char_start=1)]), "literal span 1-0"),
    ],
)
async def test_wrong_requests_are_refused(world: World, wrong: pb.RepairRequest, said: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=said) as refused:
        await pb_grpc.CitationServiceStub(world.channel).Repair(wrong)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([pb.RepairStreamRequest(start=request("early"))], "raw_text empty"),
        ([*pieces([]), pb.RepairStreamRequest(start=request(""))], "must be `text`"),
        ([*pieces(["a" * MAX_TEXT_CHARS, "b"])], "longer than 200000 characters"),
    ],
)
async def test_wrong_streams_are_refused(world: World, messages: list[pb.RepairStreamRequest], said: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=said) as refused:
        await stream(world, *messages)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_replay_is_not_available_yet(world: World) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="not available yet") as refused:
        await pb_grpc.CitationServiceStub(world.channel).Replay(pb.ReplayRequest(crate_id="main"))
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
