"""Receipts and tombstones in Postgres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import asyncpg

from services.kernel.db import Database, advance, answering
from services.kernel.digests import LogicalTable
from services.kernel.errors import Corrupt
from services.receipt.domain.chains import Head
from services.receipt.domain.drafts import erased_among
from services.receipt.ports import Delete, ErasedRow, Gone, Intent, ReceiptRow

RECEIPTS: Final = "receipts"
ERASURES: Final = "erasures"
MIGRATIONS: Final = (
    """
    create table receipts (
        crate text collate "C" not null,
        receipt_id bytea not null,
        chain_id bytea not null,
        sequence bigint not null,
        parent_id bytea not null,
        kid bytea not null,
        answer_id text not null,
        position bigint not null,
        cose bytea not null,
        answer_pack bytea,
        primary key (crate, receipt_id),
        unique (crate, sequence),
        unique (crate, parent_id)
    );
    create table citations (
        crate text collate "C" not null,
        receipt_id bytea not null,
        document_id text collate "C" not null,
        revision int not null,
        evidence_pack bytea,
        primary key (crate, receipt_id, document_id, revision)
    );
    create index citations_by_document on citations (crate, document_id);
    create table tombstones (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        revision int not null,
        primary key (crate, document_id)
    );
    create table intents (
        crate text collate "C" not null,
        receipt_id bytea not null,
        documents text[] not null,
        revisions int[] not null,
        intended_at timestamptz not null default now(),
        primary key (crate, receipt_id)
    );
    """,
)
# Intents are work in hand, and no projection of the log.
TABLES: Final = (
    LogicalTable(name="receipts", key=("crate", "sequence"), portable=False),
    LogicalTable(name="citations", key=("crate", "receipt_id", "document_id", "revision"), portable=False),
    LogicalTable(name="tombstones", key=("crate", "document_id")),
)
# Receipts and erasures follow two streams: one of them at a time, or each could miss what the other is adding.
_LOCK: Final = 0x72656370
_LOCK_TO_WRITE: Final = "select pg_advisory_xact_lock($1)"
_LOCK_TO_READ: Final = "select pg_advisory_xact_lock_shared($1)"
_ADD_RECEIPT: Final = """
insert into receipts values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing returning 1
"""
_ADD_CITATION: Final = "insert into citations values ($1, $2, $3, $4, $5)"
_TOMBSTONES: Final = "select document_id, revision from tombstones where crate = $1 and document_id = any($2)"
_ADD_TOMBSTONE: Final = """
insert into tombstones values ($1, $2, $3)
on conflict (crate, document_id) do update set revision = greatest(tombstones.revision, excluded.revision)
"""
_CITING: Final = "select distinct receipt_id from citations where crate = $1 and document_id = $2 and revision <= $3"
_CLOSE_ANSWERS: Final = "update receipts set answer_pack = null where crate = $1 and receipt_id = any($2)"
_CLOSE_EVIDENCE: Final = """
update citations set evidence_pack = null where crate = $1 and document_id = $2 and revision <= $3
"""

Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy"


class PostgresTables:
    """See Tables."""

    def __init__(self, *, database: Database, incarnations: Mapping[str, bytes]) -> None:
        self._database = database
        self._pool: asyncpg.Pool = database.pool
        self._incarnations = incarnations

    async def add(self, rows: Sequence[ReceiptRow], *, position: int, delete: Delete) -> None:
        """See Tables."""
        with answering():
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(_LOCK_TO_WRITE, _LOCK)
                for row in rows:
                    await self._add_one(connection, row, delete)
                await advance(connection, RECEIPTS, position, self._incarnations[RECEIPTS])

    async def erase(self, erased: Sequence[ErasedRow], *, position: int, delete: Delete) -> None:
        """See Tables."""
        with answering():
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(_LOCK_TO_WRITE, _LOCK)
                for one in erased:
                    await _erase_one(connection, one, delete)
                await advance(connection, ERASURES, position, self._incarnations[ERASURES])

    async def receipt(self, crate: str, receipt_id: bytes, *, settled: bool = False) -> ReceiptRow | None:
        """See Tables."""
        with answering():
            async with self._pool.acquire() as connection, connection.transaction(isolation="read_committed"):
                if settled:
                    await connection.execute(_LOCK_TO_READ, _LOCK)
                row = await connection.fetchrow(
                    "select * from receipts where crate = $1 and receipt_id = $2", crate, receipt_id
                )
                if row is None:
                    return None
                citations = await connection.fetch(
                    "select * from citations where crate = $1 and receipt_id = $2", crate, receipt_id
                )
        packs = {(one["document_id"], one["revision"]): one["evidence_pack"] for one in citations}
        return ReceiptRow(
            crate=crate,
            head=_head(row),
            parent_id=row["parent_id"],
            answer_id=row["answer_id"],
            position=row["position"],
            cose=row["cose"],
            answer_pack=row["answer_pack"],
            evidence_packs=packs,
        )

    async def last(self, crate: str) -> Head | None:
        """See Tables."""
        with answering():
            row = await self._pool.fetchrow(
                "select * from receipts where crate = $1 order by sequence desc limit 1", crate
            )
        return None if row is None else _head(row)

    async def tombstones(self, crate: str, documents: Sequence[str]) -> dict[str, int]:
        """See Tables."""
        with answering():
            rows = await self._pool.fetch(_TOMBSTONES, crate, list(documents))
        return {row["document_id"]: row["revision"] for row in rows}

    async def intend(self, intent: Intent) -> None:
        """See Tables."""
        documents, revisions = [one for one, _ in intent.cited], [one for _, one in intent.cited]
        with answering():
            await self._pool.execute(
                "insert into intents values ($1, $2, $3, $4) on conflict do nothing",
                intent.crate,
                intent.receipt_id,
                documents,
                revisions,
            )

    async def drop(self, intent: Intent) -> None:
        """See Tables."""
        with answering():
            await self._pool.execute(
                "delete from intents where crate = $1 and receipt_id = $2", intent.crate, intent.receipt_id
            )

    async def stale(self, before: datetime) -> tuple[Intent, ...]:
        """See Tables."""
        with answering():
            rows = await self._pool.fetch("select * from intents where intended_at < $1", before)
        return tuple(
            Intent(row["crate"], row["receipt_id"], tuple(zip(row["documents"], row["revisions"], strict=True)))
            for row in rows
        )

    async def position(self, projection: str) -> int:
        """See Tables."""
        with answering():
            return await self._database.position(projection, self._incarnations[projection])

    async def _add_one(self, connection: Connection, row: ReceiptRow, delete: Delete) -> None:
        cited = tuple(row.evidence_packs)
        known = await connection.fetch(_TOMBSTONES, row.crate, [document for document, _ in cited])
        tombstones = {one["document_id"]: one["revision"] for one in known}
        erased = set(erased_among(cited, tombstones))
        gone = tuple(one for one in cited if one[0] in erased and one[1] <= tombstones[one[0]])
        if gone:
            await delete(Gone(row.crate, (row.head.receipt_id,), gone))
        added = await connection.fetchval(
            _ADD_RECEIPT,
            row.crate,
            row.head.receipt_id,
            row.head.chain_id,
            row.head.sequence,
            row.parent_id,
            row.head.kid,
            row.answer_id,
            row.position,
            row.cose,
            None if gone else row.answer_pack,
        )
        if added is None:
            await _check_same(connection, row)
            return
        for (document_id, revision), pack in row.evidence_packs.items():
            kept = None if (document_id, revision) in gone else pack
            await connection.execute(_ADD_CITATION, row.crate, row.head.receipt_id, document_id, revision, kept)
        await connection.execute(
            "delete from intents where crate = $1 and receipt_id = $2", row.crate, row.head.receipt_id
        )


async def _check_same(connection: Connection, row: ReceiptRow) -> None:
    known = await connection.fetchval(
        "select 1 from receipts where crate = $1 and receipt_id = $2", row.crate, row.head.receipt_id
    )
    if known is None:
        raise Corrupt(
            f"receipt {row.head.receipt_id.hex()} forks the chain of crate {row.crate} at {row.head.sequence}: "
            "the first one stands, see `affidavit doctor`"
        )


async def _erase_one(connection: Connection, one: ErasedRow, delete: Delete) -> None:
    await connection.execute(_ADD_TOMBSTONE, one.crate, one.document_id, one.revision)
    citing = [row[0] for row in await connection.fetch(_CITING, one.crate, one.document_id, one.revision)]
    # Every revision, not only cited ones: a crash may have left evidence that no receipt names.
    revisions = tuple((one.document_id, revision) for revision in range(1, one.revision + 1))
    await delete(Gone(one.crate, tuple(citing), revisions))
    await connection.execute(_CLOSE_ANSWERS, one.crate, citing)
    await connection.execute(_CLOSE_EVIDENCE, one.crate, one.document_id, one.revision)


def _head(row: Any) -> Head:
    return Head(row["chain_id"], row["sequence"], row["receipt_id"], row["kid"])
