"""What the lanes of a crate's generations get from a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.index.domain.content import ShownRevision
from services.index.domain.documents import Plan
from services.index.domain.generations import Generation, GenerationStatus
from services.index.domain.records import EVERY_REVISION, ForceChange, KeywordChange, VectorChange
from services.index.loading import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChanges:
    """What one generation's lanes get.

    Attributes:
        crate_id: Crate.
        generation: Whose lanes.
        keyword: For the keyword lane, in order.
        vector: For the vector lane, in order.
    """

    crate_id: str
    generation: Generation
    keyword: tuple[KeywordChange, ...]
    vector: tuple[VectorChange | ForceChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A revision that counts at other times than before, but has the same content.

    Attributes:
        shown: The revision with its new force.
        keyword: Its records for the keyword lane, which can't change them in place; None without chunks.
    """

    shown: ShownRevision
    keyword: KeywordChange | None


def lane_changes(
    crate_id: str, generations: Sequence[Generation], made: Plan, loaded: Loaded, moved: Sequence[Moved]
) -> Iterator[LaneChanges]:
    """Bring a batch into the form that lanes take.

    Args:
        crate_id: Crate.
        generations: Its generations.
        made: Net effect of the batch.
        loaded: Content of the plan's stored revisions.
        moved: Other revisions that count at other times now.

    Yields:
        Changes by generation, where there are any.
    """
    for generation in generations:
        if generation.status is GenerationStatus.FAILED:
            continue
        number = generation.start.generation
        stored = [fact for fact in made.stored if fact.generation == number]
        mine = {(fact.document_id, fact.revision) for fact in stored}
        # A revision that was cut anew may have no chunk left.
        empty = [(fact.document_id, fact.revision) for fact in stored if not fact.chunk_count]
        gone = [*((document_id, EVERY_REVISION) for document_id, _ in made.erased), *empty]
        again = [each for each in moved if each.shown.fact.generation == number]
        keyword = (
            *(KeywordChange(*key) for key in gone),
            *(change for change in loaded.keyword if (change.document_id, change.revision) in mine),
            *(each.keyword for each in again if each.keyword is not None),
        )
        vector: tuple[VectorChange | ForceChange, ...] = (
            *(VectorChange(*key) for key in gone),
            *(change for change in loaded.vector if (change.document_id, change.revision) in mine),
            *(_force_change(each.shown) for each in again if each.keyword is not None),
        )
        if keyword or vector:
            yield LaneChanges(crate_id=crate_id, generation=generation, keyword=keyword, vector=vector)


def _force_change(shown: ShownRevision) -> ForceChange:
    return ForceChange(shown.fact.document_id, shown.fact.revision, shown.fact.form, shown.force)
