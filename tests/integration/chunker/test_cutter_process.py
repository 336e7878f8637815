"""Work in a process of its own: same result, loss of the process is reported."""

from __future__ import annotations

import asyncio
import multiprocessing

import pytest

from services.chunker.adapters.cutter_process import ProcessCutter, cut
from services.chunker.domain.chunking import Sizes
from services.kernel.errors import Unavailable
from tests.integration.chunker.small_world import normalized


async def test_at_once_in_a_thread_and_in_a_process_give_the_same() -> None:
    parts = {"normalized": normalized("a b " * 500), "manifest": b"", "raw": b"not used"}
    sizes = Sizes(100, 20)
    limits = ((10_000, 20_000), (0, 20_000), (0, 0))
    cutters = [ProcessCutter(thread_above_bytes=thread, process_above_bytes=process) for thread, process in limits]
    results = [await cutter.cut(parts, sizes) for cutter in cutters]
    assert results == [cut(parts, sizes)] * 3
    assert results[0][0] > 20


async def test_what_is_wrong_with_the_parts_comes_back_from_the_process() -> None:
    with pytest.raises(ValueError, match="no part 'manifest'"):
        await ProcessCutter(thread_above_bytes=0, process_above_bytes=0).cut({"normalized": b""}, Sizes(100, 0))


async def test_a_process_that_dies_is_reported_as_passing() -> None:
    earlier = set(multiprocessing.active_children())
    cutter = ProcessCutter(thread_above_bytes=0, process_above_bytes=0)
    task = asyncio.create_task(cutter.cut({"normalized": normalized("a " * 3_000_000), "manifest": b""}, Sizes(50, 25)))
    while not (own := set(multiprocessing.active_children()) - earlier):  # noqa: ASYNC110  (no event tells of it)
        await asyncio.sleep(0.01)
    for child in own:
        child.kill()
    with pytest.raises(Unavailable, match="ended early"):
        await task


async def test_a_cut_that_nobody_wants_any_more_ends_at_once() -> None:
    earlier = set(multiprocessing.active_children())
    cutter = ProcessCutter(thread_above_bytes=0, process_above_bytes=0)
    task = asyncio.create_task(cutter.cut({"normalized": normalized("a " * 3_000_000), "manifest": b""}, Sizes(50, 25)))
    while not (own := set(multiprocessing.active_children()) - earlier):  # noqa: ASYNC110  (no event tells of it)
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        while own & set(multiprocessing.active_children()):  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0.01)
