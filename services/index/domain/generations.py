"""Generations of a crate's index: what each fixes, and which one serves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

FIRST_GENERATION = 1


class GenerationStatus(StrEnum):
    """Life of a generation; a failed one stays failed."""

    BUILDING = "building"
    ACTIVE = "active"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """What turns a crate's texts into vectors.

    Attributes:
        model_id: Its name.
        dimension: Length of its vectors.
        fingerprint: What its weights and runtime are.
    """

    model_id: str
    dimension: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStart:
    """What a generation fixes.

    Attributes:
        generation: 1, 2, 3 ... per crate.
        model_id: Embedding model.
        dimension: Length of its vectors.
        model_fingerprint: What its weights and runtime are.
        retrieval_strategy: "standard" or "proposition".
        prompt_version: Version of the prompts; empty where none are used.
        started_at: UTC.
        position: KNOWLEDGE position.
    """

    generation: int
    model_id: str
    dimension: int
    model_fingerprint: str
    retrieval_strategy: str
    prompt_version: str
    started_at: datetime
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationEnd:
    """A generation became active, or failed.

    Attributes:
        generation: Which one.
        status: ACTIVE or FAILED.
        position: KNOWLEDGE position.
    """

    generation: int
    status: GenerationStatus
    position: int


GenerationFact = GenerationStart | GenerationEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A generation as it stands.

    Attributes:
        start: What it fixes.
        status: Where it stands.
        lane_position: KNOWLEDGE position of the last batch that changed its lanes; 0 for none.
    """

    start: GenerationStart
    status: GenerationStatus
    lane_position: int = 0


def serving(generations: Sequence[Generation]) -> Generation | None:
    """The generation that answers searches.

    Args:
        generations: Those of one crate.

    Returns:
        The newest active one; None when there is none yet.
    """
    active = [found for found in generations if found.status is GenerationStatus.ACTIVE]
    return max(active, key=lambda found: found.start.generation, default=None)


def named(generations: Sequence[Generation], number: int) -> Generation | None:
    """Find a generation by its number; None when it doesn't exist."""
    return next((found for found in generations if found.start.generation == number), None)


def advance(generations: Sequence[Generation], facts: Iterable[GenerationFact]) -> tuple[Generation, ...]:
    """Fold facts of one crate into its generations.

    Args:
        generations: As they stand.
        facts: In log order; one that was folded before changes nothing.

    Returns:
        As they stand afterwards, by number.
    """
    found = {generation.start.generation: generation for generation in generations}
    for fact in facts:
        known = found.get(fact.generation)
        if isinstance(fact, GenerationStart):
            if known is None:
                found[fact.generation] = Generation(start=fact, status=GenerationStatus.BUILDING)
        elif known is not None and known.status is not GenerationStatus.FAILED:
            found[fact.generation] = replace(known, status=fact.status)
    return tuple(found[number] for number in sorted(found))
