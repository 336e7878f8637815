"""Edge 1: DocumentChunked in, PropositionsEvaluated out where the crate's generation is of propositions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from services.kernel.bus import Bus
from services.kernel.envelope import Event
from services.kernel.erasures import erased_since
from services.kernel.errors import Corrupt, Failure, NotFound, Rejected, Unavailable
from services.kernel.owned_packs import append_owner, behind_failures
from services.kernel.progress import Progress, telling
from services.proposition import codec, metrics
from services.proposition.bindings import CrateBindings
from services.proposition.codec import Chunked, Erased, Evaluated
from services.proposition.domain.evaluation import Evaluation, Failed, PackAt, Revision, Source, Status
from services.proposition.domain.providers import Generation
from services.proposition.evaluator import ChunkEvaluator
from services.proposition.ports import Evaluations

EVENTS = ("DocumentChunked", "DocumentErased")
_SERVICE = "proposition"
_EVALUATED = "PropositionsEvaluated"
_log = logging.getLogger("affidavit.proposition")


@dataclass(frozen=True, slots=True)
class _Todo:
    """A chunk that needs calls: the first one with its fingerprint."""

    key: bytes
    ordinal: int
    source: Source


class Evaluating:
    """Evaluates the chunks of one revision after the other.

    Idempotent: a fact that stands in the log is not made again. Every chunk that is evaluated is kept at once, so that
    a crash or a failure costs no more than the calls in flight; failures are never kept.
    """

    def __init__(
        self, *, bus: Bus, evaluations: Evaluations, bindings: CrateBindings, clock: Callable[[], datetime]
    ) -> None:
        self._bus = bus
        self._evaluations = evaluations
        self._bindings = bindings
        self._clock = clock

    async def handle(self, event: Event) -> None:
        """Handle one event; the same event again changes nothing.

        Args:
            event: DocumentChunked or DocumentErased.

        Raises:
            Unavailable: When a chunk's evaluation failed and may succeed later, when the crate has no generation yet,
                or when log or packs don't answer.
            Rejected: When a chunk's evaluation will fail again for sure, or the crate has no provider for it.
            NotFound: When the chunks are gone although the document isn't erased.
            Corrupt: When the chunks aren't what was written.
            Conflict: When another process has just evaluated the same revision.
        """
        fact = codec.fact(event.message)
        if isinstance(fact, Erased):
            for number in range(1, fact.revision + 1):
                await self._evaluations.erase(Revision(event.crate, fact.document_id, number))
            return
        revision = Revision(event.crate, fact.document_id, fact.revision)
        try:
            generation = await self._bindings.generation(event.crate)
            if not generation.needs_evaluation:
                return
            done = await self._evaluate(event, fact, generation)
        except Failure:
            if not await erased_since(self._bus, event):
                raise
            done = False
        if done:
            await self._evaluations.settle(revision)
        else:
            _log.info("document %s was erased before revision %s was evaluated", fact.document_id, fact.revision)
            # Another process may have handled the erasure before our last pack was written.
            await self._evaluations.erase(revision)

    async def _evaluate(self, event: Event, chunked: Chunked, generation: Generation) -> bool:
        """Evaluate a revision; False when its document was erased meanwhile."""
        key = ":".join(
            (
                chunked.document_id,
                str(chunked.revision),
                "evaluated",
                str(generation.number),
                chunked.settings_digest,
            )
        )
        if event.repeated and await self._bus.stands(
            crate=event.crate, aggregate=event.aggregate, name=_EVALUATED, key=key
        ):
            return True
        last = await self._bus.last(crate=event.crate, service=_SERVICE, aggregate=event.aggregate)
        if last is not None and last.key == key:
            return True
        evaluated = Evaluated(chunked=chunked, generation=generation.number)
        if chunked.chunks is not None:
            evaluated = await self._chunks(event, evaluated, chunked.chunks, await self._previous(last))
            # Only now: whoever erases from here on finds our pack.
            if await erased_since(self._bus, event):
                return False
        await self._append(event, evaluated, key, expected=last.position if last else 0)
        return True

    async def _append(self, event: Event, evaluated: Evaluated, key: str, *, expected: int) -> None:
        await append_owner(
            self._bus,
            crate=event.crate,
            aggregate=event.aggregate,
            message=codec.propositions_evaluated(evaluated),
            key=key,
            expected=expected,
            remove=lambda: self._remove(event.crate, evaluated),
        )

    async def _remove(self, crate_id: str, evaluated: Evaluated) -> None:
        at = evaluated.pack
        if at is not None:
            revision = Revision(crate_id, evaluated.chunked.document_id, at.revision)
            await self._evaluations.remove(revision, at.pack_id)

    async def _previous(self, last: Event | None) -> PackAt | None:
        """Where the newest evaluations of the document lie, given the last event of its aggregate: maybe a failure."""
        last = await behind_failures(self._bus, last, _EVALUATED)
        return codec.pack_of(last.message) if last else None

    async def _chunks(self, event: Event, bare: Evaluated, chunks: PackAt, previous: PackAt | None) -> Evaluated:
        chunked = bare.chunked
        revision = Revision(event.crate, chunked.document_id, chunked.revision)
        bound = await self._bindings.bound(event.crate)
        evaluator = ChunkEvaluator(bound=bound, clock=self._clock)
        sources = await self._evaluations.sources(revision, chunks, chunked.chunk_count)
        keys = [evaluator.key(source) for source in sources]
        known = await self._recall(revision, keys, previous)
        reused = sum(key in known for key in keys)
        todo = _todo(keys, sources, known)
        progress = Progress(chunked.document_id, codec.task(chunked), done=reused)

        async def evaluate(chunk: _Todo) -> Evaluation:
            if await erased_since(self._bus, event):
                # Nothing of it is sent any more.
                raise NotFound(f"document {chunked.document_id} was erased meanwhile")
            found = await evaluator.evaluate(chunk.ordinal, chunk.source)
            if found.status is Status.EVALUATED:
                await self._evaluations.keep(revision, found)
            progress.done += 1
            return found

        async with telling(self._bus, event.crate, progress) if todo else contextlib.nullcontext():
            work = _Work(evaluate, revision)
            fresh = await work.all(todo, at_once=bound.model.calls_at_once)
        found = {**known, **fresh}
        evaluations = tuple(found[key].of_chunk(ordinal) for ordinal, key in enumerate(keys))
        pack = await self._evaluations.write(revision, evaluations)
        metrics.chunks.labels("reused").inc(len(keys) - len(todo))
        return replace(
            bare,
            pack=pack,
            evaluations=evaluations,
            # Equal chunks of the same document share one evaluation.
            reused=len(keys) - len(todo),
            calls=evaluator.calls,
        )

    async def _recall(
        self, revision: Revision, keys: Sequence[bytes], previous: PackAt | None
    ) -> Mapping[bytes, Evaluation]:
        """Collect evaluations from the document's newest pack and from an interrupted attempt."""
        known: dict[bytes, Evaluation] = {}
        if previous is not None:
            older = Revision(revision.crate_id, revision.document_id, previous.revision)
            try:
                _remember(known, await self._evaluations.read(older, previous.pack_id))
            except (NotFound, Corrupt) as error:
                # It only costs calls.
                _log.info(
                    "old evaluations of document %s, revision %s, can't be reused (%s)",
                    older.document_id,
                    older.number,
                    type(error).__name__,
                )
        if any(key not in known for key in keys):
            _remember(known, await self._evaluations.kept(revision))
        return known


