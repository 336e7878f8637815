"""Reads what a plan needs from packs and turns it into rows and lane changes, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.index.codec import packs as codec
from services.index.domain import build
from services.index.domain.content import ChunkContent, Description, Evaluated, RevisionContent, ShownRevision
from services.index.domain.documents import Embedded, Plan
from services.index.domain.force import Force
from services.index.domain.records import KeywordChange, RevisionKey, VectorChange
from services.index.ports import Tables
from services.kernel.errors import Corrupt, Failure, NotFound
from services.kernel.packs import PackStore

_READS = 32
_CHUNKS_STEP = "chunks"
_VECTORS_STEP = "vectors"
_PROPOSITIONS_STEP = "propositions"
_ADVICE = "ingest the document again"


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What the packs of a revision hold.

    Attributes:
        fact: What named the packs.
        description: What is told about the original; empty without chunks.
        chunks: In order.
        vectors: float32[n, d], one per chunk, then one per proposition; None without chunks.
        evaluated: What stands for the chunks; None: they do.
    """

    fact: Embedded
    description: Description = field(default_factory=Description)
    chunks: tuple[ChunkContent, ...] = ()
    vectors: NDArray[np.float32] | None = None
    evaluated: Evaluated | None = None


@dataclass(frozen=True, slots=True)
class _Packed:
    """A revision with chunks, its packs as they were read."""

    fact: Embedded
    chunks: Mapping[str, bytes]
    vectors: Mapping[str, bytes]
    evaluations: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Loaded:
    """What rows and lanes get of revisions that were read.

    Attributes:
        contents: Content of stored revisions, by document and revision.
        keyword: Replacements in the keyword lane, of revisions with chunks.
        vector: Replacements in the vector lane, of the same.
    """

    contents: dict[RevisionKey, RevisionContent] = field(default_factory=dict)
    keyword: list[KeywordChange] = field(default_factory=list)
    vector: list[VectorChange] = field(default_factory=list)


class Loader:
    """Loads revisions."""

    def __init__(self, *, packs: PackStore) -> None:
        self._packs = packs
        self._reads = asyncio.Semaphore(_READS)

    async def read(self, crate_id: str, plan: Plan) -> tuple[tuple[Content, ...], tuple[tuple[Embedded, Failure], ...]]:
        """Read the packs of a plan's stored revisions.

        Args:
            crate_id: Crate.
            plan: Its `stored` are read.

        Returns:
            Their content, and the facts whose packs can't be used with the reason.

        Raises:
            Unavailable: When the pack store doesn't answer.
        """
        packed = await asyncio.gather(*(self._read(crate_id, fact) for fact in plan.stored))
        # One thread takes all apart: to hand over each of many small packs costs more than that.
        found = await asyncio.to_thread(lambda: [_taken_apart(each) for each in packed]) if packed else []
        return (
            tuple(each for each in found if isinstance(each, Content)),
            tuple(each for each in found if not isinstance(each, Content)),
        )

    async def vectors(self, crate_id: str, shown: ShownRevision) -> VectorChange:
        """Load the vector records of one revision.

        Args:
            crate_id: Crate.
            shown: What the rows know about it.

        Returns:
            The replacement in the vector lane.

        Raises:
            NotFound: When its pack is gone.
            Corrupt: When its pack isn't what was written.
        """
        fact = shown.fact
        async with self._reads:
            parts = await self._packs.read(_prefix(crate_id, fact, _VECTORS_STEP), fact.vectors_pack)
            evaluations = await self._evaluations(crate_id, fact)
        return await asyncio.to_thread(_vector_change, shown, parts, evaluations)

    async def _evaluations(self, crate_id: str, fact: Embedded) -> Mapping[str, bytes]:
        if not fact.evaluations_pack:
            return {}
        return await self._packs.read(_prefix(crate_id, fact, _PROPOSITIONS_STEP), fact.evaluations_pack)

    async def _read(self, crate_id: str, fact: Embedded) -> _Packed | tuple[Embedded, Failure]:
        if not fact.chunk_count:
            return _Packed(fact, {}, {})
        try:
            async with self._reads:
                chunks = await self._packs.read(_prefix(crate_id, fact, _CHUNKS_STEP), fact.chunks_pack)
                vectors = await self._packs.read(_prefix(crate_id, fact, _VECTORS_STEP), fact.vectors_pack)
                evaluations = await self._evaluations(crate_id, fact)
        except (NotFound, Corrupt) as error:
            return fact, error
        return _Packed(fact, chunks, vectors, evaluations)


