"""Bodies that are read in a process of their own."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from services.ingest.adapters import reader
from services.ingest.adapters.preparer_process import ProcessPreparer
from services.ingest.adapters.reader import LENGTHS, Refusal, Task
from services.ingest.domain.documents import Prepared
from services.ingest.domain.headers import Header
from services.ingest.domain.normalize import InvalidDocument
from services.kernel.errors import Unavailable

HEADER = Header(source_id="logs/relay.txt", title="Relay")
BODY = b"The relay listens on port 7443.\r\n" * 50


@pytest.fixture
async def preparer() -> AsyncIterator[ProcessPreparer]:
    made = ProcessPreparer(thread_above_bytes=100, process_above_bytes=1_000, recycle_above_bytes=10_000)
    yield made
    await made.close()


async def test_all_three_ways_come_to_the_same(preparer: ProcessPreparer) -> None:
    always = ProcessPreparer(thread_above_bytes=0, process_above_bytes=0, recycle_above_bytes=0)
    threaded = ProcessPreparer(thread_above_bytes=0, process_above_bytes=10**9, recycle_above_bytes=0)
    for body in (BODY[:50], BODY[:500], BODY):
        here = reader.read(Task("main", HEADER), body)
        for other in (preparer, always, threaded):
            assert await other.prepare("main", HEADER, body) == here
    assert here.title == "Relay"
    assert here.source_domain == "logs"
    await always.close()


async def test_the_process_serves_many_bodies_and_is_replaced_after_a_large_one(preparer: ProcessPreparer) -> None:
    await asyncio.gather(*(preparer.prepare("main", HEADER, BODY) for _ in range(3)))
    first = preparer._process
    assert first is not None
    await preparer.prepare("main", HEADER, BODY)
    assert preparer._process is first
    await preparer.prepare("main", HEADER, BODY * 10)
    assert preparer._process is None
    assert first.returncode is not None


async def test_a_body_that_is_refused_leaves_the_process_ready(preparer: ProcessPreparer) -> None:
    wrong = replace(HEADER, media_type="application/json")
    with pytest.raises(InvalidDocument):
        await preparer.prepare("main", wrong, BODY)
    held = preparer._process
    assert (await preparer.prepare("main", HEADER, BODY)).size_bytes == len(BODY)
    assert preparer._process is held


async def test_a_process_that_dies_is_reported_and_replaced(preparer: ProcessPreparer) -> None:
    await preparer.prepare("main", HEADER, BODY)
    process = preparer._process
    assert process is not None
    working = asyncio.create_task(preparer.prepare("main", HEADER, b"word " * 400_000))
    await asyncio.sleep(0)
    process.kill()
    with pytest.raises(Unavailable, match=r"the process that read 'logs/relay\.txt' \(2000000 bytes\) ended early"):
        await working
    assert (await preparer.prepare("main", HEADER, BODY)).size_bytes == len(BODY)


async def test_a_cancelled_reading_does_not_answer_the_next_one(preparer: ProcessPreparer) -> None:
    await preparer.prepare("main", HEADER, BODY)
    slow = asyncio.create_task(preparer.prepare("main", HEADER, b"# Heading\n\ntext\n" * 100_000))
    await asyncio.sleep(0.05)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert (await preparer.prepare("main", HEADER, BODY)).size_bytes == len(BODY)


def test_the_program_reads_frames_until_the_other_end_closes() -> None:
    task = Task("main", HEADER)
    bad = Task("main", replace(HEADER, media_type="application/json"))
    source = io.BytesIO(b"".join((*reader.pack(task, BODY), *reader.pack(bad, BODY), b"cut")))
    target = io.BytesIO()
    reader.serve(source, target)
    target.seek(0)
    answers = []
    while lengths := target.read(LENGTHS.size):
        value_bytes, raw_bytes = LENGTHS.unpack(lengths)
        answers.append((reader.unpack(target.read(value_bytes)), target.read(raw_bytes)))
    (first, raw), (second, nothing) = answers
    assert isinstance(first, Prepared)
    assert replace(first, normalized=raw) == reader.read(task, BODY)
    assert isinstance(second, Refusal)
    assert nothing == b""


def test_frames_of_others_are_refused() -> None:
    with pytest.raises(TypeError, match="isn't ours"):
        reader.serve(io.BytesIO(b"".join(reader.pack("a stranger", b""))), io.BytesIO())
