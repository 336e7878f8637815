"""Living states on the real Postgres: written, read at any moment, rebuilt, erased."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import living_pb2 as living_pb

from services.index.adapters.living_postgres import PostgresLivingTables, write_living
from services.index.adapters.living_reader_postgres import PostgresLivingReader
from services.index.adapters.past_postgres import PostgresPastForces
from services.index.adapters.schema_postgres import MIGRATIONS, PROJECTION
from services.index.domain.force import instant
from services.index.domain.living.changes import LivingChange, StateChange, Tick, Told
from services.index.domain.living.values import (
    Erased,
    Fact,
    Retired,
    RevisionFacts,
    RevisionKey,
    Rules,
    State,
    Statement,
    Window,
)
from services.index.living import Living
from services.index.states import LivingAnswers
from services.kernel.db import Database, advance
from services.kernel.errors import NotFound, Rejected
from services.kernel.runner import Context

CRATE = "main"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ONE, TWO, THREE = "a" * 32, "b" * 32, "c" * 32


def at(days: int) -> datetime:
    """Noon, some days later."""
    return NOON + timedelta(days=days)


def put(document_id: str, position: int, days: int, *, revision: int = 1, **metadata: str) -> RevisionFacts:
    """A revision that is effective on a day."""
    return RevisionFacts(
        document_id=document_id,
        revision=revision,
        position=position,
        effective_at=at(days),
        recorded_at=at(days),
        source_id=f"docs/{document_id[0]}.md",
        title=f"Title {document_id[0]}",
        metadata=metadata,
        links=("b.md",),
    )


def states(
    source: str, kind: str, target: str, position: int, *, days: int | None = None, withdrawn: bool = False
) -> Statement:
    """A statement, effective on a day or with its source."""
    return Statement(
        source_id=source,
        type=kind,
        target_id=target,
        position=position,
        recorded_at=at(9),
        effective_at=None if days is None else at(days),
        withdrawn=withdrawn,
    )


class World:
    """Tables, living states and answers on one schema."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.tables = PostgresLivingTables(database=database)
        self.living = Living(tables=self.tables)
        self.answers = LivingAnswers(
            living=self.living, reader=PostgresLivingReader(database=database), now=lambda: at(100)
        )

    async def tell(self, *facts: tuple[int, Fact | Tick], crate: str = CRATE) -> LivingChange:
        """Apply a batch as the projection does."""
        change = await self.living.prepare(crate, [Told(position, at(position), fact) for position, fact in facts])
        async with self.database.pool.acquire() as connection, connection.transaction():
            await write_living(connection, change)
            await advance(connection, PROJECTION, facts[-1][0], b"i" * 16)
        self.living.settled(change)
        return change

    async def state(self, document_id: str, *, days: int = 100, position: int = 0) -> str:
        """A state in a word, with the rule."""
        request = pb.GetStateRequest(crate_id=CRATE, document_id=document_id, at=position)
        request.as_of.FromDatetime(at(days))
        found = await self.answers.state(request)
        return f"{found.state} {found.report.rule}"

    async def differences(self, days: int, position: int) -> tuple[set[RevisionKey], set[RevisionKey]]:
        """What counted then and isn't in the lanes' ranges, and the reverse."""
        past = PostgresPastForces(database=self.database)
        found = await past.differences(CRATE, as_of=instant(at(days)), at=position)
        return set(found.also), set(found.without)

    async def rows(self) -> list[tuple[object, ...]]:
        """All timelines, as rows."""
        found = await self.database.pool.fetch("select * from living_timelines order by 1, 2, 3, 4")
        return [tuple(row) for row in found]


@pytest.fixture
async def world(context_for: Callable[[str], Awaitable[Context]]) -> World:
    context = await context_for("index")
    return World(await context.database(MIGRATIONS))


HISTORY: tuple[tuple[int, Fact | Tick], ...] = (
    (1, put(ONE, 1, 0)),
    (2, put(TWO, 2, 10)),
    (3, states(TWO, "supersedes", ONE, 3)),
    (4, put(THREE, 4, 20, contradicts="b.md", status="Final")),
    (5, Tick(at(30))),
    (6, put(ONE, 6, 40, revision=2)),
    (7, states(TWO, "supersedes", ONE, 7, withdrawn=True)),
    (8, Rules(position=8, windows={"": Window(stale_after_days=50)}, status_words={"final": "dormant"})),
    (9, Retired(document_id=THREE, position=9, at=at(60))),
)


