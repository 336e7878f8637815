"""The projection's rows in Postgres: one transaction per batch, bulk statements, COPY for chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from services.index.adapters import columns_postgres as columns
from services.index.adapters.living_postgres import write_living
from services.index.adapters.schema_postgres import PROJECTION, SELECT_GENERATIONS, generation, record_counts
from services.index.domain.content import (
    CrateRows,
    Evaluated,
    KnownRevision,
    RecordCounts,
    RevisionContent,
    ShownRevision,
    Statement,
)
from services.index.domain.documents import DocumentState
from services.index.domain.generations import Generation, GenerationFact, GenerationStart
from services.index.domain.records import RevisionKey
from services.kernel import scrub
from services.kernel.db import Database, advance, answering

# asyncpg encodes a COPY on the event loop: slices keep each turn to some milliseconds.
_COPY_ROWS = 1_000

# `offset 0` keeps each key a look-up by primary key: without statistics the planner would rather read a whole crate.
_SELECT_STATES = """
select d.*, k.revision as asked, r.settings_digest
from unnest($2::text[], $3::bigint[]) as k(document_id, revision)
cross join lateral (select * from documents d where d.crate = $1 and d.document_id = k.document_id offset 0) d
left join lateral (select settings_digest from revisions r where r.crate = $1 and r.document_id = k.document_id
    and r.revision = k.revision offset 0) r on true
"""
_ERASE = "delete from {table} where crate = $1 and document_id = $2 and revision <= $3"
_CLEAR = "delete from {table} where crate = $1 and document_id = $2 and revision = $3"
# Content of a revision below its own row.
_PARTS = ("chunks", "statements")
_CHUNK = ("crate", "document_id", "revision", "ordinal", "chunk", "terms", "alone")
_STATEMENT = ("crate", "document_id", "revision", "ordinal", "number", "text")
_PUT_INGESTED = """
insert into revisions (crate, document_id, revision, settings_digest, form, effective_at, effective_from,
    ingested_position)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (crate, document_id, revision) do update set settings_digest = excluded.settings_digest, form = excluded.form
"""
_PUT_FORCE = """
update revisions set effective_from = $4, in_force_until = $5, current = $6, gone_from = $7, until_known_from = $8
where crate = $1 and document_id = $2 and revision = $3
"""
_PUT_EMBEDDED = """
update revisions set embedded_position = $4, embedded_digest = $5, generation = $6, chunk_count = $7, chunks_pack = $8,
    vectors_pack = $9, model_id = $10, dimension = $11, form = $12, title = $13, source_id = $14, source_domain = $15,
    media_type = $16, charset = $17, uri = $18, headings = $19,
    evaluations_pack = $20, statement_count = $21,
    effective_from = $22, in_force_until = $23, current = $24, gone_from = $25, until_known_from = $26
where crate = $1 and document_id = $2 and revision = $3
"""
_PUT_DOCUMENT = """
insert into documents values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (crate, document_id) do update set status = excluded.status, latest_revision = excluded.latest_revision,
    latest_digest = excluded.latest_digest, current_revision = excluded.current_revision,
    current_digest = excluded.current_digest, current_count = excluded.current_count, retired = excluded.retired,
    erased_revision = excluded.erased_revision
"""
_PUT_SIGNAL = """
insert into outbox (crate, document_id, revision, settings_digest, generation, record_count, position)
values ($1, $2, $3, $4, $5, $6, $7)
"""
_PUT_GENERATION = """
insert into generations (crate, generation, status, model_id, dimension, model_fingerprint, retrieval_strategy,
    prompt_version, started_at, started_position)
values ($1, $2, 'building', $3, $4, $5, $6, $7, $8, $9) on conflict (crate, generation) do nothing
"""
_END_GENERATION = "update generations set status = $3 where crate = $1 and generation = $2 and status <> 'failed'"
_MOVE_LANES = "update generations set lane_position = $3 where crate = $1 and generation = any($2::bigint[])"
_SELECT_SHOWN = """
select * from revisions
where crate = $1 and generation = $2 and embedded_position > $3 and chunk_count > 0
order by embedded_position limit $4
"""
_SELECT_SHOWN_OF = """
select r.* from unnest($2::text[], $3::bigint[]) as k(document_id, revision)
cross join lateral (select * from revisions r where r.crate = $1 and r.document_id = k.document_id
    and r.revision = k.revision and r.embedded_position is not null offset 0) r
