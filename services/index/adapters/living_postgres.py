"""Living states in Postgres: the facts that graphs are rebuilt from, and timelines by log position."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.index.codec.living import decode_rules, decode_spans, encode_rules, encode_spans
from services.index.domain.force import NEVER
from services.index.domain.living.changes import Known, LivingChange, StateChange, Stored, Told, force_of, has_gap
from services.index.domain.living.values import (
    Erased,
    Fact,
    Retired,
    RevisionFacts,
    Rules,
    Statement,
    Timeline,
)
from services.kernel.db import Database, answering

_OPEN = "select * from living_timelines where crate = $1 and known_until is null and not erased"
_INSERT_REVISION = """
insert into living_revisions values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (crate, document_id, revision) do update set position = excluded.position,
    effective_at = excluded.effective_at, recorded_at = excluded.recorded_at, source_id = excluded.source_id,
    title = excluded.title, source_domain = excluded.source_domain, uri = excluded.uri,
    metadata = excluded.metadata, links = excluded.links
where excluded.position < living_revisions.position
"""
_INSERT_STATEMENT = """
insert into living_statements values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing
"""
_INSERT_RETIREMENT = "insert into living_retirements values ($1, $2, $3, $4) on conflict do nothing"
_INSERT_ERASURE = "insert into living_erasures values ($1, $2, $3, $4) on conflict do nothing"
_ERASE_REVISIONS = "delete from living_revisions where crate = $1 and document_id = $2 and revision <= $3"
_ERASE_TIMELINES = """
delete from living_timelines where crate = $1 and document_id = $2 and revision <= $3 and not erased and known_from < $4
"""
_UPSERT_RULES = """
insert into living_crates (crate, rules_position, rules) values ($1, $2, $3)
on conflict (crate) do update set rules_position = excluded.rules_position, rules = excluded.rules
where living_crates.rules_position < excluded.rules_position
"""
_UPSERT_CLOCK = """
insert into living_crates (crate, clock) values ($1, $2)
on conflict (crate) do update set clock = greatest(living_crates.clock, excluded.clock)
"""
# `offset 0` keeps each key a look-up by primary key: without statistics the planner would rather read a whole crate.
_OPEN_OF = """
select k.document_id, k.revision from unnest($2::text[], $3::bigint[]) as k(document_id, revision)
cross join lateral (select 1 from living_timelines t where t.crate = $1 and t.document_id = k.document_id
    and t.revision = k.revision and t.known_until is null offset 0) t