async def assemble(found: Sequence[Content], forces: Mapping[RevisionKey, Force]) -> Loaded:
    """Make rows and lane changes of what was read, off the event loop.

    Args:
        found: Content of revisions.
        forces: When each of them counts.

    Returns:
        What to write.
    """
    return await asyncio.to_thread(_assemble, found, forces) if found else Loaded()


async def keyword_records(tables: Tables, crate_id: str, shown: ShownRevision) -> KeywordChange:
    """Build the keyword records of a stored revision from its rows.

    Args:
        tables: Where its chunks are.
        crate_id: Crate.
        shown: The revision, with chunks.

    Returns:
        The replacement in the keyword lane.

    Raises:
        Unavailable: When the tables don't answer.
    """
    fact = shown.fact
    rows = await tables.chunks_of(crate_id, fact.document_id, fact.revision)
    evaluated = await tables.evaluated(crate_id, fact.document_id, fact.revision) if fact.evaluations_pack else None
    return await asyncio.to_thread(_keyword_change, shown, rows, evaluated)


def _keyword_change(shown: ShownRevision, rows: Sequence[bytes], evaluated: Evaluated | None) -> KeywordChange:
    chunks = [codec.chunk_content(row) for row in rows]
    return build.keyword_records(shown.fact, shown.description, chunks, shown.force).change(evaluated)


def _prefix(crate_id: str, fact: Embedded, step: str) -> str:
    return f"{crate_id}/{fact.document_id}/{fact.revision}/{step}"


def _taken_apart(read: _Packed | tuple[Embedded, Failure]) -> Content | tuple[Embedded, Failure]:
    if not isinstance(read, _Packed):
        return read
    try:
        return _content(read) if read.fact.chunk_count else Content(read.fact)
    except Corrupt as error:
        return read.fact, error


def _content(read: _Packed) -> Content:
    fact = read.fact
    try:
        description, chunks = codec.description_and_chunks(read.chunks.get(codec.CHUNKS_PART, b""))
    except ValueError as error:
        raise _corrupt(fact, _CHUNKS_STEP, error) from error
    if len(chunks) != fact.chunk_count:
        raise Corrupt(
            f"{_name(fact)} has {fact.chunk_count} vectors but its chunks pack holds {len(chunks)} chunks: {_ADVICE}"
        )
    return Content(fact, description, chunks, _vectors(fact, read.vectors), _evaluated(fact, read.evaluations))


def _assemble(found: Sequence[Content], forces: Mapping[RevisionKey, Force]) -> Loaded:
    loaded = Loaded()
    for each in found:
        fact = each.fact
        key = (fact.document_id, fact.revision)
        if each.vectors is None:
            loaded.contents[key] = RevisionContent(description=each.description, chunks=())
            continue
        records = build.keyword_records(fact, each.description, each.chunks, forces[key])
        loaded.keyword.append(records.change(each.evaluated))
        loaded.vector.append(build.vector_change(fact, each.description, each.vectors, forces[key], each.evaluated))
        loaded.contents[key] = RevisionContent(
            description=each.description,
            chunks=tuple(chunk.encoded for chunk in each.chunks),
            terms=tuple(build.distinct_terms(record) for record in records.chunks),
            evaluated=each.evaluated,
        )
    return loaded


def _vector_change(shown: ShownRevision, parts: Mapping[str, bytes], evaluations: Mapping[str, bytes]) -> VectorChange:
    fact = shown.fact
    evaluated = _evaluated(fact, evaluations)
    return build.vector_change(fact, shown.description, _vectors(fact, parts), shown.force, evaluated)


def _evaluated(fact: Embedded, parts: Mapping[str, bytes]) -> Evaluated | None:
    if not fact.evaluations_pack:
        return None
    try:
        return codec.evaluated(parts, fact)
    except ValueError as error:
        raise _corrupt(fact, _PROPOSITIONS_STEP, error) from error


def _vectors(fact: Embedded, parts: Mapping[str, bytes]) -> NDArray[np.float32]:
    try:
        return codec.vectors(parts, fact)
    except ValueError as error:
        raise _corrupt(fact, _VECTORS_STEP, error) from error


def _corrupt(fact: Embedded, step: str, error: ValueError) -> Corrupt:
    return Corrupt(f"the {step} pack of {_name(fact)} can't be used ({error}): {_ADVICE}")


def _name(fact: Embedded) -> str:
    return f"revision {fact.revision} of document {fact.document_id}"