"""
_SELECT_KNOWN = """
select r.* from unnest($2::text[]) as k(document_id)
cross join lateral (select document_id, revision, effective_from, ingested_position,
    embedded_position is not null as stored
    from revisions r where r.crate = $1 and r.document_id = k.document_id offset 0) r
"""


class PostgresTables:
    """See ports.Tables."""

    def __init__(self, *, database: Database, incarnation: bytes) -> None:
        self._database = database
        self._incarnation = incarnation

    async def position(self) -> int:
        """See Tables."""
        with answering():
            return await self._database.position(PROJECTION, self._incarnation)

    async def states(
        self, crate_id: str, document_ids: Sequence[str], revisions: Sequence[int]
    ) -> dict[str, DocumentState]:
        """See Tables."""
        with answering():
            rows = await self._database.pool.fetch(_SELECT_STATES, crate_id, document_ids, revisions)
        digests: dict[str, dict[int, str]] = {}
        for row in rows:
            known = digests.setdefault(row["document_id"], {})
            if row["settings_digest"] is not None:
                known[row["asked"]] = row["settings_digest"]
        return {row["document_id"]: columns.state(row, digests[row["document_id"]]) for row in rows}

    async def known_revisions(self, crate_id: str, document_ids: Sequence[str]) -> dict[str, tuple[KnownRevision, ...]]:
        """See Tables."""
        with answering():
            rows = await self._database.pool.fetch(_SELECT_KNOWN, crate_id, document_ids)
        found: dict[str, list[KnownRevision]] = {}
        for row in rows:
            found.setdefault(row["document_id"], []).append(columns.known(row))
        return {document_id: tuple(revisions) for document_id, revisions in found.items()}

    async def generations(self, crate_id: str) -> tuple[Generation, ...]:
        """See Tables."""
        with answering():
            rows = await self._database.pool.fetch(SELECT_GENERATIONS, crate_id)
        return tuple(generation(row) for row in rows)

    async def commit(self, rows: Sequence[CrateRows], position: int, before: Callable[[], Awaitable[None]]) -> None:
        """See Tables."""
        with answering():
            async with self._database.pool.acquire() as connection, connection.transaction():
                for crate in rows:
                    await _write(connection, crate, position)
                    if crate.living is not None:
                        await write_living(connection, crate.living)
                await advance(connection, PROJECTION, position, self._incarnation)
                await before()

    async def crates(self) -> tuple[str, ...]:
        """See Tables."""
        with answering():
            rows = await self._database.pool.fetch("select distinct crate from generations order by crate")
        return tuple(row["crate"] for row in rows)

    async def shown(self, crate_id: str, generation: int, after: int, limit: int) -> tuple[ShownRevision, ...]:
        """See Tables."""
        with answering():
            rows = await self._database.pool.fetch(_SELECT_SHOWN, crate_id, generation, after, limit)
        return tuple(columns.shown(row) for row in rows)

    async def shown_of(self, crate_id: str, keys: Sequence[RevisionKey]) -> tuple[ShownRevision, ...]:
        """See Tables."""
        documents, revisions = [document for document, _ in keys], [revision for _, revision in keys]
        with answering():
            rows = await self._database.pool.fetch(_SELECT_SHOWN_OF, crate_id, documents, revisions)
        return tuple(columns.shown(row) for row in rows)

    async def chunks_of(self, crate_id: str, document_id: str, revision: int) -> tuple[bytes, ...]:
        """See Tables."""
        with answering():
            rows = await self._database.pool.fetch(
                "select chunk from chunks where crate = $1 and document_id = $2 and revision = $3 order by ordinal",
                crate_id,
                document_id,
                revision,
            )
        return tuple(row["chunk"] for row in rows)

    async def evaluated(self, crate_id: str, document_id: str, revision: int) -> Evaluated:
        """See Tables."""
        names = (crate_id, document_id, revision)
        where = "where crate = $1 and document_id = $2 and revision = $3"
        with answering():
            async with self._database.pool.acquire() as connection, connection.transaction(isolation="repeatable_read"):
                alone = await connection.fetch(f"select ordinal from chunks {where} and alone", *names)  # noqa: S608  (a constant)
                told = await connection.fetch(f"select * from statements {where} order by ordinal, number", *names)  # noqa: S608  (a constant)
        return Evaluated(
            alone=frozenset(row["ordinal"] for row in alone),
            statements=tuple(Statement(row["ordinal"], row["number"], row["text"]) for row in told),
        )

    async def terms(self, crate_id: str) -> AsyncIterator[str]:
        """Terms of the stored chunks of a crate, each of them as often as chunks have it."""
        with answering():
            async with self._database.pool.acquire() as connection, connection.transaction():
                query = "select terms from chunks where crate = $1"
                async for row in connection.cursor(query, crate_id, prefetch=_COPY_ROWS):
                    for term in row["terms"].split():
                        yield term

    async def record_counts(self, crate_id: str) -> RecordCounts:
        """See Tables."""
        return await record_counts(self._database.pool, crate_id)


async def _write(connection: Any, rows: CrateRows, position: int) -> None:
    crate, plan = rows.crate_id, rows.plan
    for table in (*_PARTS, "revisions"):
        await connection.executemany(
            _ERASE.format(table=table), [(crate, document_id, revision) for document_id, revision in plan.erased]
        )
    await scrub.note(connection, crate, plan.erased)
    await connection.executemany(
        _PUT_INGESTED,
        [columns.ingested(crate, fact) for fact in plan.ingested],
    )
    await _write_contents(connection, rows)
    moved = [(key, held) for key, held in rows.forces.items() if key not in rows.contents]
    await connection.executemany(_PUT_FORCE, [(crate, *key, *columns.force(held)) for key, held in moved])
    await connection.executemany(_PUT_DOCUMENT, [columns.document(crate, state) for state in plan.states])
    await connection.executemany(_PUT_SIGNAL, [columns.signal(crate, fact) for fact in plan.indexed])
    for fact in rows.generations:
        await _write_generation(connection, crate, fact)
    if rows.lanes_changed:
        await connection.execute(_MOVE_LANES, crate, rows.lanes_changed, position)


async def _write_contents(connection: Any, rows: CrateRows) -> None:
    crate, stored = rows.crate_id, rows.plan.stored
    if not stored:
        return
    contents = [(fact, rows.contents[fact.document_id, fact.revision]) for fact in stored]
    await connection.executemany(
        _PUT_EMBEDDED,
        [
            (
                *columns.revision(crate, fact, content.description),
                *columns.force(rows.forces[fact.document_id, fact.revision]),
            )
            for fact, content in contents
        ],
    )
    for table in _PARTS:
        await connection.executemany(
            _CLEAR.format(table=table), [(crate, fact.document_id, fact.revision) for fact in stored]
        )
    for table, names, rows_of in (("chunks", _CHUNK, _chunks), ("statements", _STATEMENT, _statements)):
        told = (
            (crate, fact.document_id, fact.revision, *row) for fact, content in contents for row in rows_of(content)
        )
        while slice_ := list(islice(told, _COPY_ROWS)):
            await connection.copy_records_to_table(table, records=slice_, columns=names)


def _chunks(content: RevisionContent) -> Iterator[tuple[int, bytes, str, bool]]:
    terms = content.terms or ("",) * len(content.chunks)
    evaluated = content.evaluated
    for ordinal, (chunk, distinct) in enumerate(zip(content.chunks, terms, strict=True)):
        yield ordinal, chunk, distinct, evaluated is None or ordinal in evaluated.alone


def _statements(content: RevisionContent) -> Iterator[tuple[int, int, str]]:
    for each in content.evaluated.statements if content.evaluated else ():
        yield each.ordinal, each.number, each.text


async def _write_generation(connection: Any, crate: str, fact: GenerationFact) -> None:
    if not isinstance(fact, GenerationStart):
        await connection.execute(_END_GENERATION, crate, fact.generation, fact.status)
        return
    await connection.execute(
        _PUT_GENERATION,
        crate,
        fact.generation,
        fact.model_id,
        fact.dimension,
        fact.model_fingerprint,
        fact.retrieval_strategy,
        fact.prompt_version,
        fact.started_at,
        fact.position,
    )
