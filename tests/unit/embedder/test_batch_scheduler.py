"""One model, many callers: turns, places, failures, cancelling."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from services.embedder.adapters.model_constant import HashModel
from services.embedder.domain.batches import BatchLimits
from services.embedder.domain.models import Purpose
from services.embedder.domain.vectors import unit_rows
from services.embedder.scheduler import BatchScheduler
from services.kernel.errors import Rejected, Unavailable


class GatedModel(HashModel):
    """Records its calls, and holds each back until it is let go."""

    limits = BatchLimits(texts=2, size_bytes=100)

    def __init__(self, *, gated: bool = True) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.cancelled = 0
        self.most_at_once = 0
        self._at_once = 0
        self._gate = asyncio.Semaphore(0)
        self._gated = gated

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.floating]:
        self.calls.append(tuple(texts))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self._gated:
                await self._gate.acquire()
            if "bad" in texts:
                raise Rejected("text refused")
            if "nan" in texts:
                return np.full((len(texts), self.dimension), np.nan)
            if "short" in texts:
                return np.ones((1, 1))
            return await super().embed(texts, purpose)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self._at_once -= 1

    def let_go(self, calls: int = 1) -> None:
        for _ in range(calls):
            self._gate.release()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def expected(texts: Sequence[str]) -> NDArray[np.float32]:
    return unit_rows(await HashModel().embed(texts, Purpose.DOCUMENT), count=len(texts), dimension=384)


async def test_vectors_stand_in_the_order_of_the_texts() -> None:
    scheduler = BatchScheduler(model=GatedModel(gated=False))
    texts = ["a long text", "b", "a middle", "c", "d" * 300, "b"]
    vectors = await scheduler.embed(texts, Purpose.DOCUMENT)
    assert np.array_equal(vectors, await expected(texts))


async def test_no_texts_need_no_call() -> None:
    model = GatedModel()
    assert (await BatchScheduler(model=model).embed([], Purpose.DOCUMENT)).shape == (0, 384)
    assert model.calls == []


async def test_batches_keep_their_limits() -> None:
    model = GatedModel(gated=False)
    texts = ["1", "2", "3", "x" * 60, "y" * 61, "z" * 500]
    await BatchScheduler(model=model).embed(texts, Purpose.DOCUMENT)
    assert model.calls == [("1", "2"), ("3", "x" * 60), ("y" * 61,), ("z" * 500,)]


async def test_documents_take_turns() -> None:
    model = GatedModel()
    scheduler = BatchScheduler(model=model)
    long = asyncio.create_task(scheduler.embed([f"long{number}" for number in range(6)], Purpose.DOCUMENT))
    await settle()
    short = asyncio.create_task(scheduler.embed(["s0"], Purpose.DOCUMENT))
    await settle()
    for _ in range(3):
        model.let_go()
        await settle()
    assert short.done()
    assert not long.done()
    model.let_go(9)
    await asyncio.gather(long, short)
    # The newcomer waits for the batch in work and for the one that stood before it, never for the document.
    assert model.calls == [("long0", "long1"), ("long2", "long3"), ("s0",), ("long4", "long5")]


async def test_questions_have_a_place_of_their_own() -> None:
    model = GatedModel()
    scheduler = BatchScheduler(model=model)
    document = asyncio.create_task(scheduler.embed(["d0", "d1", "d2"], Purpose.DOCUMENT))
    await settle()
    question = asyncio.create_task(scheduler.embed(["q"], Purpose.QUERY))
    await settle()
    assert model.calls == [("d0", "d1"), ("q",)]
    model.let_go(9)
    await asyncio.gather(document, question)
    assert model.most_at_once == 2


async def test_questions_go_before_waiting_documents() -> None:
    model = GatedModel()
    scheduler = BatchScheduler(model=model)
    jobs = [asyncio.create_task(scheduler.embed([name], Purpose.DOCUMENT)) for name in ("d0", "d1")]
    await settle()
    jobs += [asyncio.create_task(scheduler.embed([name], Purpose.QUERY)) for name in ("q0", "q1")]
    await settle()
    assert model.calls == [("d0",), ("q0",)]
    model.let_go()
    await settle()
    model.let_go(9)
    await asyncio.gather(*jobs)
    assert model.calls[2] == ("q1",)


async def test_documents_alone_never_take_the_question_s_place() -> None:
    model = GatedModel()
    scheduler = BatchScheduler(model=model)
    jobs = [asyncio.create_task(scheduler.embed([f"d{number}"], Purpose.DOCUMENT)) for number in range(5)]
    await settle()
    model.let_go(9)
    await asyncio.gather(*jobs)
    assert model.most_at_once == 1


async def test_a_refused_text_fails_its_own_document_only() -> None:
    model = GatedModel(gated=False)
    scheduler = BatchScheduler(model=model)
    bad, good = await asyncio.gather(
        scheduler.embed(["bad", "one", "two", "three", "four"], Purpose.DOCUMENT),
        scheduler.embed(["good"], Purpose.DOCUMENT),
        return_exceptions=True,
    )
    assert isinstance(bad, Rejected)
    assert isinstance(good, np.ndarray)
    # What was left of the failed document is not computed any more.
    assert ("four", "three") not in model.calls
    assert len(model.calls) == 2


async def test_two_refusals_at_once_are_one_failure() -> None:
    model = GatedModel()
    model.limits, model.calls_at_once = BatchLimits(texts=1, size_bytes=100), 2
    job = asyncio.create_task(BatchScheduler(model=model).embed(["bad", "bad"], Purpose.DOCUMENT))
    await settle()
    model.let_go(2)
    with pytest.raises(Rejected):
        await job
    assert len(model.calls) == 2


@pytest.mark.parametrize(("text", "problem"), [("nan", "isn't finite"), ("short", "1 vectors of 384 numbers were due")])
async def test_unusable_vectors_never_reach_the_caller(text: str, problem: str) -> None:
    with pytest.raises(Unavailable, match=problem):
        await BatchScheduler(model=GatedModel(gated=False)).embed([text], Purpose.QUERY)


async def test_cancelling_a_caller_cancels_its_call_and_frees_the_model() -> None:
    model = GatedModel()
    scheduler = BatchScheduler(model=model)
    gone = asyncio.create_task(scheduler.embed([f"gone{number}" for number in range(6)], Purpose.DOCUMENT))
    await settle()
    stays = asyncio.create_task(scheduler.embed(["stays"], Purpose.DOCUMENT))
    await settle()
    gone.cancel()
    await settle()
    assert gone.cancelled()
    assert model.cancelled == 1
    model.let_go()
    await asyncio.wait_for(stays, 5)
    assert model.calls == [("gone0", "gone1"), ("stays",)]


async def test_a_call_that_is_cancelled_before_its_first_step_frees_its_place() -> None:
    model = GatedModel()
    model.limits, model.calls_at_once = BatchLimits(texts=1, size_bytes=100), 2
    scheduler = BatchScheduler(model=model)
    job = asyncio.create_task(scheduler.embed(["ok", "bad", "third"], Purpose.DOCUMENT))
    await settle()
    # Both end in one turn of the loop: the first makes room for "third", the second ends the job.
    model.let_go(2)
    with pytest.raises(Rejected):
        await job
    await settle()
    assert model.calls == [("ok",), ("bad",)]
    more = asyncio.create_task(scheduler.embed(["a", "b"], Purpose.DOCUMENT))
    await settle()
    assert model.calls[2:] == [("a",), ("b",)]
    model.let_go(2)
    await asyncio.wait_for(more, 5)


async def test_progress_counts_up_to_the_end() -> None:
    seen: list[int] = []
    scheduler = BatchScheduler(model=GatedModel(gated=False))
    await scheduler.embed(["a", "b", "c", "d", "e"], Purpose.DOCUMENT, seen.append)
    assert seen == [2, 4, 5]
