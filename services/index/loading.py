"""Reads what a plan needs from packs and turns it into rows and lane changes, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.index.codec import packs as codec
from services.index.domain import build
from services.index.domain.content import ChunkContent, Description, RevisionContent, ShownRevision
from services.index.domain.documents import Embedded, Plan
from services.index.domain.force import Force
from services.index.domain.records import KeywordChange, RevisionKey, VectorChange
from services.index.ports import Tables
from services.kernel.errors import Corrupt, Failure, NotFound
from services.kernel.packs import PackStore

_READS = 32
_CHUNKS_STEP = "chunks"
_VECTORS_STEP = "vectors"
_ADVICE = "ingest the document again"

_Packs = tuple[Mapping[str, bytes], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What the packs of a revision hold.

    Attributes:
        fact: What named the packs.
        description: What is told about the original; empty without chunks.
        chunks: In order.
        vectors: float32[n, d], one per chunk; None without chunks.
    """

    fact: Embedded
    description: Description = field(default_factory=Description)
    chunks: tuple[ChunkContent, ...] = ()
    vectors: NDArray[np.float32] | None = None


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
        packs = await asyncio.gather(*(self._packs_of(crate_id, fact) for fact in plan.stored))
        # All at once: a thread for each would cost more than what it does.
        found = await asyncio.to_thread(_contents, plan.stored, packs) if packs else []
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
        async with self._reads:
            parts = await self._packs.read(_prefix(crate_id, shown.fact, _VECTORS_STEP), shown.fact.vectors_pack)
        return await asyncio.to_thread(_vector_change, shown, parts)

    async def _packs_of(self, crate_id: str, fact: Embedded) -> _Packs | Failure:
        if not fact.record_count:
            return {}, {}
        try:
            async with self._reads:
                chunks = await self._packs.read(_prefix(crate_id, fact, _CHUNKS_STEP), fact.chunks_pack)
                vectors = await self._packs.read(_prefix(crate_id, fact, _VECTORS_STEP), fact.vectors_pack)
        except (NotFound, Corrupt) as error:
            return error
        return chunks, vectors


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
    rows = await tables.chunks_of(crate_id, shown.fact.document_id, shown.fact.revision)
    return await asyncio.to_thread(_keyword_change, shown, rows)


def _keyword_change(shown: ShownRevision, rows: Sequence[bytes]) -> KeywordChange:
    chunks = [codec.chunk_content(row) for row in rows]
    return build.keyword_change(shown.fact, shown.description, chunks, shown.force)


def _prefix(crate_id: str, fact: Embedded, step: str) -> str:
    return f"{crate_id}/{fact.document_id}/{fact.revision}/{step}"


def _contents(
    facts: Sequence[Embedded], packs: Sequence[_Packs | Failure]
) -> list[Content | tuple[Embedded, Failure]]:
    found: list[Content | tuple[Embedded, Failure]] = []
    for fact, held in zip(facts, packs, strict=True):
        if isinstance(held, Failure):
            found.append((fact, held))
            continue
        try:
            found.append(_content(fact, *held))
        except Corrupt as error:
            found.append((fact, error))
    return found


def _content(fact: Embedded, chunks_pack: Mapping[str, bytes], vectors: Mapping[str, bytes]) -> Content:
    if not fact.record_count:
        return Content(fact)
    part = chunks_pack.get(codec.CHUNKS_PART, b"")
    try:
        description, chunks = codec.description_and_chunks(part)
    except ValueError as error:
        raise _corrupt(fact, _CHUNKS_STEP, error) from error
    if len(chunks) != fact.record_count:
        raise Corrupt(
            f"{_name(fact)} has {fact.record_count} vectors but its chunks pack holds {len(chunks)} chunks: {_ADVICE}"
        )
    return Content(fact, description, chunks, _vectors(fact, vectors))


def _assemble(found: Sequence[Content], forces: Mapping[RevisionKey, Force]) -> Loaded:
    loaded = Loaded()
    for each in found:
        fact = each.fact
        key = (fact.document_id, fact.revision)
        if each.vectors is None:
            loaded.contents[key] = RevisionContent(description=each.description, chunks=())
            continue
        keyword = build.keyword_change(fact, each.description, each.chunks, forces[key])
        loaded.keyword.append(keyword)
        loaded.vector.append(build.vector_change(fact, each.description, each.vectors, forces[key]))
        loaded.contents[key] = RevisionContent(
            description=each.description,
            chunks=tuple(chunk.encoded for chunk in each.chunks),
            terms=tuple(build.distinct_terms(record) for record in keyword.records[:-1]),
        )
    return loaded


def _vector_change(shown: ShownRevision, parts: Mapping[str, bytes]) -> VectorChange:
    return build.vector_change(shown.fact, shown.description, _vectors(shown.fact, parts), shown.force)


def _vectors(fact: Embedded, parts: Mapping[str, bytes]) -> NDArray[np.float32]:
    try:
        return codec.vectors(parts, fact)
    except ValueError as error:
        raise _corrupt(fact, _VECTORS_STEP, error) from error


def _corrupt(fact: Embedded, step: str, error: ValueError) -> Corrupt:
    return Corrupt(f"the {step} pack of {_name(fact)} can't be used ({error}): {_ADVICE}")


def _name(fact: Embedded) -> str:
    return f"revision {fact.revision} of document {fact.document_id}"
