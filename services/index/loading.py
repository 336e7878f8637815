"""Reads what a plan needs from packs and turns it into rows and lane changes, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.index.codec import packs as codec
from services.index.domain import build
from services.index.domain.content import Description, RevisionContent
from services.index.domain.documents import Embedded, Plan
from services.index.domain.records import KeywordChange, VectorChange
from services.kernel.errors import Corrupt, Failure, NotFound
from services.kernel.packs import PackStore

_READS = 32
_CHUNKS_STEP = "chunks"
_VECTORS_STEP = "vectors"
_ADVICE = "ingest the document again"


@dataclass(slots=True)
class Loaded:
    """What a plan needs.

    Attributes:
        contents: Content of stored revisions, by document and revision.
        keyword: Replacements in the keyword lane, of the revisions that are shown.
        vector: Replacements in the vector lane, of the same.
        failures: Facts whose packs can't be used, and why.
    """

    contents: dict[tuple[str, int], RevisionContent] = field(default_factory=dict)
    keyword: list[KeywordChange] = field(default_factory=list)
    vector: list[VectorChange] = field(default_factory=list)
    failures: list[tuple[Embedded, Failure]] = field(default_factory=list)


@dataclass(slots=True)
class _Parts:
    fact: Embedded
    shown: bool
    chunks: Mapping[str, bytes]
    vectors: Mapping[str, bytes]


class Loader:
    """Loads revisions."""

    def __init__(self, *, packs: PackStore) -> None:
        self._packs = packs
        self._reads = asyncio.Semaphore(_READS)

    async def load(self, crate_id: str, plan: Plan) -> Loaded:
        """Load a plan's revisions.

        Args:
            crate_id: Crate.
            plan: Its `stored` and `shown` are loaded.

        Returns:
            Rows and changes, and the facts that could not be loaded.

        Raises:
            Unavailable: When the pack store doesn't answer.
        """
        shown = {(fact.document_id, fact.revision, fact.settings_digest) for fact in plan.shown}
        found = await asyncio.gather(
            *(
                self._read(crate_id, fact, shown=(fact.document_id, fact.revision, fact.settings_digest) in shown)
                for fact in plan.stored
            )
        )
        if not found:
            return Loaded()
        return await asyncio.to_thread(_assemble, found)

    async def vectors(self, crate_id: str, fact: Embedded, description: Description) -> VectorChange:
        """Load the vector records of one revision.

        Args:
            crate_id: Crate.
            fact: What made it searchable.
            description: What is told about its original.

        Returns:
            The replacement in the vector lane.

        Raises:
            NotFound: When its pack is gone.
            Corrupt: When its pack isn't what was written.
        """
        async with self._reads:
            parts = await self._packs.read(_prefix(crate_id, fact, _VECTORS_STEP), fact.vectors_pack)
        return await asyncio.to_thread(_vector_change, fact, description, parts)

    async def _read(self, crate_id: str, fact: Embedded, *, shown: bool) -> _Parts | tuple[Embedded, Failure]:
        if not fact.record_count:
            return _Parts(fact, shown, {}, {})
        try:
            async with self._reads:
                chunks = await self._packs.read(_prefix(crate_id, fact, _CHUNKS_STEP), fact.chunks_pack)
                vectors = {}
                if shown:
                    vectors = await self._packs.read(_prefix(crate_id, fact, _VECTORS_STEP), fact.vectors_pack)
        except (NotFound, Corrupt) as error:
            return fact, error
        return _Parts(fact, shown, chunks, vectors)


def _prefix(crate_id: str, fact: Embedded, step: str) -> str:
    return f"{crate_id}/{fact.document_id}/{fact.revision}/{step}"


def _assemble(found: Sequence[_Parts | tuple[Embedded, Failure]]) -> Loaded:
    loaded = Loaded()
    for parts in found:
        if not isinstance(parts, _Parts):
            loaded.failures.append(parts)
            continue
        try:
            _add(loaded, parts)
        except Corrupt as error:
            loaded.failures.append((parts.fact, error))
    return loaded


def _add(loaded: Loaded, parts: _Parts) -> None:
    fact = parts.fact
    key = (fact.document_id, fact.revision)
    if not fact.record_count:
        loaded.contents[key] = RevisionContent(description=Description(), chunks=())
        return
    try:
        description, chunks = codec.description_and_chunks(parts.chunks.get(codec.CHUNKS_PART, b""))
        # A big document shouldn't be in memory twice.
        parts.chunks = {}
    except ValueError as error:
        raise _corrupt(fact, _CHUNKS_STEP, error) from error
    if len(chunks) != fact.record_count:
        raise Corrupt(
            f"{_name(fact)} has {fact.record_count} vectors but its chunks pack holds {len(chunks)} chunks: {_ADVICE}"
        )
    terms: tuple[str, ...] = ()
    if parts.shown:
        vector = _vector_change(fact, description, parts.vectors)
        parts.vectors = {}
        keyword = build.keyword_change(fact, description, chunks)
        loaded.vector.append(vector)
        loaded.keyword.append(keyword)
        terms = tuple(build.distinct_terms(record) for record in keyword.records[:-1])
    loaded.contents[key] = RevisionContent(
        description=description, chunks=tuple(chunk.encoded for chunk in chunks), terms=terms
    )


def _vector_change(fact: Embedded, description: Description, parts: Mapping[str, bytes]) -> VectorChange:
    try:
        rows = codec.vectors(parts, fact)
    except ValueError as error:
        raise _corrupt(fact, _VECTORS_STEP, error) from error
    return build.vector_change(fact, description, rows)


def _corrupt(fact: Embedded, step: str, error: ValueError) -> Corrupt:
    return Corrupt(f"the {step} pack of {_name(fact)} can't be used ({error}): {_ADVICE}")


def _name(fact: Embedded) -> str:
    return f"revision {fact.revision} of document {fact.document_id}"
