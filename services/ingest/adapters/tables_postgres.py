"""Tables in Postgres: what the projections keep and everybody reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from services.ingest.adapters import rows_postgres as rows
from services.ingest.adapters import writer_postgres
from services.ingest.domain.documents import Status
from services.ingest.domain.values import (
    Counts,
    CrateView,
    DocumentView,
    FailureView,
    JobRow,
    Page,
    Placed,
    PutState,
    Selection,
    UnderWay,
    Usage,
)
from services.kernel.db import Database, advance, answering

# Both projections move the same documents' status, so that only one of them may be at it at a time.
_LOCK: Final = "select pg_advisory_xact_lock(1768843109)"
_PUT_STATE: Final = """
select c.max_input_chars, j.size_chars job_size, j.overlap_chars job_overlap,
    $2 document_id, d.revision, d.status, d.sequence, d.position, r.content_digest, r.size_chars, r.overlap_chars,
    r.source_pack, r.source_bytes, r.form, r.effective_at, r.ingested_at,
    s.document_id submitted_document, s.revision submitted_revision, s.outcome submitted_outcome,
    s.position submitted_position
from crates c
left join jobs j on j.crate_id = c.crate_id and j.job_id = $3
left join documents d on d.crate_id = c.crate_id and d.document_id = $2
left join revisions r on r.crate_id = c.crate_id and r.document_id = $2 and r.revision = d.revision
left join submissions s on s.crate_id = c.crate_id and s.submission = $4
where c.crate_id = $1
"""
_CRATES: Final = """
select c.*, (select count(*) from documents d where d.crate_id = c.crate_id and d.status <> 'erased') documents
from crates c where $1::text is null or c.crate_id = $1 order by c.crate_id
"""
_DOCUMENTS: Final = """
select * from documents where crate_id = $1 and (sort_key, document_id) > ($2, $3)
    and (cardinality($4::text[]) = 0 or status = any($4)) and ($5 = '' or job_id = $5)
order by sort_key, document_id limit $6
"""
_CURRENT: Final = """
select r.* from revisions r join unnest($2::text[], $3::int[]) k (document_id, revision) using (document_id, revision)
where r.crate_id = $1
"""
_MISSING: Final = """
select 'job ' || $2 where $2 <> '' and not exists (select from jobs j where j.crate_id = $1 and j.job_id = $2)
union all
select 'document ' || k.id from unnest($3::text[]) k (id)
where not exists (select from documents d where d.crate_id = $1 and d.document_id = k.id)
limit 1
"""
_STATUSES: Final = """
select status, count(*) documents from documents
where crate_id = $1 and ($2 = '' or job_id = $2) and ($3::text[] is null or document_id = any($3)) group by status
"""
# What is embedded of a document that isn't finished is only told, for one revision with one set of chunks.
_WORK: Final = """
select coalesce(sum(r.chunks), 0) chunks,
    coalesce(sum(case when r.embedded_at > 0 then r.records when r.chunks is null then 0
        else least(coalesce(p.done, 0), r.chunks) end), 0)::bigint records
from documents d join revisions r using (crate_id, document_id, revision)
left join unnest($4::text[], $5::text[], $6::bigint[]) p (document_id, task, done)
    on p.document_id = d.document_id and p.task = r.revision || ':' || r.settings_digest
where d.crate_id = $1 and d.status = 'pending' and ($2 = '' or d.job_id = $2)
    and ($3::text[] is null or d.document_id = any($3))
"""
_FAILURES: Final = """
select f.*, coalesce(d.source_id, '') source_id from failures f
left join documents d using (crate_id, document_id)
where f.crate_id = $1 and f.failure_id < $2 and (f.state = 'open' or not $4) and d.status is distinct from 'erased'
order by f.failure_id desc limit $3
"""
_USAGE: Final = """
select (select count(*) from documents where crate_id = $1 and status <> 'erased') documents,
    (select coalesce(sum(source_bytes), 0)::bigint from revisions where crate_id = $1) size_bytes
