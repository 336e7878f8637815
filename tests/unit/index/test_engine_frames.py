"""Frames between the index service and its vector engine."""

from __future__ import annotations

import asyncio
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.index.adapters.edge_engine import frames
from services.index.adapters.edge_engine.frames import FrameError, Step, StoredRecord

INSTANTS = st.integers(-(2**62), 2**62)
RECORDS = st.tuples(
    st.integers(1, 2**31),
    st.integers(0, 2**31),
    st.sampled_from(["chunk", "document"]),
    st.just("text"),
    st.text(),
    st.tuples(INSTANTS, INSTANTS, st.integers(0, 2**60), st.integers(0, 1)),
)


def joined(frame: tuple[bytes, bytes]) -> bytes:
    return b"".join(frame)


async def read(content: bytes) -> tuple[frames.Header, bytes]:
    reader = asyncio.StreamReader()
    reader.feed_data(content)
    reader.feed_eof()
    return await frames.read(reader)


@given(
    st.lists(st.tuples(st.text(), st.integers(0, 2**60), st.lists(RECORDS), st.booleans()), min_size=1),
    st.integers(1, 4),
)
def test_steps_come_out_as_they_went_in(made: list[tuple[str, int, list[StoredRecord], bool]], d: int) -> None:
    steps = [
        Step(
            name,
            i,
            edition,
            ("chunk",),
            tuple(records),
            np.full((len(records), d), i, dtype=np.float32),
            last,
            ("text", records[0][5]) if records else None,
        )
        for i, (name, edition, records, last) in enumerate(made)
    ]
    (header, body), *rest = frames.read_file(io.BytesIO(joined(frames.encode_steps(steps, {"op": "steps"}))))
    assert rest == []
    assert header["op"] == "steps"
    for step, back in zip(steps, frames.decode_steps(header, body), strict=True):
        assert (back.document_id, back.revision, back.edition, back.kinds, back.records, back.last, back.moved) == (
            step.document_id,
            step.revision,
            step.edition,
            step.kinds,
            step.records,
            step.last,
            step.moved,
        )
        assert np.array_equal(back.vectors, step.vectors)


async def test_a_stream_gives_the_frames_of_a_file() -> None:
    content = joined(frames.encode({"op": "ping"}, b"body"))
    assert await read(content) == ({"op": "ping"}, b"body")
    assert list(frames.read_file(io.BytesIO(content * 2))) == [({"op": "ping"}, b"body")] * 2


@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 64,
        (2).to_bytes(4, "big") + bytes(8) + b"{]",
        (2).to_bytes(4, "big") + bytes(8) + b"[]",
    ],
)
async def test_other_bytes_are_no_frame(content: bytes) -> None:
    with pytest.raises(FrameError):
        await read(content)
    with pytest.raises(FrameError):
        list(frames.read_file(io.BytesIO(content)))


async def test_a_frame_that_is_cut_off_is_no_frame() -> None:
    content = joined(frames.encode({"op": "ping"}, b"body"))
    for size in (0, 5, 13, len(content) - 1):
        with pytest.raises(asyncio.IncompleteReadError):
            await read(content[:size])
    with pytest.raises(FrameError):
        list(frames.read_file(io.BytesIO(content[:5])))
