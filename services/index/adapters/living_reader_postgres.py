"""What requests about living states read from Postgres; each answer is one statement, so it is one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import asyncpg

from services.index.adapters.living_postgres import known_row
from services.index.adapters.schema_postgres import PROJECTION
from services.index.domain.living.changes import Known, Report
from services.kernel.db import Database, answering
from services.kernel.errors import Rejected

_LAST = (1 << 62) - 1
_POSITION = f"select coalesce(max(position), 0) as position from positions where projection = '{PROJECTION}'"  # noqa: S608  (a constant)
_KNOWN = """
from living_timelines t
left join living_revisions r on r.crate = t.crate and r.document_id = t.document_id and r.revision = t.revision
where t.crate = $1 and not t.erased and t.known_from <= $2 and (t.known_until is null or t.known_until > $2)
    and ($3::timestamptz is null or t.effective_at <= $3)
    and ($4::text[] is null or t.document_id = any($4))
    and t.document_id >= $5 and (t.document_id, t.revision) > ($5, $6::bigint)
"""
_TOLD = "t.*, coalesce(r.source_id, '') as source_id, coalesce(r.title, '') as title"
_EVERY = f"""
select p.position as applied, x.* from ({_POSITION}) p left join (
    select {_TOLD} {_KNOWN} order by t.document_id, t.revision limit $7
) x on true order by x.document_id, x.revision
"""  # noqa: S608  (constants)
_SHOWN = f"""
select p.position as applied, x.* from ({_POSITION}) p left join (
    select distinct on (t.document_id) {_TOLD} {_KNOWN} order by t.document_id, t.revision desc limit $7
) x on true order by x.document_id
"""  # noqa: S608  (constants)
_FIND = """
select document_id from living_revisions where crate = $1 and md5(source_id) = md5($2) and source_id = $2
order by document_id limit 1
"""
_HISTORY = """
select * from living_timelines where crate = $1 and document_id = $2 order by known_from, revision
"""


@contextmanager
def _asked() -> Iterator[None]:
    """Tell what Postgres can't compare with anything as the request's fault.

    Raises:
        Rejected: For a NUL character in a name.
        Unavailable: When Postgres doesn't answer.
    """
    try:
        with answering():
            yield
    except asyncpg.DataError as error:
        raise Rejected(f"a value of the request can't be looked up: {error}; names hold no NUL character") from error


class PostgresLivingReader:
    """See services.index.states.LivingReader."""

    def __init__(self, *, database: Database) -> None:
        self._pool = database.pool

    async def find(self, crate_id: str, source_id: str) -> str:
        """See LivingReader."""
        with _asked():
            return str(await self._pool.fetchval(_FIND, crate_id, source_id) or "")

    async def states(  # noqa: PLR0917  (one query)
        self,
        crate_id: str,
        at: int,
        effective_by: datetime | None,
        document_ids: Sequence[str] | None,
        after: tuple[str, int],
        limit: int,
        *,
        every: bool,
    ) -> tuple[int, tuple[Report, ...]]:
        """See LivingReader."""
        wanted = None if document_ids is None else list(document_ids)
        with _asked():
            rows = await self._pool.fetch(
                _EVERY if every else _SHOWN, crate_id, min(at or _LAST, _LAST), effective_by, wanted, *after, limit
            )
        found = tuple(
            Report(known=known_row(row), source_id=row["source_id"], title=row["title"])
            for row in rows
            if row["document_id"] is not None
        )
        return rows[0]["applied"], found

    async def history(self, crate_id: str, document_id: str) -> tuple[Known, ...]:
        """See LivingReader."""
        with _asked():
            rows = await self._pool.fetch(_HISTORY, crate_id, document_id)
        return tuple(known_row(row) for row in rows)
