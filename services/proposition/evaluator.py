"""One chunk: a call that writes propositions, another one that grades them, and what a failure makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from services.kernel.errors import ProviderAway, ProviderRefused
from services.proposition import metrics
from services.proposition.bindings import Bound
from services.proposition.domain import prompts, reading
from services.proposition.domain.evaluation import (
    Evaluation,
    Failed,
    Problem,
    Source,
    Status,
    fingerprint,
    source_hash,
    status_of_failure,
)
from services.proposition.domain.grading import Scores, Statement, graded, ungraded
from services.proposition.domain.prompts import Message, Schema
from services.proposition.ports import Completion

# Longer answers are read beside the loop.
_FEW_CHARS = 64 * 1024
_T = TypeVar("_T")


@dataclass(slots=True)
class _Trace:
    """What the provider told of its calls."""

    model_id: str
    generation_request_id: str = ""
    grading_request_id: str = ""


class ChunkEvaluator:
    """Evaluates chunks of one document.

    Attributes:
        calls: Requests for completions so far.
    """

    def __init__(self, *, bound: Bound, clock: Callable[[], datetime]) -> None:
        self._bound = bound
        self._clock = clock
        self.calls = 0

    def key(self, source: Source) -> bytes:
        """What the evaluation of a chunk is reused by."""
        provider = self._bound.provider
        return fingerprint(source, model=provider.model, base_url=provider.base_url, prompt_version=prompts.VERSION)

    async def evaluate(self, ordinal: int, source: Source) -> Evaluation:
        """Evaluate one chunk.

        Args:
            ordinal: Of the chunk.
            source: The chunk.

        Returns:
            What was found out; a failure as the policy makes it.

        Raises:
            Failed: When the policy lets the document fail.
            Rejected: When the provider can't be asked as it is configured.
            Unavailable: When its credential can't be read.
        """
        trace = _Trace(self._bound.provider.model)
        problem, diagnostics, status = None, "", Status.EVALUATED
        try:
            texts = await self._generated(source, trace)
            statements = await self._graded(source, texts, trace)
        except Failed as failed:
            metrics.chunks.labels(failed.problem.value).inc()
            by_policy = status_of_failure(self._bound.policy)
            if by_policy is None:
                raise
            problem, diagnostics, status = failed.problem, failed.diagnostics, by_policy
            statements = failed.statements
        else:
            metrics.chunks.labels("evaluated").inc()
        return Evaluation(
            ordinal=ordinal,
            fingerprint=b"" if problem else self.key(source),
            status=status,
            problem=problem,
            diagnostics=diagnostics,
            statements=statements,
            model_id=trace.model_id,
            prompt_version=prompts.VERSION,
            source_hash=source_hash(source),
            generation_request_id=trace.generation_request_id,
            grading_request_id=trace.grading_request_id,
            evaluated_at=self._clock(),
        )

    async def _generated(self, source: Source, trace: _Trace) -> tuple[str, ...]:
        answer = await self._ask(prompts.generation(source), prompts.PROPOSITIONS)
        trace.generation_request_id = answer.request_id
        trace.model_id = answer.model_id or trace.model_id
        _check_whole(answer, ())
        return await _read(answer, lambda: reading.propositions(answer.text))

    async def _graded(self, source: Source, texts: Sequence[str], trace: _Trace) -> tuple[Statement, ...]:
        read = ungraded(texts)
        try:
            answer = await self._ask(prompts.grading(source, texts), prompts.RATINGS)
            trace.grading_request_id = answer.request_id
            _check_whole(answer, read)
            scores: dict[int, Scores] = await _read(answer, lambda: reading.ratings(answer.text, len(texts)))
        except Failed as failed:
            failed.statements = read
            raise
        statements = graded(texts, scores)
        if not any(statement.accepted for statement in statements):
            raise Failed(
                Problem.NONE_ACCEPTED,
                f"none of {len(statements)} propositions has 8 or more in every score",
                statements,
            )
        return statements

    async def _ask(self, messages: Sequence[Message], schema: Schema) -> Completion:
        self.calls += 1
        try:
            with metrics.call_seconds.labels(schema.name).time():
                return await self._bound.model.complete(messages, schema)
        except (ProviderRefused, ProviderAway) as error:
            failed = Failed(Problem.PROVIDER_ERROR, error.message, lasting=isinstance(error, ProviderRefused))
        raise failed


def _check_whole(answer: Completion, statements: Sequence[Statement]) -> None:
    if answer.truncated:
        raise Failed(
            Problem.TRUNCATED,
            "the answer ended at the limit of output tokens: raise max_output_tokens, or make chunks smaller",
            statements,
        )


async def _read(answer: Completion, read: Callable[[], _T]) -> _T:
    return read() if len(answer.text) <= _FEW_CHARS else await asyncio.to_thread(read)