class _Work:
    """The chunks of one document that need calls, some side by side."""

    def __init__(self, evaluate: Callable[[_Todo], Awaitable[Evaluation]], revision: Revision) -> None:
        self._evaluate = evaluate
        self._revision = revision
        self._found: dict[bytes, Evaluation] = {}
        self._failed: list[tuple[int, Exception]] = []

    async def all(self, todo: Sequence[_Todo], *, at_once: int) -> Mapping[bytes, Evaluation]:
        """Evaluate all; after a failure none is begun, and those in work are finished and kept."""
        waiting = iter(todo)

        async def some() -> None:
            for chunk in waiting:
                if self._failed:
                    return
                await self._one(chunk)

        await asyncio.gather(*(some() for _ in range(min(at_once, len(todo)))))
        if self._failed:
            raise self._failure()
        return self._found

    async def _one(self, chunk: _Todo) -> None:
        try:
            self._found[chunk.key] = await self._evaluate(chunk)
        except Exception as error:  # noqa: BLE001  (raised again once the calls in work are finished)
            self._failed.append((chunk.ordinal, error))

    def _failure(self) -> Exception:
        """What the document fails with: a fault of ours before a failed evaluation, then the first chunk."""
        ordinal, error = min(self._failed, key=lambda failed: (isinstance(failed[1], Failed), failed[0]))
        if not isinstance(error, Failed):
            return error
        kind = Rejected if error.lasting else Unavailable
        return kind(
            f"chunk {ordinal} of revision {self._revision.number} of document {self._revision.document_id} couldn't be "
            f"evaluated ({error.problem.value}: {error.diagnostics}); retry it once the cause is gone, or set "
            "proposition_failure_policy to skip-chunk or embed-source-chunk"
        )


def _todo(keys: Sequence[bytes], sources: Sequence[Source], known: Mapping[bytes, Evaluation]) -> tuple[_Todo, ...]:
    first: dict[bytes, _Todo] = {}
    for ordinal, (key, source) in enumerate(zip(keys, sources, strict=True)):
        if key not in known and key not in first:
            first[key] = _Todo(key, ordinal, source)
    return tuple(first.values())


def _remember(known: dict[bytes, Evaluation], found: Sequence[Evaluation]) -> None:
    for evaluation in found:
        if evaluation.fingerprint and evaluation.status is Status.EVALUATED:
            known[evaluation.fingerprint] = evaluation
