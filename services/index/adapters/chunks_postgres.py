"""What requests read from Postgres: each answer is one statement, so it is one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.index.adapters.columns_postgres import description
from services.index.adapters.schema_postgres import PROJECTION, SELECT_GENERATIONS, force, generation, record_counts
from services.index.domain.content import (
    ChunkKey,
    Fetched,
    RecordCounts,
    RevisionPage,
    Standing,
    StoredChunk,
)
from services.index.domain.generations import Generation
from services.index.domain.records import Form, RevisionKey
from services.kernel.db import Database, answering

_POSITION = f"select coalesce(max(position), 0) as position from positions where projection = '{PROJECTION}'"  # noqa: S608  (a constant)
_TOLD = """r.title, r.source_id, r.source_domain, r.media_type, r.charset, r.uri, r.form, r.effective_at"""
_FORCE = "r.effective_from, r.in_force_until, r.gone_from, r.until_known_from, r.current, r.ingested_position"

_SELECT_STANDING = f"""
select p.position, x.*
from ({_POSITION}) p
left join (
    select r.document_id, r.revision, {_FORCE}
    from unnest($2::text[], $3::bigint[]) as k(document_id, revision)
    cross join lateral (select * from revisions r where r.crate = $1 and r.document_id = k.document_id
        and r.revision = k.revision and r.current is not null offset 0) r
) x on true
"""  # noqa: S608  (constants)
# `offset 0` keeps each key a look-up by primary key: without statistics the planner would rather read a whole crate.
_SELECT_CHUNKS = f"""
select p.position, x.*
from ({_POSITION}) p
left join (
    select k.number, c.document_id, c.revision, c.ordinal, c.chunk, case when $5 then c.terms else '' end as terms,
        k.statement, s.text as told, {_TOLD}, {_FORCE}
    from unnest($2::text[], $3::bigint[], $4::bigint[], $6::bigint[]) with ordinality
        as k(document_id, revision, ordinal, statement, number)
    cross join lateral (select * from revisions r where r.crate = $1 and r.document_id = k.document_id
        and r.revision = k.revision and r.current is not null offset 0) r
    cross join lateral (select * from chunks c where c.crate = $1 and c.document_id = k.document_id
        and c.revision = k.revision and c.ordinal = k.ordinal offset 0) c
    left join lateral (select text from statements s where s.crate = $1 and s.document_id = k.document_id
        and s.revision = k.revision and s.ordinal = k.ordinal and s.number = k.statement and k.statement > 0 offset 0) s
        on true
) x on true
order by x.number
"""  # noqa: S608  (constants)
_SELECT_PAGE = f"""
select r.document_id, r.revision, r.chunk_count, r.headings, {_TOLD}, {_FORCE}, c.ordinal, c.chunk, '' as terms,
    0 as statement, null as told
from revisions r
left join chunks c on c.crate = r.crate and c.document_id = r.document_id and c.revision = r.revision
    and c.ordinal >= $4::bigint and c.ordinal < $4 + $5::bigint
where r.crate = $1 and r.document_id = $2 and r.chunk_count is not null and r.revision = case when $3::bigint > 0 then $3 else
    (select d.current_revision from documents d where d.crate = $1 and d.document_id = $2) end
order by c.ordinal
"""  # noqa: S608  (constants)


class PostgresChunkReader:
    """See ports.ChunkReader."""

    def __init__(self, *, database: Database) -> None:
        self._pool = database.pool

    async def position(self) -> int:
        """See ChunkReader."""
        with answering():
            return int(await self._pool.fetchval(_POSITION))

    async def generations(self, crate_id: str) -> tuple[Generation, ...]:
        """See ChunkReader."""
        with answering():
            rows = await self._pool.fetch(SELECT_GENERATIONS, crate_id)
        return tuple(generation(row) for row in rows)

    async def standing(self, crate_id: str, keys: Sequence[RevisionKey]) -> Standing:
        """See ChunkReader."""
        documents, revisions = [document for document, _ in keys], [revision for _, revision in keys]
        with answering():
            rows = await self._pool.fetch(_SELECT_STANDING, crate_id, documents, revisions)
        return Standing(
            position=rows[0]["position"],
            forces={
                (row["document_id"], row["revision"]): force(row) for row in rows if row["document_id"] is not None
            },
        )

    async def fetch(self, crate_id: str, keys: Sequence[ChunkKey], *, with_terms: bool) -> Fetched:
        """See ChunkReader."""
        with answering():
            rows = await self._pool.fetch(
                _SELECT_CHUNKS,
                crate_id,
                [key.document_id for key in keys],
                [key.revision for key in keys],
                [key.ordinal for key in keys],
                with_terms,
                [key.statement for key in keys],
            )
        chunks = tuple(_stored(row) for row in rows if row["number"] is not None)
        return Fetched(position=rows[0]["position"], chunks=chunks)

    async def page(
        self, crate_id: str, document_id: str, revision: int, first_ordinal: int, limit: int
    ) -> RevisionPage | None:
        """See ChunkReader."""
        with answering():
            rows = await self._pool.fetch(_SELECT_PAGE, crate_id, document_id, revision, first_ordinal, limit)
        if not rows:
            return None
        return RevisionPage(
            revision=rows[0]["revision"],
            chunk_count=rows[0]["chunk_count"],
            headings=tuple(rows[0]["headings"]),
            chunks=tuple(_stored(row) for row in rows if row["chunk"] is not None),
        )

    async def record_counts(self, crate_id: str) -> RecordCounts:
        """See ChunkReader."""
        return await record_counts(self._pool, crate_id)


def _stored(row: Any) -> StoredChunk:
    return StoredChunk(
        key=ChunkKey(
            document_id=row["document_id"],
            revision=row["revision"],
            ordinal=row["ordinal"],
            statement=row["statement"],
        ),
        encoded=row["chunk"],
        description=description(row),
        form=Form(row["form"]),
        force=force(row),
        effective_at=row["effective_at"],
        ingested_position=row["ingested_position"],
        terms=tuple(row["terms"].split()),
        statement=row["told"] or "",
    )
