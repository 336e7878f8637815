"""Tables of the index in Postgres, and how their failures are told."""

from __future__ import annotations

from typing import Any

import asyncpg

from services.index.adapters.living_schema_postgres import LIVING_CONTENT, LIVING_MIGRATIONS, LIVING_TABLES
from services.index.domain.content import RecordCounts
from services.index.domain.force import Force
from services.index.domain.generations import Generation, GenerationStart, GenerationStatus
from services.kernel.db import answering
from services.kernel.digests import LogicalTable

PROJECTION = "lanes"
MIGRATIONS = (
    """
    create table documents (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        status text not null,
        latest_revision bigint not null,
        latest_digest text not null,
        current_revision bigint not null,
        current_digest text not null,
        current_count bigint not null,
        retired boolean not null,
        erased_revision bigint not null,
        primary key (crate, document_id)
    );
    create table revisions (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        revision bigint not null,
        settings_digest text not null,
        form text not null,
        effective_at timestamptz,
        ingested_position bigint not null,
        embedded_position bigint,
        embedded_digest text,
        generation bigint,
        chunk_count bigint,
        chunks_pack bytea,
        vectors_pack bytea,
        model_id text,
        dimension bigint,
        title text,
        source_id text,
        source_domain text,
        media_type text,
        charset text,
        uri text,
        headings text[],
        primary key (crate, document_id, revision)
    );
    create index revisions_by_embedding on revisions (embedded_position);
    create table chunks (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        revision bigint not null,
        ordinal bigint not null,
        chunk bytea not null,
        terms text not null,
        primary key (crate, document_id, revision, ordinal)
    ) with (toast_tuple_target = 8160);
    -- Chunks are read far more often than their size matters.
    alter table chunks alter column chunk set storage external, alter column terms set storage external;
    create table generations (
        crate text collate "C" not null,
        generation bigint not null,
        status text not null,
        model_id text not null,
        dimension bigint not null,
        model_fingerprint text not null,
        retrieval_strategy text not null,
        prompt_version text not null,
        started_at timestamptz not null,
        started_position bigint not null,
        lane_position bigint not null default 0,
        primary key (crate, generation)
    );
    create table outbox (
        number bigint generated always as identity primary key,
        crate text not null,
        document_id text not null,
        revision bigint not null,
        settings_digest text not null,
        generation bigint not null,
        record_count bigint not null,
        position bigint not null
    );
    """,
    # The planner keeps sample values of columns, which would outlive the documents that they come from.
    """
    alter table revisions alter title set statistics 0, alter source_id set statistics 0,
        alter source_domain set statistics 0, alter uri set statistics 0, alter headings set statistics 0;
    alter table chunks alter chunk set statistics 0, alter terms set statistics 0;
    """,
    # Revisions that were replaced or retired before have no terms here and no records in the lanes: the log is read anew.
    f"""
    alter table revisions
        add effective_from bigint not null default 0,
        add in_force_until bigint,
        add gone_from bigint,
        add until_known_from bigint,
        add current boolean;
    truncate documents, revisions, chunks, generations, outbox;
    delete from positions where projection = '{PROJECTION}';
    """,  # noqa: S608  (a constant)
    *LIVING_MIGRATIONS,
    """
    alter table revisions add evaluations_pack bytea not null default '', add statement_count bigint not null default 0;
    -- Whether the chunk is a record itself.
    alter table chunks add alone boolean not null default true;
    create table statements (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        revision bigint not null,
        ordinal bigint not null,
        number bigint not null,
        text text not null,
        primary key (crate, document_id, revision, ordinal, number)
    );
    alter table statements alter text set statistics 0;
    """,
)
# Tables that hold content, which a scrub rewrites.
CONTENT = ("revisions", "chunks", "statements", *LIVING_CONTENT)

_DOCUMENT = ("crate", "document_id")
_REVISION = (*_DOCUMENT, "revision")
# Signals that are still to be sent are work in hand, and no projection of the log.
TABLES = (
    LogicalTable(name="documents", key=_DOCUMENT, history=("latest_digest", "current_digest")),
    LogicalTable(
        name="revisions",
        key=_REVISION,
        history=(
            "settings_digest",
            "effective_at",
            "effective_from",
            "in_force_until",
            "gone_from",
            "ingested_position",
            "embedded_position",
            "embedded_digest",
            "chunks_pack",
            "vectors_pack",
            "evaluations_pack",
        ),
        # What was known because of a document that is erased by now can't be read anew.
        ignored=("until_known_from",),
    ),
    LogicalTable(name="chunks", key=(*_REVISION, "ordinal")),
    LogicalTable(name="statements", key=(*_REVISION, "ordinal", "number")),
    LogicalTable(
        name="generations",
        key=("crate", "generation"),
        history=("started_at", "started_position"),
        # Where a batch ended.
        ignored=("lane_position",),
    ),
    *LIVING_TABLES,
)

_COUNT = """
select coalesce(sum(current_count), 0) as chunks, count(*) filter (where current_count > 0) as documents
from documents where crate = $1 and current_revision > 0
"""
SELECT_GENERATIONS = "select * from generations where crate = $1 order by generation"


def generation(row: Any) -> Generation:
    """Read a row of generations."""
    return Generation(
        start=GenerationStart(
            generation=row["generation"],
            model_id=row["model_id"],
            dimension=row["dimension"],
            model_fingerprint=row["model_fingerprint"],
            retrieval_strategy=row["retrieval_strategy"],
            prompt_version=row["prompt_version"],
            started_at=row["started_at"],
            position=row["started_position"],
        ),
        status=GenerationStatus(row["status"]),
        lane_position=row["lane_position"],
    )


def force(row: Any) -> Force:
    """Read when a stored revision counts from its row of revisions."""
    return Force(
        effective_from=row["effective_from"],
        in_force_until=row["in_force_until"],
        gone_from=row["gone_from"],
        until_known_from=row["until_known_from"],
        position=row["ingested_position"],
        current=row["current"],
    )


async def record_counts(pool: asyncpg.Pool, crate_id: str) -> RecordCounts:
    """Count the records of a crate's current revisions."""
    with answering():
        row = await pool.fetchrow(_COUNT, crate_id)
    return RecordCounts(chunks=int(row["chunks"]), documents=int(row["documents"]))