async def test_what_was_known_then_about_any_instant(world: World) -> None:
    await world.tell(*HISTORY[:3])
    assert await world.state(ONE, days=9) == "active default"
    assert await world.state(ONE, days=10) == "superseded supersedes"
    assert await world.state(ONE, position=2) == "active default"
    await world.tell(*HISTORY[3:])
    assert await world.state(ONE, position=3) == "superseded supersedes"
    assert await world.state(ONE, position=7) == "active default"
    assert await world.state(TWO, position=5) == "contested contradicts"
    assert await world.state(THREE) == "deprecated retired"
    with pytest.raises(NotFound, match="wasn't known at position 1"):
        await world.state(TWO, position=1)
    with pytest.raises(NotFound, match="is effective from 2024-05-11"):
        await world.state(TWO, days=9)
    with pytest.raises(Rejected, match="only 9 is applied"):
        await world.state(TWO, position=10)


async def test_neither_batches_nor_a_fresh_memory_make_a_difference(world: World) -> None:
    await world.tell(*HISTORY)
    whole = await world.rows()
    await world.database.pool.execute(
        "truncate living_timelines, living_revisions, living_statements, living_retirements, living_crates"
    )
    for entry in HISTORY:
        world.living.dropped(CRATE)
        await world.tell(entry)
    assert await world.rows() == whole


async def test_writing_a_change_again_changes_nothing(world: World) -> None:
    change = await world.tell(*HISTORY)
    before = await world.rows()
    async with world.database.pool.acquire() as connection:
        await write_living(connection, change)
    assert await world.rows() == before


async def test_a_dropped_change_leaves_no_trace(world: World) -> None:
    await world.tell(*HISTORY[:2])
    await world.living.prepare(CRATE, [Told(3, at(3), HISTORY[2][1])])
    world.living.dropped(CRATE)
    change = await world.tell((3, states(TWO, "cites", ONE, 3)))
    assert not change.timelines
    assert await world.state(ONE) == "active default"


async def test_changes_of_state_are_told_once(world: World) -> None:
    told = [change for entry in HISTORY[:5] for change in (await world.tell(entry)).seen]
    assert told[-1] == StateChange(document_id=TWO, revision=1, before=None, after=State.CONTESTED, position=5)
    assert StateChange(document_id=ONE, revision=1, before=State.ACTIVE, after=State.SUPERSEDED, position=5) in told
    assert not (await world.tell((6, Tick(at(30))))).seen


async def test_erasing_takes_content_and_keeps_that_there_was_something(world: World) -> None:
    await world.tell(*HISTORY)
    await world.tell((10, Erased(document_id=ONE, revision=2, position=10)))
    history = await world.answers.history(pb.ListHistoryRequest(crate_id=CRATE, document_id=ONE))
    assert [(entry.position, entry.revision, entry.erased) for entry in history.entries] == [
        (10, 1, True),
        (10, 2, True),
    ]
    assert not await world.database.pool.fetch("select 1 from living_revisions where document_id = $1", ONE)
    with pytest.raises(NotFound):
        await world.state(ONE)
    world.living.dropped(CRATE)
    listed = await world.answers.states(pb.ListStatesRequest(crate_id=CRATE))
    assert [one.document_id for one in listed.states] == [TWO, THREE]


async def test_listing_goes_page_by_page_and_by_state(world: World) -> None:
    await world.tell(*HISTORY)
    request = pb.ListStatesRequest(crate_id=CRATE, page_size=2, every_revision=True)
    first = await world.answers.states(request)
    assert [(one.document_id, one.revision) for one in first.states] == [(ONE, 1), (ONE, 2)]
    request.page_token = first.next_page_token
    second = await world.answers.states(request)
    assert [(one.document_id, one.revision) for one in second.states] == [(TWO, 1), (THREE, 1)]
    assert not second.next_page_token
    shown = await world.answers.states(pb.ListStatesRequest(crate_id=CRATE, page_size=1))
    assert [(one.document_id, one.revision) for one in shown.states] == [(ONE, 2)]
    gone = await world.answers.states(
        pb.ListStatesRequest(crate_id=CRATE, states=[living_pb.LIVING_STATE_DEPRECATED], page_size=1)
    )
    assert [one.document_id for one in gone.states] == [THREE]
    with pytest.raises(Rejected, match="is applied"):
        await world.answers.states(pb.ListStatesRequest(crate_id=CRATE, moment=living_pb.Moment(at=2**64 - 1)))
    with pytest.raises(Rejected, match="NUL"):
        await world.answers.state(pb.GetStateRequest(crate_id=CRATE, source_id="a\0b"))
    with pytest.raises(Rejected, match="none of ours"):
        await world.answers.states(pb.ListStatesRequest(crate_id=CRATE, page_token="x"))  # noqa: S106  (no password)


