"""What searches remember of the rows holds until the rows are next written, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from services.index import remembered
from services.index.domain.content import ChunkKey, Fetched, RecordCounts, RevisionPage, Standing
from services.index.domain.force import Force
from services.index.domain.generations import Generation, GenerationStart, GenerationStatus
from services.index.domain.records import RevisionKey
from services.index.gate import Gate
from services.index.remembered import RememberedRows

GENERATION = Generation(
    start=GenerationStart(
        generation=1,
        model_id="m",
        dimension=3,
        model_fingerprint="",
        retrieval_strategy="standard",
        prompt_version="",
        started_at=datetime(2024, 5, 1, tzinfo=UTC),
        position=1,
    ),
    status=GenerationStatus.ACTIVE,
)


def keys(names: Sequence[str]) -> list[RevisionKey]:
    return [(name, 1) for name in names]


def forces(positions: Mapping[str, int]) -> dict[RevisionKey, Force]:
    return {(name, 1): Force(effective_from=0, position=position) for name, position in positions.items()}


@dataclass
class Rows:
    """Rows in memory that count what they are asked."""

    positions: dict[str, int] = field(default_factory=lambda: {"a": 1, "b": 2})
    found: tuple[Generation, ...] = (GENERATION,)
    at: int = 7
    asked: list[tuple[str, ...]] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    async def standing(self, crate_id: str, keys: Sequence[RevisionKey]) -> Standing:
        names = [name for name, _ in keys]
        self.asked.append((crate_id, *names))
        answer = Standing(position=self.at, forces=forces({n: p for n, p in self.positions.items() if n in names}))
        await self.answers.wait()
        return answer

    async def generations(self, crate_id: str) -> tuple[Generation, ...]:
        self.asked.append((crate_id,))
        return self.found

    async def position(self) -> int:
        raise NotImplementedError

    async def fetch(self, crate_id: str, keys: Sequence[ChunkKey], *, with_terms: bool) -> Fetched:
        raise NotImplementedError

    async def page(
        self, crate_id: str, document_id: str, revision: int, first_ordinal: int, limit: int
    ) -> RevisionPage | None:
        raise NotImplementedError

    async def record_counts(self, crate_id: str) -> RecordCounts:
        raise NotImplementedError


@dataclass
class Kept:
    """Rows, gate and what is remembered."""

    rows: Rows = field(default_factory=Rows)
    gate: Gate = field(default_factory=Gate)

    def __post_init__(self) -> None:
        self.remembered = RememberedRows(reader=self.rows, gate=self.gate)


async def test_what_was_read_is_not_asked_again() -> None:
    kept = Kept()
    for names in (["a", "b", "gone", "a"], ["b", "gone"]):
        found = await kept.remembered.standing("main", keys(names))
        assert found == Standing(
            position=7, forces=forces({n: p for n, p in kept.rows.positions.items() if n in names})
        )
    assert await kept.remembered.generations("main") == await kept.remembered.generations("main") == (GENERATION,)
    assert kept.rows.asked == [("main", "a", "b", "gone"), ("main",)]


async def test_crates_are_kept_apart() -> None:
    kept = Kept()
    await kept.remembered.standing("main", keys(["a"]))
    await kept.remembered.standing("other", keys(["a"]))
    assert kept.rows.asked == [("main", "a"), ("other", "a")]


async def test_a_write_ends_it() -> None:
    kept = Kept()
    await kept.remembered.standing("main", keys(["a"]))
    await kept.remembered.generations("main")
    with kept.gate.writing():
        kept.rows.positions["a"], kept.rows.at, kept.rows.found = 5, 8, ()
    assert await kept.remembered.standing("main", keys(["a"])) == Standing(position=8, forces=forces({"a": 5}))
    assert await kept.remembered.generations("main") == ()


async def test_a_write_that_fails_ends_it_too() -> None:
    kept = Kept()
    await kept.remembered.standing("main", keys(["a"]))
    with pytest.raises(OSError, match="away"), kept.gate.writing():
        raise OSError("away")
    kept.rows.at = 8
    assert (await kept.remembered.standing("main", keys(["a"]))).position == 8


async def test_nothing_is_kept_during_a_write() -> None:
    kept = Kept()
    await kept.remembered.standing("main", keys(["a"]))
    with kept.gate.writing():
        for position in (8, 9):
            kept.rows.at = position
            assert (await kept.remembered.standing("main", keys(["a"]))).position == position
        await kept.remembered.generations("main")
        kept.rows.found = ()
        assert await kept.remembered.generations("main") == ()


async def test_an_answer_that_a_write_overtook_is_not_kept() -> None:
    kept = Kept()
    kept.rows.answers.clear()
    asking = asyncio.create_task(kept.remembered.standing("main", keys(["a"])))
    await asyncio.sleep(0)
    with kept.gate.writing():
        kept.rows.at = 8
    kept.rows.answers.set()
    assert (await asking).position == 7
    assert (await kept.remembered.standing("main", keys(["a"]))).position == 8


async def test_a_crate_without_generations_is_asked_about_again() -> None:
    kept = Kept()
    kept.rows.found = ()
    await kept.remembered.generations("main")
    kept.rows.found = (GENERATION,)
    assert await kept.remembered.generations("main") == (GENERATION,)


async def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_MOST_REVISIONS", 2)
    kept = Kept()
    for names in (["a", "b"], ["c"], ["c"], ["a"]):
        await kept.remembered.standing("main", keys(names))
    assert kept.rows.asked == [("main", "a", "b"), ("main", "c"), ("main", "a")]
