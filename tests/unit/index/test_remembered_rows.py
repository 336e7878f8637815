"""What searches remember of the rows holds until the rows are next written, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from services.index import remembered
from services.index.domain.content import ChunkKey, Fetched, RecordCounts, RevisionPage, Standing
from services.index.domain.generations import Generation, GenerationStart, GenerationStatus
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


@dataclass
class Rows:
    """Rows in memory that count what they are asked."""

    revisions: dict[str, int] = field(default_factory=lambda: {"a": 1, "b": 2})
    found: tuple[Generation, ...] = (GENERATION,)
    at: int = 7
    asked: list[tuple[str, ...]] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    async def standing(self, crate_id: str, document_ids: Sequence[str]) -> Standing:
        self.asked.append((crate_id, *document_ids))
        held = {name: self.revisions[name] for name in document_ids if name in self.revisions}
        answer = Standing(position=self.at, revisions=held)
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
        found = await kept.remembered.standing("main", names)
        assert found == Standing(position=7, revisions={n: r for n, r in kept.rows.revisions.items() if n in names})
    assert await kept.remembered.generations("main") == await kept.remembered.generations("main") == (GENERATION,)
    assert kept.rows.asked == [("main", "a", "b", "gone"), ("main",)]


async def test_crates_are_kept_apart() -> None:
    kept = Kept()
    await kept.remembered.standing("main", ["a"])
    await kept.remembered.standing("other", ["a"])
    assert kept.rows.asked == [("main", "a"), ("other", "a")]


async def test_a_write_ends_it() -> None:
    kept = Kept()
    await kept.remembered.standing("main", ["a"])
    await kept.remembered.generations("main")
    with kept.gate.writing():
        kept.rows.revisions["a"], kept.rows.at, kept.rows.found = 5, 8, ()
    assert await kept.remembered.standing("main", ["a"]) == Standing(position=8, revisions={"a": 5})
    assert await kept.remembered.generations("main") == ()


async def test_a_write_that_fails_ends_it_too() -> None:
    kept = Kept()
    await kept.remembered.standing("main", ["a"])
    with pytest.raises(OSError, match="away"), kept.gate.writing():
        raise OSError("away")
    kept.rows.at = 8
    assert (await kept.remembered.standing("main", ["a"])).position == 8


async def test_nothing_is_kept_during_a_write() -> None:
    kept = Kept()
    await kept.remembered.standing("main", ["a"])
    with kept.gate.writing():
        for position in (8, 9):
            kept.rows.at = position
            assert (await kept.remembered.standing("main", ["a"])).position == position
        await kept.remembered.generations("main")
        kept.rows.found = ()
        assert await kept.remembered.generations("main") == ()


async def test_an_answer_that_a_write_overtook_is_not_kept() -> None:
    kept = Kept()
    kept.rows.answers.clear()
    asking = asyncio.create_task(kept.remembered.standing("main", ["a"]))
    await asyncio.sleep(0)
    with kept.gate.writing():
        kept.rows.at = 8
    kept.rows.answers.set()
    assert (await asking).position == 7
    assert (await kept.remembered.standing("main", ["a"])).position == 8


async def test_a_crate_without_generations_is_asked_about_again() -> None:
    kept = Kept()
    kept.rows.found = ()
    await kept.remembered.generations("main")
    kept.rows.found = (GENERATION,)
    assert await kept.remembered.generations("main") == (GENERATION,)


async def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_MOST_DOCUMENTS", 2)
    kept = Kept()
    for names in (["a", "b"], ["c"], ["c"], ["a"]):
        await kept.remembered.standing("main", names)
    assert kept.rows.asked == [("main", "a", "b"), ("main", "c"), ("main", "a")]