"""
_CLOSE = """
update living_timelines set known_until = $4
where crate = $1 and document_id = $2 and revision = $3 and known_until is null and known_from < $4
"""
_INSERT_SIGNAL = """
insert into living_outbox (crate, document_id, revision, before, after, position) values ($1, $2, $3, $4, $5, $6)
"""
_INSERT_TIMELINE = """
insert into living_timelines values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
on conflict (crate, document_id, revision, known_from) do nothing
"""


class PostgresLivingTables:
    """See services.index.living.LivingTables."""

    def __init__(self, *, database: Database) -> None:
        self._pool = database.pool

    async def load(self, crate_id: str) -> Stored:
        """See LivingTables."""
        with answering():
            async with self._pool.acquire() as connection, connection.transaction(isolation="repeatable_read"):
                facts: list[Fact] = []
                for table, made in _FACTS.items():
                    rows = await connection.fetch(f"select * from {table} where crate = $1", crate_id)  # noqa: S608  (a constant)
                    facts += [made(row) for row in rows]
                known = await connection.fetch(_OPEN, crate_id)
                crate = await connection.fetchrow("select * from living_crates where crate = $1", crate_id)
        if crate is not None and crate["rules_position"]:
            facts.append(decode_rules(crate["rules"], crate["rules_position"]))
        return Stored(
            facts=tuple(facts), known=tuple(known_row(row) for row in known), clock=crate["clock"] if crate else None
        )


async def write_living(connection: Any, change: LivingChange) -> None:
    """Write a change within the caller's transaction. Writing it again changes nothing but signals.

    Args:
        connection: Inside the transaction that also moves the projection's position.
        change: From Living.prepare.
    """
    crate = change.crate_id
    for statement, rows in _writes(crate, change.told).items():
        if rows:
            await connection.executemany(statement, rows)
    if change.clock is not None:
        await connection.execute(_UPSERT_CLOCK, crate, change.clock)
    rows_of = [_timeline_row(crate, row) for row in change.timelines]
    if rows_of:
        await _close(connection, rows_of)
        await connection.executemany(_INSERT_TIMELINE, rows_of)
    erased = [one.fact for one in change.told if isinstance(one.fact, Erased)]
    if erased:
        gone = [(crate, fact.document_id, fact.revision) for fact in erased]
        await connection.executemany(_ERASE_REVISIONS, gone)
        ends = [(crate, fact.document_id, fact.revision, fact.position) for fact in erased]
        await connection.executemany(_ERASE_TIMELINES, ends)
    if change.seen:
        await connection.executemany(_INSERT_SIGNAL, [(crate, *_signal(seen)) for seen in change.seen])


async def _close(connection: Any, rows: Sequence[tuple[object, ...]]) -> None:
    """Let open rows end where new ones begin. Most revisions are new and have none."""
    columns = (rows[0][0], [row[1] for row in rows], [row[2] for row in rows])
    found = {tuple(row) for row in await connection.fetch(_OPEN_OF, *columns)}
    await connection.executemany(_CLOSE, [row[:4] for row in rows if row[1:3] in found])


def _signal(seen: StateChange) -> tuple[object, ...]:
    return seen.document_id, seen.revision, seen.before or "", seen.after, seen.position


def known_row(row: Any) -> Known:
    """Read a row of living_timelines."""
    timeline = None
    if not row["erased"]:
        timeline = Timeline(
            document_id=row["document_id"],
            revision=row["revision"],
            position=row["position"],
            effective_at=row["effective_at"],
            family=row["family"],
            version=row["version"],
            not_in_force_yet=row["not_in_force_yet"],
            spans=decode_spans(row["spans"]),
        )
    return Known(
        document_id=row["document_id"],
        revision=row["revision"],
        known_from=row["known_from"],
        known_until=row["known_until"],
        recorded_at=row["recorded_at"],
        until_known_from=row["until_known_from"],
        first_known=row["first_known"],
        timeline=timeline,
    )


def _timeline_row(crate: str, row: Known) -> tuple[object, ...]:
    key = (crate, row.document_id, row.revision, row.known_from, row.known_until, row.recorded_at)
    timeline = row.timeline
    if timeline is None:
        return (
            *key,
            True,
            False,
            0,
            row.recorded_at,
            NEVER,
            row.until_known_from,
            row.first_known,
            "",
            "",
            False,
            "[]",
        )
    return (
        *key,
        False,
        has_gap(timeline),
        timeline.position,
        timeline.effective_at,
        force_of(timeline).in_force_until,
        row.until_known_from,
        row.first_known,
        timeline.family,
        timeline.version,
        timeline.not_in_force_yet,
        encode_spans(timeline.spans),
    )


def _writes(crate: str, told: Sequence[Told]) -> Mapping[str, list[tuple[object, ...]]]:
    rows: dict[str, list[tuple[object, ...]]] = {}
    for one in told:
        match one.fact:
            case RevisionFacts() as fact:
                rows.setdefault(_INSERT_REVISION, []).append((crate, *_revision_row(fact)))
            case Statement() as fact:
                rows.setdefault(_INSERT_STATEMENT, []).append((crate, *_statement_row(fact)))
            case Retired() as fact:
                rows.setdefault(_INSERT_RETIREMENT, []).append((crate, fact.document_id, fact.position, fact.at))
            case Erased() as fact:
                row = (crate, fact.document_id, fact.position, fact.revision)
                rows.setdefault(_INSERT_ERASURE, []).append(row)
            case Rules() as fact:
                rows.setdefault(_UPSERT_RULES, []).append((crate, fact.position, encode_rules(fact)))
            case _:
                continue
    return rows


def _revision_row(fact: RevisionFacts) -> Iterable[object]:
    return (
        fact.document_id,
        fact.revision,
        fact.position,
        fact.effective_at,
        fact.recorded_at,
        fact.source_id,
        fact.title,
        fact.source_domain,
        fact.uri,
        json.dumps(dict(sorted(fact.metadata.items()))),
        list(fact.links),
    )


def _statement_row(fact: Statement) -> Iterable[object]:
    return (
        fact.source_id,
        fact.type,
        fact.target_id,
        fact.position,
        fact.recorded_at,
        fact.confidence_ppm,
        fact.effective_at,
        fact.withdrawn,
    )


def _revision(row: Any) -> RevisionFacts:
    return RevisionFacts(
        document_id=row["document_id"],
        revision=row["revision"],
        position=row["position"],
        effective_at=row["effective_at"],
        recorded_at=row["recorded_at"],
        source_id=row["source_id"],
        title=row["title"],
        source_domain=row["source_domain"],
        uri=row["uri"],
        metadata=json.loads(row["metadata"]),
        links=tuple(row["links"]),
    )


def _statement(row: Any) -> Statement:
    effective_at: datetime | None = row["effective_at"]
    return Statement(
        source_id=row["source_id"],
        type=row["type"],
        target_id=row["target_id"],
        position=row["position"],
        recorded_at=row["recorded_at"],
        confidence_ppm=row["confidence_ppm"],
        effective_at=effective_at,
        withdrawn=row["withdrawn"],
    )


def _retired(row: Any) -> Retired:
    return Retired(document_id=row["document_id"], position=row["position"], at=row["at"])


def _erased(row: Any) -> Erased:
    return Erased(document_id=row["document_id"], revision=row["revision"], position=row["position"])


_FACTS: Mapping[str, Callable[[Any], Fact]] = {
    "living_revisions": _revision,
    "living_statements": _statement,
    "living_retirements": _retired,
    "living_erasures": _erased,
}
