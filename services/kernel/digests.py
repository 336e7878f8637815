"""Digests over logical rows: what two builds of the same projection must have in common.

A row is its key and a hash of what it says. Numbers that the database draws, queues of things to be sent and times of
writing say nothing and are left out; so is what depends on how the log was cut into batches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import asyncpg
from blake3 import blake3

Key: TypeAlias = tuple[str | int | bytes, ...]
Row: TypeAlias = tuple[Key, bytes]
Rows: TypeAlias = AsyncIterator[Row]
_PREFETCH_ROWS = 1_000
_MOST_DIFFERENCES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalTable:
    """What of a table is compared: every column that isn't named here is content.

    Attributes:
        name: Table.
        key: Columns that identify a row; texts of collation C.
        history: Columns that two histories with the same outcome don't share: positions, times, drawn ids.
        ignored: Columns that say nothing even within one history.
        views: SQL by column, with {schema} in it, where only a part of the column counts; the row is `t`.
        portable: False when no row means anything outside its own history.
    """

    name: str
    key: tuple[str, ...]
    history: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)
    portable: bool = True


@dataclass(frozen=True, slots=True)
class Digest:
    """Rows in a nutshell.

    Attributes:
        rows: How many there are.
        value: BLAKE3 over keys and contents in order, hex.
    """

    rows: int
    value: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sets of rows beside each other.

    Attributes:
        name: What was compared.
        live: Digest of the rows in use.
        replayed: Digest of the rows that were built anew.
        differences: The first keys that differ, and how.
    """

    name: str
    live: Digest
    replayed: Digest
    differences: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether the two say the same."""
        return self.live == self.replayed


class _Digester:
    def __init__(self) -> None:
        self._hash = blake3()
        self._rows = 0

    def add(self, row: Row) -> None:
        key, content = row
        self._hash.update(f"{key!r}:".encode())
        self._hash.update(content)
        self._rows += 1

    def digest(self) -> Digest:
        return Digest(self._rows, self._hash.hexdigest())


async def table_rows(
    connection: asyncpg.Connection | asyncpg.pool.PoolConnectionProxy,
    schema: str,
    table: LogicalTable,
    *,
    renamed: Mapping[str, str] | None = None,
) -> Rows:
    """Read a table's logical rows in the order of their keys.

    Args:
        connection: Inside a transaction, whose snapshot is read.
        schema: Schema of the table.
        table: What counts of it.
        renamed: SQL by key column, for rows of two histories whose ids differ; then columns of history are left out.

    Yields:
        Key and SHA-256 of the content, 32 bytes.
    """
    columns = await connection.fetch(
        "select column_name from information_schema.columns where table_schema = $1 and table_name = $2 "
        "order by column_name",
        schema,
        table.name,
    )
    left_out = {*table.key, *table.ignored, *(table.history if renamed is not None else ())}
    content = ", ".join(
        table.views.get(name, f't."{name}"').format(schema=schema)
        for name in (row["column_name"] for row in columns)
        if name not in left_out
    )
    key = ", ".join((renamed or {}).get(name, f't."{name}"') for name in table.key)
    order = ", ".join(str(number) for number in range(1, len(table.key) + 2))
    query = (
        f"select {key}, sha256(convert_to(row({content})::text, 'UTF8')) "  # noqa: S608  (names of our own tables)
        f'from "{schema}"."{table.name}" t order by {order}'
    )
    async for row in connection.cursor(query, prefetch=_PREFETCH_ROWS):
        values = tuple(row.values())
        yield values[:-1], values[-1]


async def digest(rows: Rows) -> Digest:
    """Digest rows.

    Args:
        rows: In order.

    Returns:
        Count and hash.
    """
    digester = _Digester()
    async for row in rows:
        digester.add(row)
    return digester.digest()


async def compare(name: str, live: Rows, replayed: Rows) -> Comparison:
    """Digest two sets of rows and find out where they part.

    Args:
        name: What they are.
        live: In the order of their keys.
        replayed: In the same order.

    Returns:
        Both digests and the first differences.
    """
    ours, theirs = _Digester(), _Digester()
    found: list[str] = []
    async for left, right in _side_by_side(live, replayed):
        if left is not None:
            ours.add(left)
        if right is not None:
            theirs.add(right)
        if left != right and len(found) < _MOST_DIFFERENCES:
            found.append(_difference(left, right))
    return Comparison(name, ours.digest(), theirs.digest(), tuple(found))


async def _side_by_side(live: Rows, replayed: Rows) -> AsyncIterator[tuple[Row | None, Row | None]]:
    left, right = await anext(live, None), await anext(replayed, None)
    while left is not None and right is not None:
        if left[0] < right[0]:
            yield left, None
            left = await anext(live, None)
        elif right[0] < left[0]:
            yield None, right
            right = await anext(replayed, None)
        else:
            yield left, right
            left, right = await anext(live, None), await anext(replayed, None)
    while left is not None:
        yield left, None
        left = await anext(live, None)
    while right is not None:
        yield None, right
        right = await anext(replayed, None)


def _difference(left: Row | None, right: Row | None) -> str:
    if left is None:
        return f"{shown(right[0]) if right else ''}: only replayed"
    return f"{shown(left[0])}: {'only live' if right is None else 'differs'}"


def shown(key: Key) -> str:
    """A key as a person reads it: parts with slashes between them, bytes as hex."""
    return "/".join(part.hex() if isinstance(part, bytes) else str(part) for part in key)
