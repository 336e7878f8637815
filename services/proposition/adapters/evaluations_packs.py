"""Chunks and evaluations in the kernel's pack store."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from services.kernel.errors import Corrupt, NotFound
from services.kernel.packs import PackStore
from services.proposition import codec
from services.proposition.domain.evaluation import Evaluation, PackAt, Revision, Source

CHUNKS = "chunks"
EVALUATIONS = "propositions"
# Chunks of a document that isn't finished: a step of their own, so that they go without the finished ones.
PARTIAL = "propositions-partial"
_log = logging.getLogger("affidavit.proposition")


class PackEvaluations:
    """See ports.Evaluations."""

    def __init__(self, *, packs: PackStore) -> None:
        self._packs = packs

    async def sources(self, revision: Revision, chunks: PackAt, count: int) -> tuple[Source, ...]:
        """See Evaluations."""
        parts = await self._packs.read(_prefix(revision, CHUNKS), chunks.pack_id)
        try:
            return codec.sources(parts, count)
        except ValueError as error:
            raise Corrupt(
                f"the chunks of revision {revision.number} of document {revision.document_id} can't be used: {error}; "
                "ingest the document again"
            ) from error

    async def write(self, revision: Revision, evaluations: Sequence[Evaluation]) -> PackAt:
        """See Evaluations."""
        ref = await self._packs.write(_prefix(revision, EVALUATIONS), codec.evaluation_parts(evaluations))
        return PackAt(revision.number, ref.id, ref.size_bytes)

    async def read(self, revision: Revision, pack_id: bytes) -> tuple[Evaluation, ...]:
        """See Evaluations."""
        return await self._read(revision, EVALUATIONS, pack_id)

    async def keep(self, revision: Revision, evaluation: Evaluation) -> None:
        """See Evaluations."""
        await self._packs.write(_prefix(revision, PARTIAL), codec.evaluation_parts([evaluation]))

    async def kept(self, revision: Revision) -> tuple[Evaluation, ...]:
        """See Evaluations."""
        found: list[Evaluation] = []
        for pack_id in await self._packs.ids(_prefix(revision, PARTIAL)):
            try:
                found += await self._read(revision, PARTIAL, pack_id)
            except (NotFound, Corrupt) as error:
                _log.info("kept evaluations of %s can't be reused (%s)", revision.document_id, type(error).__name__)
        return tuple(found)

    async def settle(self, revision: Revision) -> None:
        """See Evaluations."""
        await self._packs.erase(_prefix(revision, PARTIAL))

    async def remove(self, revision: Revision, pack_id: bytes) -> None:
        """See Evaluations."""
        await self._packs.remove(_prefix(revision, EVALUATIONS), pack_id)

    async def erase(self, revision: Revision) -> None:
        """See Evaluations."""
        for step in (EVALUATIONS, PARTIAL):
            await self._packs.erase(_prefix(revision, step))

    async def _read(self, revision: Revision, step: str, pack_id: bytes) -> tuple[Evaluation, ...]:
        parts = await self._packs.read(_prefix(revision, step), pack_id)
        try:
            return codec.evaluations(parts)
        except ValueError as error:
            raise Corrupt(
                f"the evaluations of revision {revision.number} of document {revision.document_id} can't be read: "
                f"{error}; ingest the document again"
            ) from error


def _prefix(revision: Revision, step: str) -> str:
    return f"{revision.crate_id}/{revision.document_id}/{revision.number}/{step}"
