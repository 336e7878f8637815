"""Edge 1: DocumentChunked or PropositionsEvaluated in, RecordsEmbedded out; DocumentErased deletes what is held here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from services.embedder import codec, metrics
from services.embedder.codec import Chunked, Embedded, Erased
from services.embedder.domain.models import Purpose
from services.embedder.domain.reuse import PackAt, VectorSet, assemble, earlier_sets, missing
from services.embedder.domain.texts import EmbeddedText, embedded_texts, statement_texts, text_key
from services.embedder.domain.vectors import Vectors
from services.embedder.models import BoundModel, CrateModels
from services.embedder.ports import EmbeddingModel, VectorCache
from services.embedder.scheduler import BatchScheduler
from services.kernel.bus import Bus
from services.kernel.envelope import Event
from services.kernel.erasures import erased_since
from services.kernel.errors import Corrupt, Failure, NotFound
from services.kernel.owned_packs import append_owner, behind_failures
from services.kernel.packs import PackStore
from services.kernel.progress import Progress, telling

EVENTS = ("DocumentChunked", "PropositionsEvaluated", "DocumentErased")
VECTORS = "vectors"
# Packs of a long document that isn't finished: a step of their own, so that they go without the finished one.
PARTIAL = "vectors-partial"
CHUNKS = "chunks"
PROPOSITIONS = "propositions"
_FEW_ROWS = 64
_FEW_BYTES = 4_096
_log = logging.getLogger("affidavit.embedder")
_T = TypeVar("_T")


@dataclass(slots=True)
class _Known:
    """Vectors that need no computing.

    Attributes:
        dimension: Length of a vector.
        vectors: float32[d] by text key.
        keys_by_pack: Text keys of the packs that were read; None for one that is gone or damaged.
    """

    dimension: int
    vectors: dict[bytes, Vectors]
    keys_by_pack: dict[bytes, frozenset[bytes] | None]

    def spent(self, keys: frozenset[bytes]) -> set[bytes]:
        """Packs that hold nothing beyond `keys`, or nothing at all any more."""
        return {pack for pack, held in self.keys_by_pack.items() if held is None or held <= keys}


class DocumentEmbedder:
    """Embeds the chunks of one revision after the other.

    Idempotent: a fact that stands in the log is not made again, and a crash in between leaves at most packs without an
    event, which erasing the document deletes with the others.
    """

    def __init__(
        self,
        *,
        bus: Bus,
        packs: PackStore,
        models: CrateModels,
        cache: VectorCache | None,
        partial_texts: int,
    ) -> None:
        self._bus = bus
        self._packs = packs
        self._models = models
        self._cache = cache
        self._partial_texts = partial_texts

    async def handle(self, event: Event) -> None:
        """Handle one event.

        Args:
            event: A DocumentChunked, a PropositionsEvaluated or a DocumentErased.

        Raises:
            Unavailable: When the crate has no generation yet, or model, log or packs don't answer.
            Rejected: When the model will never take these chunks.
            NotFound: When the chunks are gone although the document isn't erased.
            Corrupt: When the chunks aren't what was written.
            Conflict: When another process has just embedded the same revision.
        """
        fact = codec.fact(event.message)
        if isinstance(fact, Erased):
            await self._erase(event.crate, fact)
            return
        try:
            done = await self._embed(event, fact)
        except Failure:
            if not await erased_since(self._bus, event):
                raise
            done = False
        if done and fact.chunk_count + fact.accepted_count > self._partial_texts:
            await self._packs.erase(_prefix(event.crate, fact.document_id, fact.revision, PARTIAL))
        if not done:
            _log.info("document %s was erased before revision %s was embedded", fact.document_id, fact.revision)
            # Another process may have handled the erasure before our last pack was written.
            await self._erase_revision(event.crate, fact.document_id, fact.revision)

    async def _erase(self, crate_id: str, erased: Erased) -> None:
        for revision in range(1, erased.revision + 1):
            await self._erase_revision(crate_id, erased.document_id, revision)

    async def _erase_revision(self, crate_id: str, document_id: str, revision: int) -> None:
        for step in (VECTORS, PARTIAL):
            await self._packs.erase(_prefix(crate_id, document_id, revision, step))

    async def _embed(self, event: Event, chunked: Chunked) -> bool:
        """Embed a revision; False when its document was erased meanwhile."""
        # Before the model is asked for: what stands needs none, whatever the crate's has become.
        if event.repeated and await self._stands(event, chunked):
            return True
        bound = await self._models.bound(event.crate)
        if chunked.evaluated_for != (bound.generation.number if bound.generation.has_propositions else 0):
            # Chunks whose propositions are still to come, or propositions that this generation has no records of.
            return True
        key = ":".join(
            (
                chunked.document_id,
                str(chunked.revision),
                "embedded",
                str(bound.generation.number),
                chunked.settings_digest,
            )
        )
        last = await self._bus.last(crate=event.crate, service="embedder", aggregate=event.aggregate)
        if last is not None and last.key == key:
            return True
        previous, earlier = await self._history(last)
        embedded = Embedded(
            chunked=chunked, generation=bound.generation.number, earlier=earlier_sets(previous, earlier, set())
        )
        if chunked.chunks is not None:
            embedded = await self._vectors(event.crate, embedded, chunked.chunks, bound)
            # Only now: whoever erases from here on finds our pack.
            if await erased_since(self._bus, event):
                return False
        await self._append(event, embedded, key, expected=last.position if last else 0)
        return True

    async def _append(self, event: Event, embedded: Embedded, key: str, *, expected: int) -> None:
        await append_owner(
            self._bus,
            crate=event.crate,
            aggregate=event.aggregate,
            message=codec.records_embedded(embedded),
            key=key,
            expected=expected,
            remove=lambda: self._remove(event.crate, embedded),
        )

    async def _remove(self, crate_id: str, embedded: Embedded) -> None:
        at = embedded.vectors
        if at is not None:
            prefix = _prefix(crate_id, embedded.chunked.document_id, at.revision, VECTORS)
            await self._packs.remove(prefix, at.pack_id)

    async def _stands(self, event: Event, chunked: Chunked) -> bool:
        facts = self._bus.facts(
            crate=event.crate, service="embedder", aggregate=event.aggregate, name="RecordsEmbedded"
        )
        async for fact in facts:
            if codec.embeds(fact.message, chunked):
                return True
        return False

    async def _history(self, last: Event | None) -> tuple[PackAt | None, tuple[PackAt, ...]]:
        """Where older vectors of the document lie, given the last event of its aggregate, which may be a failure."""
        last = await behind_failures(self._bus, last, "RecordsEmbedded")
        return codec.history(last.message) if last else (None, ())

    async def _vectors(self, crate_id: str, bare: Embedded, chunks: PackAt, bound: BoundModel) -> Embedded:
        model = bound.scheduler.model
        chunked = bare.chunked
        texts, keys = await self._texts(crate_id, chunked, chunks, model)
        known = await self._recall(crate_id, bare, keys, model)
        todo = missing(keys, known.vectors)
        progress = Progress(chunked.document_id, codec.task(chunked), done=len(keys) - len(todo))
        told = len(todo) > _FEW_ROWS
        async with telling(self._bus, crate_id, progress) if told else contextlib.nullcontext():
            wanted = [(keys[row], texts[row].text) for row in todo]
            await self._compute(crate_id, chunked, bound.scheduler, wanted, known=known, progress=progress)

        def lay_out() -> dict[str, bytes]:
            vectors = assemble(keys, known.vectors, model.dimension)
            return codec.vector_parts(VectorSet(model.model_id, keys, vectors))

        prefix = _prefix(crate_id, chunked.document_id, chunked.revision, VECTORS)
        ref = await self._packs.write(prefix, await _apart(lay_out, small=len(keys) <= _FEW_ROWS))
        metrics.texts.labels("computed").inc(len(todo))
        metrics.texts.labels("reused").inc(len(keys) - len(todo))
        return replace(
            bare,
            vectors=PackAt(chunked.revision, ref.id, ref.size_bytes),
            model_id=model.model_id,
            dimension=model.dimension,
            windowed=sum(text.windowed for text in texts),
            computed=len(todo),
            earlier=earlier_sets(None, bare.earlier, known.spent(frozenset(keys))),
        )

    async def _texts(
        self, crate_id: str, chunked: Chunked, chunks: PackAt, model: EmbeddingModel
    ) -> tuple[tuple[EmbeddedText, ...], tuple[bytes, ...]]:
        prefix = _prefix(crate_id, chunked.document_id, chunked.revision, CHUNKS)
        parts = await self._packs.read(prefix, chunks.pack_id)
        evaluated: Mapping[str, bytes] = {}
        if chunked.evaluations is not None:
            prefix = _prefix(crate_id, chunked.document_id, chunked.revision, PROPOSITIONS)
            evaluated = await self._packs.read(prefix, chunked.evaluations.pack_id)

        def prepare() -> tuple[tuple[EmbeddedText, ...], tuple[bytes, ...]]:
            title, found = codec.chunk_texts(parts)
            if len(found) != chunked.chunk_count:
                raise ValueError(f"{chunked.chunk_count} chunks were announced, {len(found)} are there")
            statements = codec.accepted_texts(evaluated) if evaluated else ()
            if len(statements) != chunked.accepted_count:
                raise ValueError(f"{chunked.accepted_count} propositions were announced, {len(statements)} are there")
            texts = embedded_texts(title, found, model.fits) + statement_texts(statements, model.fits)
            return texts, tuple(text_key(model.model_id, text.text) for text in texts)

        try:
            return await _apart(prepare, small=sum(map(len, (*parts.values(), *evaluated.values()))) <= _FEW_BYTES)
        except ValueError as error:
            raise Corrupt(
                f"the chunks of revision {chunked.revision} of document {chunked.document_id} can't be used: {error}; "
                "ingest the document again"
            ) from error

    async def _recall(self, crate_id: str, bare: Embedded, keys: Sequence[bytes], model: EmbeddingModel) -> _Known:
        """Collect vectors from earlier revisions, from an interrupted attempt, and from the cache."""
        known = _Known(model.dimension, {}, {})
        chunked = bare.chunked
        for at in bare.earlier:
            if not missing(keys, known.vectors):
                break
            await self._read(crate_id, chunked.document_id, at, VECTORS, known)
        if len(missing(keys, known.vectors)) > self._partial_texts:
            prefix = _prefix(crate_id, chunked.document_id, chunked.revision, PARTIAL)
            for pack_id in await self._packs.ids(prefix):
                await self._read(crate_id, chunked.document_id, PackAt(chunked.revision, pack_id, 0), PARTIAL, known)
        todo = missing(keys, known.vectors)
        if self._cache and todo:
            known.vectors |= await self._cache.get(model.fingerprint, [keys[row] for row in todo])
        return known

    async def _read(self, crate_id: str, document_id: str, at: PackAt, step: str, known: _Known) -> None:
        """Read one old pack; one that is gone or damaged only costs computing again."""
        known.keys_by_pack[at.pack_id] = None
        try:
            parts = await self._packs.read(_prefix(crate_id, document_id, at.revision, step), at.pack_id)
            found = codec.vector_set(parts, dimension=known.dimension)
        except (NotFound, Corrupt, ValueError) as error:
            _log.info(
                "old vectors of document %s, revision %s, can't be reused (%s)",
                document_id,
                at.revision,
                type(error).__name__,
            )
            return
        known.keys_by_pack[at.pack_id] = frozenset(found.keys)
        known.vectors |= dict(zip(found.keys, found.vectors, strict=True))

    async def _compute(
        self,
        crate_id: str,
        chunked: Chunked,
        scheduler: BatchScheduler,
        todo: Sequence[tuple[bytes, str]],
        *,
        known: _Known,
        progress: Progress,
    ) -> None:
        """Compute vectors part by part; each part but the last is kept at once, so that a crash loses little."""
        model = scheduler.model
        before = progress.done
        for start in range(0, len(todo), self._partial_texts):
            part = todo[start : start + self._partial_texts]

            def advance(texts: int, start: int = start) -> None:
                progress.done = before + start + texts

            rows = await scheduler.embed([text for _, text in part], Purpose.DOCUMENT, advance)
            fresh: Mapping[bytes, Vectors] = dict(zip((key for key, _ in part), rows, strict=True))
            known.vectors |= fresh
            if self._cache:
                await self._cache.put(model.fingerprint, fresh)
            if start + len(part) < len(todo):
                prefix = _prefix(crate_id, chunked.document_id, chunked.revision, PARTIAL)
                kept = VectorSet(model.model_id, tuple(fresh), rows)
                await self._packs.write(prefix, codec.vector_parts(kept))


async def _apart(work: Callable[[], _T], *, small: bool) -> _T:
    """Run work beside the loop, unless it is done faster than a thread takes over."""
    return work() if small else await asyncio.to_thread(work)


def _prefix(crate_id: str, document_id: str, revision: int, step: str) -> str:
    return f"{crate_id}/{document_id}/{revision}/{step}"
