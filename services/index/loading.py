"""Reads what a plan needs from packs and turns it into rows and lane changes, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.index.codec import packs as codec
from services.index.domain import build
from services.index.domain.content import Description, RevisionContent, ShownRevision
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


@dataclass(slots=True)
class Loaded:
    """What a plan needs.

    Attributes:
        contents: Content of stored revisions, by document and revision.
        keyword: Replacements in the keyword lane, of revisions with chunks.
        vector: Replacements in the vector lane, of the same.
        failures: Facts whose packs can't be used, and why.
    """

    contents: dict[RevisionKey, RevisionContent] = field(default_factory=dict)
    keyword: list[KeywordChange] = field(default_factory=list)
    vector: list[VectorChange] = field(default_factory=list)
    failures: list[tuple[Embedded, Failure]] = field(default_factory=list)


@dataclass(slots=True)
class _Parts:
    fact: Embedded
    force: Force
    chunks: Mapping[str, bytes]
    vectors: Mapping[str, bytes]


class Loader:
    """Loads revisions."""

    def __init__(self, *, packs: PackStore) -> None:
        self._packs = packs
        self._reads = asyncio.Semaphore(_READS)

    async def load(self, crate_id: str, plan: Plan, forces: Mapping[RevisionKey, Force]) -> Loaded:
        """Load a plan's revisions.

        Args:
            crate_id: Crate.
            plan: Its `stored` are loaded.
            forces: When each of these counts.

        Returns:
            Rows and changes, and the facts that could not be loaded.

        Raises:
            Unavailable: When the pack store doesn't answer.
        """
        found = await asyncio.gather(
            *(self._read(crate_id, fact, forces[fact.document_id, fact.revision]) for fact in plan.stored)
        )
        if not found:
            return Loaded()
        return await asyncio.to_thread(_assemble, found)

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

    async def _read(self, crate_id: str, fact: Embedded, force: Force) -> _Parts | tuple[Embedded, Failure]:
        if not fact.record_count:
            return _Parts(fact, force, {}, {})
        try:
            async with self._reads:
                chunks = await self._packs.read(_prefix(crate_id, fact, _CHUNKS_STEP), fact.chunks_pack)
                vectors = await self._packs.read(_prefix(crate_id, fact, _VECTORS_STEP), fact.vectors_pack)
        except (NotFound, Corrupt) as error:
            return fact, error
        return _Parts(fact, force, chunks, vectors)


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
    vector = _vector_change(ShownRevision(fact=fact, description=description, force=parts.force), parts.vectors)
    parts.vectors = {}
    keyword = build.keyword_change(fact, description, chunks, parts.force)
    loaded.vector.append(vector)
    loaded.keyword.append(keyword)
    loaded.contents[key] = RevisionContent(
        description=description,
        chunks=tuple(chunk.encoded for chunk in chunks),
        terms=tuple(build.distinct_terms(record) for record in keyword.records[:-1]),
    )


def _vector_change(shown: ShownRevision, parts: Mapping[str, bytes]) -> VectorChange:
    try:
        rows = codec.vectors(parts, shown.fact)
    except ValueError as error:
        raise _corrupt(shown.fact, _VECTORS_STEP, error) from error
    return build.vector_change(shown.fact, shown.description, rows, shown.force)


def _corrupt(fact: Embedded, step: str, error: ValueError) -> Corrupt:
    return Corrupt(f"the {step} pack of {_name(fact)} can't be used ({error}): {_ADVICE}")


def _name(fact: Embedded) -> str:
    return f"revision {fact.revision} of document {fact.document_id}"
