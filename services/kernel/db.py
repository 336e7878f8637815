"""Tables: one Postgres schema per role, migrations, and the positions of projections."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import asyncpg

from services.kernel.errors import Corrupt, Unavailable

_KERNEL_TABLES = """
create table if not exists migrations (number int primary key, applied_at timestamptz not null default now());
create table if not exists positions (
    projection text primary key, position bigint not null, incarnation bytea not null
);
-- Erasures whose content isn't off the disk yet, see kernel.scrub.
create table if not exists scrubs (
    number bigint generated always as identity primary key,
    crate text not null, document_id text not null, revision bigint not null
);
"""
Session: TypeAlias = "asyncpg.Connection"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# How Postgres stores -infinity and infinity.
_BEFORE_ALL, _AFTER_ALL = -(2**63), 2**63 - 1
# One lock id for all roles: two processes that start at once must not create the same schema twice.
_MIGRATION_LOCK = 0x61666669

# Failures that pass: a server that stops, starts, is full or was never reached.
_AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # A connection that was cut while idle may say so only as asyncpg's own confusion ("cannot switch to state").
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DiskFullError,
)
# All that a server or its client may raise.
DATABASE_FAULTS = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class Database:
    """The role's own schema.

    Attributes:
        pool: Connections whose search path is that schema alone.
    """

    def __init__(self, *, pool: asyncpg.Pool, schema: str) -> None:
        self.pool = pool
        self.schema = schema

    @classmethod
    async def open(cls, dsn: str, *, schema: str, migrations: Sequence[str], max_connections: int = 4) -> Database:
        """Connect, create the schema and bring it up to date.

        Args:
            dsn: Postgres address.
            schema: Schema name, a plain identifier.
            migrations: SQL scripts; number i is run once, in order. Never change one that was released.
            max_connections: Upper bound of the pool.

        Returns:
            The database.

        Raises:
            Unavailable: When Postgres doesn't answer.
            Corrupt: When the schema is newer than this program.
        """
        database = await cls.attach(dsn, schema=schema, max_connections=max_connections)
        try:
            await _migrate(database.pool, schema, migrations)
        except DATABASE_FAULTS as error:
            database.pool.terminate()
            raise Unavailable(
                f"Postgres stopped answering ({type(error).__name__}) while {schema} was opened"
            ) from error
        except BaseException:
            await database.close()
            raise
        return database

    @classmethod
    async def attach(cls, dsn: str, *, schema: str, max_connections: int = 4) -> Database:
        """Connect to a schema as it is.

        Args:
            dsn: Postgres address.
            schema: Schema name, a plain identifier.
            max_connections: Upper bound of the pool.

        Returns:
            The database.

        Raises:
            Unavailable: When Postgres doesn't answer.
        """
        with _connecting():
            pool = await asyncpg.create_pool(
                dsn,
                min_size=1,
                max_size=max_connections,
                server_settings={"search_path": schema},
                timeout=10,
                init=_prepare,
                reset=_keep,
            )
        return cls(pool=pool, schema=schema)

    async def close(self) -> None:
        """Close all connections."""
        await self.pool.close()

    async def position(self, projection: str, incarnation: bytes) -> int:
        """Position that a projection has applied, 0 at first.

        Args:
            projection: Its name.
            incarnation: Of the stream that it follows.

        Returns:
            Stream sequence.

        Raises:
            Corrupt: When the stream isn't the one that was followed: the log was lost or replaced.
        """
        row = await self.pool.fetchrow("select position, incarnation from positions where projection = $1", projection)
        if row is None:
            return 0
        if row["incarnation"] != incarnation:
            raise Corrupt(
                f"projection {self.schema}.{projection} was built from another log: "
                "restore the log that belongs to these tables, or start with an empty data folder"
            )
        return int(row["position"])


@contextlib.asynccontextmanager
async def session(dsn: str) -> AsyncIterator[Session]:
    """A connection to no schema in particular, for what looks at several; times are told in UTC.

    Args:
        dsn: Postgres address.

    Yields:
        The connection.

    Raises:
        Unavailable: When Postgres doesn't answer.
    """
    with _connecting():
        connection = await asyncpg.connect(dsn, server_settings={"timezone": "UTC"}, timeout=10)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Tell a Postgres that is away as Unavailable.

    Raises:
        Unavailable: When it doesn't answer or can't write.
    """
    try:
        yield
    except _AWAY as error:
        raise Unavailable(
            f"Postgres doesn't answer ({type(error).__name__}): is it up, and has its disk room? Retry, "
            "or see `affidavit doctor`"
        ) from error


@contextlib.contextmanager
def _connecting() -> Iterator[None]:
    try:
        yield
    except DATABASE_FAULTS as error:
        raise Unavailable(
            f"Postgres doesn't answer ({type(error).__name__}): is it up and its address right?"
        ) from error


async def advance(
    connection: asyncpg.pool.PoolConnectionProxy, projection: str, position: int, incarnation: bytes
) -> None:
    """Move a projection's position; call it in the transaction of the rows.

    Args:
        connection: Inside the transaction.
        projection: Its name.
        position: Last applied stream sequence.
        incarnation: Of the stream.
    """
    await connection.execute(
        "insert into positions values ($1, $2, $3) on conflict (projection) do update "
        "set position = excluded.position where positions.position < excluded.position",
        projection,
        position,
        incarnation,
    )


async def _keep(_connection: asyncpg.Connection) -> None:
    """Save the round trip of a reset after every query: no service sets session state, and asyncpg rolls back itself."""


async def _prepare(connection: asyncpg.Connection) -> None:
    """Read times as aware ones without exception: asyncpg reads infinity, as which it writes the extremes, without zone."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_stored_time, decoder=_read_time, format="tuple"
    )


def _stored_time(moment: datetime) -> tuple[int]:
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    if moment == _FIRST:
        return (_BEFORE_ALL,)
    if moment == _LAST:
        return (_AFTER_ALL,)
    return ((moment - _EPOCH) // _MICROSECOND,)


def _read_time(stored: tuple[int]) -> datetime:
    if stored[0] == _BEFORE_ALL:
        return _FIRST
    if stored[0] == _AFTER_ALL:
        return _LAST
    return _EPOCH + timedelta(microseconds=stored[0])


async def _migrate(pool: asyncpg.Pool, schema: str, migrations: Sequence[str]) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("select pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
        await connection.execute(f'create schema if not exists "{schema}"')
        await connection.execute(_KERNEL_TABLES)
        done = await connection.fetchval("select coalesce(max(number), 0) from migrations")
        if done > len(migrations):
            raise Corrupt(
                f"schema {schema} is at version {done}, this program knows {len(migrations)}: install the newer release"
            )
        for number, script in enumerate(migrations[done:], start=done + 1):
            await connection.execute(script)
            await connection.execute("insert into migrations (number) values ($1)", number)
