"""Generations: which exists, which serves, and that a failed one stays failed."""

from __future__ import annotations

from datetime import UTC, datetime

from services.index.domain.generations import (
    GenerationEnd,
    GenerationStart,
    GenerationStatus,
    advance,
    named,
    serving,
)


def start(number: int, model: str = "m") -> GenerationStart:
    return GenerationStart(
        generation=number,
        model_id=model,
        dimension=4,
        model_fingerprint="f",
        retrieval_strategy="standard",
        prompt_version="",
        started_at=datetime(2024, 5, 1, tzinfo=UTC),
        position=number,
    )


def end(number: int, status: GenerationStatus) -> GenerationEnd:
    return GenerationEnd(generation=number, status=status, position=10 + number)


def test_a_generation_serves_from_its_activation_on() -> None:
    building = advance((), [start(1)])
    assert serving(building) is None
    active = advance(building, [end(1, GenerationStatus.ACTIVE)])
    found = serving(active)
    assert found is not None
    assert found.start == start(1)


def test_the_newest_active_generation_serves() -> None:
    both = advance((), [start(2), end(2, GenerationStatus.ACTIVE), start(1), end(1, GenerationStatus.ACTIVE)])
    assert [found.start.generation for found in both] == [1, 2]
    found = serving(both)
    assert found is not None
    assert found.start.generation == 2


def test_a_failed_generation_is_not_revived() -> None:
    failed = advance((), [start(1), end(1, GenerationStatus.FAILED), end(1, GenerationStatus.ACTIVE)])
    assert failed[0].status is GenerationStatus.FAILED
    assert serving(failed) is None


def test_facts_that_come_again_change_nothing() -> None:
    active = advance((), [start(1), end(1, GenerationStatus.ACTIVE)])
    assert advance(active, [start(1, model="another"), end(1, GenerationStatus.ACTIVE)]) == active


def test_the_end_of_an_unknown_generation_is_ignored() -> None:
    assert advance((), [end(3, GenerationStatus.ACTIVE)]) == ()


def test_generations_are_found_by_number() -> None:
    both = advance((), [start(1), start(2)])
    assert named(both, 2) == both[1]
    assert named(both, 3) is None
