"""Signals that are still to be sent, in Postgres. They are noted in the transaction of the rows that they tell of."""

from __future__ import annotations

from collections.abc import Sequence

from services.index.domain.content import Signal, StateSignal
from services.index.domain.living.changes import StateChange
from services.index.domain.living.values import State
from services.kernel.db import Database, answering


class PostgresOutbox:
    """See ports.Outbox."""

    def __init__(self, *, database: Database) -> None:
        self._pool = database.pool

    async def signals(self, limit: int) -> tuple[Signal, ...]:
        """See Outbox."""
        with answering():
            rows = await self._pool.fetch("select * from outbox order by number limit $1", limit)
        return tuple(
            Signal(
                number=row["number"],
                crate_id=row["crate"],
                document_id=row["document_id"],
                revision=row["revision"],
                settings_digest=row["settings_digest"],
                generation=row["generation"],
                record_count=row["record_count"],
                position=row["position"],
            )
            for row in rows
        )

    async def forget(self, numbers: Sequence[int]) -> None:
        """See Outbox."""
        with answering():
            await self._pool.execute("delete from outbox where number = any($1::bigint[])", numbers)

    async def state_signals(self, limit: int) -> tuple[StateSignal, ...]:
        """See Outbox."""
        with answering():
            rows = await self._pool.fetch("select * from living_outbox order by number limit $1", limit)
        return tuple(
            StateSignal(
                number=row["number"],
                crate_id=row["crate"],
                change=StateChange(
                    document_id=row["document_id"],
                    revision=row["revision"],
                    before=State(row["before"]) if row["before"] else None,
                    after=State(row["after"]),
                    position=row["position"],
                ),
            )
            for row in rows
        )

    async def forget_states(self, numbers: Sequence[int]) -> None:
        """See Outbox."""
        with answering():
            await self._pool.execute("delete from living_outbox where number = any($1::bigint[])", numbers)
