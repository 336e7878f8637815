"""A Postgres that cuts connections, as one that is killed does."""

from __future__ import annotations

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
