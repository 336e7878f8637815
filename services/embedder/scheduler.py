"""Shares one model among documents and questions: small batches, in turn, questions first."""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from services.embedder import metrics
from services.embedder.domain.batches import batch_end
from services.embedder.domain.models import Purpose
from services.embedder.domain.vectors import Vectors, unit_rows
from services.embedder.ports import EmbeddingModel
from services.kernel.errors import Unavailable

# Called with the number of texts that are done.
Progress = Callable[[int], None]


class _Job:
    """Texts of one caller."""

    def __init__(self, *, texts: Sequence[str], purpose: Purpose, dimension: int, progress: Progress | None) -> None:
        self.purpose = purpose
        # Texts of like length share a batch; a stable order keeps equal requests equal.
        self.order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        self.texts = [texts[index] for index in self.order]
        self.sizes = [len(text.encode()) for text in self.texts]
        self.rows = np.empty((len(texts), dimension), dtype=np.float32)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.calls: set[asyncio.Task[None]] = set()
        self.next = 0
        self._left = len(texts)
        self._progress = progress

    @property
    def waiting(self) -> int:
        """Texts that weren't given to the model yet."""
        return len(self.texts) - self.next

    def store(self, start: int, vectors: Vectors) -> None:
        """Take one batch's vectors."""
        self.rows[self.order[start : start + len(vectors)]] = vectors
        self._left -= len(vectors)
        if self._progress:
            self._progress(len(self.texts) - self._left)
        if not self._left and not self.done.done():
            self.done.set_result(None)

    def fail(self, error: Exception) -> None:
        """End the job with an error; the caller gets the first one."""
        if not self.done.done():
            self.done.set_exception(error)


class BatchScheduler:
    """Feeds a model batch by batch, one batch per document in turn.

    However long a document is, another one or a question waits for the batches in work, not for the document.
    Questions have a call of their own, so they don't even wait for those.

    Attributes:
        model: What it feeds.
    """

    def __init__(self, *, model: EmbeddingModel) -> None:
        self.model = model
        self._documents: deque[_Job] = deque()
        self._questions: deque[_Job] = deque()
        self._running_documents = 0
        self._running = 0

    async def embed(self, texts: Sequence[str], purpose: Purpose, progress: Progress | None = None) -> Vectors:
        """Embed texts of one caller. Cancelling the call takes what is left of it out of the queue.

        Args:
            texts: Any number.
            purpose: What they are; questions go first.
            progress: Called after each batch.

        Returns:
            float32[n, d], finite, rows of unit length, in the order of `texts`.

        Raises:
            Rejected: When the model will never take one of the texts.
            Unavailable: When the model doesn't answer, or answers with something that is no vector.
        """
        job = _Job(texts=texts, purpose=purpose, dimension=self.model.dimension, progress=progress)
        if not texts:
            return job.rows
        self._waiting(len(texts))
        (self._questions if purpose is Purpose.QUERY else self._documents).append(job)
        self._fill()
        try:
            await job.done
        finally:
            self._drop(job)
        return job.rows

    def _drop(self, job: _Job) -> None:
        """Give up what is left of a job that failed or whose caller went away; nothing when it is done."""
        self._waiting(-job.waiting)
        job.next = len(job.texts)
        for call in job.calls:
            call.cancel()

    def _fill(self) -> None:
        """Start as many batches as the model may work on at once."""
        while job := self._next_job():
            start = job.next
            job.next = batch_end(job.sizes, start, self.model.limits)
            self._waiting(start - job.next)
            if job.waiting:
                (self._questions if job.purpose is Purpose.QUERY else self._documents).append(job)
            call = asyncio.create_task(self._call(job, start, job.next))
            job.calls.add(call)
            # In a callback, since a task that is cancelled before its first step never runs a line of its own.
            call.add_done_callback(functools.partial(self._finished, job))

    def _next_job(self) -> _Job | None:
        # One more than the documents' calls at most: the place that questions don't have to wait for.
        if self._running <= self.model.calls_at_once:
            for queue, free in (
                (self._questions, True),
                (self._documents, self._running_documents < self.model.calls_at_once),
            ):
                while free and queue:
                    job = queue.popleft()
                    if job.waiting:
                        self._running += 1
                        self._running_documents += job.purpose is Purpose.DOCUMENT
                        return job
        return None

    async def _call(self, job: _Job, start: int, end: int) -> None:
        started = time.perf_counter()
        try:
            raw = await self.model.embed(job.texts[start:end], job.purpose)
            job.store(start, unit_rows(raw, count=end - start, dimension=self.model.dimension))
        except ValueError as error:
            job.fail(Unavailable(f"model {self.model.model_id} gave no usable vectors: {error}"))
        except Exception as error:  # noqa: BLE001  (handed to the caller of this job; the others go on)
            job.fail(error)
        metrics.batch_seconds.labels(self.model.model_id, job.purpose.value).observe(time.perf_counter() - started)
        metrics.batch_texts.labels(self.model.model_id).observe(end - start)

    def _finished(self, job: _Job, call: asyncio.Task[None]) -> None:
        job.calls.discard(call)
        self._running -= 1
        self._running_documents -= job.purpose is Purpose.DOCUMENT
        if call.cancelled():
            job.done.cancel()
        self._fill()

    def _waiting(self, change: int) -> None:
        metrics.waiting_texts.labels(self.model.model_id).inc(change)