"""
_FAILURE: Final = """
select f.*, coalesce(d.source_id, '') source_id from failures f
left join documents d using (crate_id, document_id)
where f.crate_id = $1 and f.failure_id = $2
"""
_NEWEST: Final = 2**62


_P = ParamSpec("_P")
_T = TypeVar("_T")


def _answering(method: Callable[_P, Awaitable[_T]]) -> Callable[_P, Coroutine[None, None, _T]]:
    """Tell a Postgres that is away as Unavailable: the same call may succeed later."""

    @wraps(method)
    async def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with answering():
            return await method(*args, **kwargs)

    return call


class PostgresTables:
    """See `Tables`."""

    def __init__(self, *, database: Database, incarnations: Mapping[str, bytes]) -> None:
        """Keep what is needed to read and write.

        Args:
            database: The service's schema.
            incarnations: Of the stream that each projection follows, by projection.
        """
        self._database = database
        self._pool = database.pool
        self._incarnation = incarnations

    @_answering
    async def position(self, projection: str) -> int:
        """See `Tables`."""
        return await self._database.position(projection, self._incarnation[projection])

    @_answering
    async def apply(self, projection: str, position: int, facts: Sequence[Placed]) -> None:
        """See `Tables`."""
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK)
            stored = await connection.fetchval("select position from positions where projection = $1", projection) or 0
            fresh = [placed.fact for placed in facts if placed.place > stored]
            if fresh:
                await writer_postgres.write(connection, fresh)
            await advance(connection, projection, position, self._incarnation[projection])

    @_answering
    async def put_state(self, crate_id: str, document_id: str, job_id: str, submission: str) -> PutState | None:
        """See `Tables`."""
        row = await self._pool.fetchrow(_PUT_STATE, crate_id, document_id, job_id, submission)
        return rows.put_state(row, job_named=bool(job_id)) if row else None

    @_answering
    async def crate(self, crate_id: str) -> CrateView | None:
        """See `Tables`."""
        row = await self._pool.fetchrow(_CRATES, crate_id)
        return rows.crate_view(row) if row else None

    @_answering
    async def crates(self) -> tuple[CrateView, ...]:
        """See `Tables`."""
        return tuple(rows.crate_view(row) for row in await self._pool.fetch(_CRATES, None))

    @_answering
    async def jobs(self, crate_id: str) -> tuple[JobRow, ...]:
        """See `Tables`."""
        found = await self._pool.fetch("select * from jobs where crate_id = $1 order by job_id", crate_id)
        return tuple(rows.job_row(row) for row in found)

    @_answering
    async def document(self, crate_id: str, document_id: str) -> DocumentView | None:
        """See `Tables`."""
        async with self._pool.acquire() as connection, connection.transaction(isolation="repeatable_read"):
            key = (crate_id, document_id)
            row = await connection.fetchrow("select * from documents where crate_id = $1 and document_id = $2", *key)
            if row is None:
                return None
            found = await connection.fetch(
                "select * from revisions where crate_id = $1 and document_id = $2 order by revision desc", *key
            )
        return rows.document_view(row, tuple(rows.revision_state(each, manifest=True) for each in found))

    @_answering
    async def documents(
        self, crate_id: str, page: Page, statuses: Sequence[Status], job_id: str
    ) -> tuple[tuple[DocumentView, ...], tuple[str, ...]]:
        """See `Tables`."""
        after = page.after or ("", "")
        async with self._pool.acquire() as connection, connection.transaction(isolation="repeatable_read"):
            found = await connection.fetch(_DOCUMENTS, crate_id, *after, list(statuses), job_id, page.size + 1)
            shown = found[: page.size]
            keys = [[row[column] for row in shown] for column in ("document_id", "revision")]
            current = {row["document_id"]: row for row in await connection.fetch(_CURRENT, crate_id, *keys)}
        views = tuple(rows.document_view(row, _current(current.get(row["document_id"]))) for row in shown)
        more = len(found) > page.size
        return views, (shown[-1]["sort_key"], shown[-1]["document_id"]) if more else ()

    @_answering
    async def missing(self, crate_id: str, job_id: str, document_ids: Sequence[str]) -> str:
        """See `Tables`."""
        found: str | None = await self._pool.fetchval(_MISSING, crate_id, job_id, list(document_ids))
        return found or ""

    @_answering
    async def counts(self, selection: Selection, under_way: Sequence[UnderWay] = ()) -> Counts:
        """See `Tables`."""
        named = list(selection.document_ids) or None
        arguments = (selection.crate_id, selection.job_id, named)
        async with self._pool.acquire() as connection, connection.transaction(isolation="repeatable_read"):
            statuses = {row["status"]: row["documents"] for row in await connection.fetch(_STATUSES, *arguments)}
            pending = statuses.get(Status.PENDING, 0)
            work: Any = {"chunks": 0, "records": 0}
            if pending:
                told = [[getattr(each, name) for each in under_way] for name in ("document_id", "task", "done")]
                work = await connection.fetchrow(_WORK, *arguments, *told)
            watermark = await connection.fetchval(
                "select max(applied) from reported where crate_id = $1", selection.crate_id
            )
        return Counts(
            pending=pending,
            searchable=statuses.get(Status.SEARCHABLE, 0),
            empty=statuses.get(Status.EMPTY, 0),
            failed=statuses.get(Status.FAILED, 0),
            chunks_total=work["chunks"],
            chunks_embedded=work["records"],
            watermark=watermark or 0,
        )

    @_answering
    async def usage(self, crate_id: str) -> Usage:
        """See `Tables`."""
        row = await self._pool.fetchrow(_USAGE, crate_id)
        return Usage(row["documents"], row["size_bytes"])

    @_answering
    async def failure(self, crate_id: str, failure_id: int) -> FailureView | None:
        """See `Tables`."""
        row = await self._pool.fetchrow(_FAILURE, crate_id, min(failure_id, _NEWEST))
        return rows.failure_view(row) if row else None

    @_answering
    async def failures(
        self, crate_id: str, page: Page, *, open_only: bool
    ) -> tuple[tuple[FailureView, ...], tuple[str, ...]]:
        """See `Tables`."""
        before = int(page.after[0]) if page.after else _NEWEST
        found = await self._pool.fetch(_FAILURES, crate_id, before, page.size + 1, open_only)
        shown = found[: page.size]
        more = len(found) > page.size
        views = tuple(map(rows.failure_view, shown))
        return views, (str(shown[-1]["failure_id"]),) if more else ()


def _current(row: rows.Row | None) -> tuple[Any, ...]:
    return (rows.revision_state(row, manifest=True),) if row else ()
