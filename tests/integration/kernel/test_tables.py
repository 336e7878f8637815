"""A Postgres that cuts connections, as one that is killed does, and the times that it stores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from services.kernel.db import Database, answering, session
from services.kernel.errors import Unavailable


async def test_a_connection_that_was_cut_while_idle_is_unavailable_at_most_and_replaced(postgres_dsn: str) -> None:
    database = await Database.open(postgres_dsn, schema="cut", migrations=(), max_connections=1)
    unavailable = 0
    async with session(postgres_dsn) as administrator:
        # About one in a hundred of these ends in asyncpg's InternalClientError.
        for _ in range(300):
            backend = before = await database.pool.fetchval("select pg_backend_pid()")
            await administrator.execute("select pg_terminate_backend($1)", backend)
            while backend == before:
                try:
                    with answering():
                        backend = await database.pool.fetchval("select pg_backend_pid()")
                except Unavailable:
                    unavailable += 1
    assert unavailable
    await database.close()


async def test_the_first_and_the_last_time_come_back_with_their_zone(postgres_dsn: str) -> None:
    database = await Database.open(postgres_dsn, schema="times", migrations=("create table times (at timestamptz)",))
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    moments = [first, first + timedelta(microseconds=1), datetime(2026, 1, 2, 3, 4, 5, 6, UTC), last]
    moments += [last - timedelta(microseconds=1), datetime(1969, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))]
    await database.pool.executemany("insert into times values ($1)", [(moment,) for moment in moments])
    # What an earlier release stored: asyncpg's own stand-ins.
    await database.pool.execute("insert into times values ('-infinity'), ('infinity'), (null)")
    found = [row["at"] for row in await database.pool.fetch("select at from times")]
    assert found == [*moments, first, last, None]
    assert {moment.tzinfo for moment in found if moment} == {UTC}
    assert await database.pool.fetchval("select count(*) from times where at = any($1::timestamptz[])", moments) == 8
    with pytest.raises(Exception, match="a time without a zone"):
        await database.pool.execute("insert into times values ($1)", datetime(2026, 1, 2))  # noqa: DTZ001  (the point)
    await database.close()