async def test_a_revision_that_comes_back_into_force_is_told_beside_its_range(world: World) -> None:
    await world.tell(
        (1, put(ONE, 1, 0, version="1.9")),
        (2, put(TWO, 2, 10, version="1.10", version_of="a")),
        (3, states(ONE, "supersedes", TWO, 3)),
    )
    rolled_back = Statement(
        source_id=ONE, type="supersedes", target_id=TWO, position=4, recorded_at=at(4), effective_at=at(20)
    )
    await world.tell((4, rolled_back))
    assert [await world.state(ONE, days=days) for days in (9, 10, 20)] == [
        "active default",
        "superseded is_version_of",
        "active default",
    ]
    assert await world.differences(15, 4) == (set(), {(ONE, 1)})
    assert await world.differences(25, 4) == (set(), set())


async def test_neighbours_and_families(world: World) -> None:
    await world.tell(
        (1, put(ONE, 1, 0, family="manual", version="1.10")),
        (2, put(TWO, 2, 1, family="Manual", version="1.9", supersedes="nowhere")),
        (3, put(THREE, 3, 2, family="manual", version="1.2")),
        (4, states(ONE, "elaborates", THREE, 4)),
    )
    asked = pb.ListNeighboursRequest(crate_id=CRATE, document_id=TWO, depth=2)
    found = await world.answers.neighbours(asked)
    assert list(found.document_ids) == [ONE, THREE]
    assert [
        (one.type, one.reference, one.target_document_id) for one in found.relations if not one.target_document_id
    ] == [("supersedes", "nowhere", "")]
    families = (await world.answers.families(pb.ListFamiliesRequest(crate_id=CRATE, document_ids=[ONE]))).families
    assert [[one.version for one in family.members] for family in families] == [["1.2", "1.9", "1.10"]]
    with pytest.raises(Rejected, match="depth is 9"):
        await world.answers.neighbours(pb.ListNeighboursRequest(crate_id=CRATE, document_id=TWO, depth=9))
    with pytest.raises(Rejected, match="types holds 'likes'"):
        await world.answers.neighbours(pb.ListNeighboursRequest(crate_id=CRATE, document_id=TWO, types=["likes"]))
    with pytest.raises(NotFound, match="isn't known"):
        await world.answers.neighbours(pb.ListNeighboursRequest(crate_id=CRATE, document_id="e" * 32))


async def test_a_document_is_found_by_its_source_id(world: World) -> None:
    await world.tell(*HISTORY)
    found = await world.answers.state(pb.GetStateRequest(crate_id=CRATE, source_id="docs/a.md"))
    assert (found.report.document_id, found.report.revision, found.report.source_id) == (ONE, 2, "docs/a.md")
    with pytest.raises(NotFound, match="no document of crate other has the source id"):
        await world.answers.state(pb.GetStateRequest(crate_id="other", source_id="docs/a.md"))
    both = pb.GetStateRequest(crate_id=CRATE, source_id="docs/a.md", document_id=ONE)
    assert (await world.answers.state(both)).report == found.report
    both.document_id = TWO
    with pytest.raises(Rejected, match="is not the name of document"):
        await world.answers.state(both)
    with pytest.raises(Rejected, match="neither document_id nor source_id"):
        await world.answers.state(pb.GetStateRequest(crate_id=CRATE))


async def test_the_first_facts_of_a_crate_are_known_before_they_are_written(world: World) -> None:
    await world.living.prepare("fresh", [Told(1, at(1), put(ONE, 1, 0))])
    assert set(await world.living.forces("fresh", [(ONE, 1), (TWO, 1)])) == {(ONE, 1)}
    world.living.dropped("fresh")
    assert await world.living.forces("fresh", [(ONE, 1)]) == {}
