"""Scrubs on a real Postgres: what they rewrite, what they wait for, what they remember."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import cast

import asyncpg
import pytest

from services.kernel import scrub
from services.kernel.db import Database
from services.kernel.erasures import Aggregates
from services.kernel.errors import NotFound, Rejected, Unavailable
from services.kernel.scrub import Erasure, Scrubber

MIGRATIONS = ("create table pages (document_id text primary key, body text)",)
GONE = "d" * 32
LIVE = "c" * 32


class Role:
    """A role with one table, as far as a scrub sees it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.scrubbed: list[tuple[Erasure, ...]] = []
        self.failure: Exception | None = None
        self.failed = asyncio.Event()
        self.scrubber = Scrubber(database=database, tables=("pages",), position=self.position, before=self.before)

    async def position(self) -> int:
        return 7

    async def before(self, erasures: Sequence[Erasure]) -> None:
        self.scrubbed.append(tuple(erasures))
        if self.failure is not None:
            self.failed.set()
            raise self.failure

    async def put(self, document_id: str) -> None:
        await self.database.pool.execute("insert into pages values ($1, 'text')", document_id)

    async def erase(self, *document_ids: str) -> None:
        async with self.database.pool.acquire() as connection, connection.transaction():
            await connection.execute("delete from pages where document_id = any($1)", document_ids)
            await scrub.note(connection, "main", [(one, 1) for one in document_ids])
        self.scrubber.wake()

    async def file(self) -> str:
        return str(await self.database.pool.fetchval("select pg_relation_filepath('pages')"))

    async def gone(self) -> bool:
        return (await self.scrubber.standing("main", GONE, 7)).gone

    async def until_gone(self) -> None:
        async with asyncio.timeout(20):
            while not await self.gone():  # noqa: ASYNC110  (asks as a caller does)
                await asyncio.sleep(0.02)


@pytest.fixture
async def database(postgres_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(postgres_dsn, schema="papers", migrations=MIGRATIONS)
    yield database
    await database.close()


@pytest.fixture
async def role(database: Database) -> Role:
    role = Role(database)
    await role.put(GONE)
    await role.put("kept")
    return role


@pytest.fixture
async def running(role: Role) -> AsyncIterator[Role]:
    task = asyncio.create_task(role.scrubber.run())
    yield role
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_table_is_rewritten_after_an_erasure_and_only_then(running: Role) -> None:
    before = await running.file()
    assert await running.gone()
    await running.erase(GONE)
    await running.until_gone()
    assert await running.file() != before
    assert [[(one.crate, one.document_id, one.revision) for one in batch] for batch in running.scrubbed] == [
        [("main", GONE, 1)]
    ]
    assert await running.database.pool.fetchval("select count(*) from pages") == 1


async def test_what_isnt_applied_yet_isnt_gone(role: Role) -> None:
    assert not (await role.scrubber.standing("main", GONE, 8)).gone


async def test_a_storm_is_scrubbed_in_few_batches(running: Role) -> None:
    for number in range(40):
        await running.erase(f"{number:032x}")
    await running.erase(GONE)
    await running.until_gone()
    assert sum(map(len, running.scrubbed)) >= 41
    assert len(running.scrubbed) < 10


async def test_the_rewrite_waits_for_older_snapshots(running: Role, postgres_dsn: str) -> None:
    reader = await asyncpg.connect(postgres_dsn)
    transaction = reader.transaction(isolation="repeatable_read")
    await transaction.start()
    assert await reader.fetchval("select count(*) from papers.pages") == 2
    before = await running.file()
    await running.erase(GONE)
    await asyncio.sleep(0.5)
    assert not await running.gone()
    assert await reader.fetchval("select count(*) from papers.pages") == 2
    assert await running.file() == before
    await transaction.rollback()
    await reader.close()
    await running.until_gone()


async def test_what_failed_is_told_and_remembered(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "_RETRY_S", 0.05)
    role.failure = Unavailable("the lanes are away")
    await role.erase(GONE)
    task = asyncio.create_task(role.scrubber.run())
    await asyncio.wait_for(role.failed.wait(), 20)
    await asyncio.sleep(0.02)
    standing = await role.scrubber.standing("main", GONE, 7)
    assert standing == scrub.Standing(gone=False, waiting=1, problem="the lanes are away")
    assert (await role.scrubber.standing("other", GONE, 7)).gone
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    # The next process finds the note of the one before.
    after = Role(role.database)
    again = asyncio.create_task(after.scrubber.run())
    await after.until_gone()
    assert [batch[0].document_id for batch in after.scrubbed] == [GONE]
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)


class Log:
    """A log with one document that is erased at 5 and one that is not."""

    async def last_named(self, *, aggregate: str, **_: object) -> object:
        return _Event(5) if aggregate == GONE else None

    async def last(self, *, aggregate: str, **_: object) -> object:
        return _Event(6) if aggregate in (GONE, LIVE) else None


@dataclass
class _Event:
    position: int


async def test_only_a_document_that_there_is_has_a_standing(role: Role) -> None:
    log = cast(Aggregates, Log())
    scrubber = Scrubber(database=role.database, tables=("pages",), position=role.position, before=role.before, log=log)
    assert (await scrubber.standing("main", GONE, 0)).gone
    assert not (await scrubber.standing("main", GONE, 8)).gone
    assert not (await scrubber.standing("main", LIVE, 0)).gone
    with pytest.raises(Rejected, match="document_id is empty"):
        await scrubber.standing("main", "", 1)
    for unknown in ("nobody", "D" * 32, "e" * 32, "a.>", "*"):
        with pytest.raises(NotFound, match="does not exist"):
            await scrubber.standing("main", unknown, 1)
    with pytest.raises(NotFound, match=r"crate 'a\.b' does not exist"):
        await scrubber.standing("a.b", GONE, 1)


async def test_without_a_log_only_the_form_is_looked_at(role: Role) -> None:
    with pytest.raises(Rejected, match="document_id is empty"):
        await role.scrubber.standing("main", "", 1)
    with pytest.raises(NotFound, match="does not exist"):
        await role.scrubber.standing("main", "nobody", 1)
