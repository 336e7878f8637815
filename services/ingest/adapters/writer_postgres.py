"""The writing half of the tables: one batch of facts, one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from asyncpg.pool import PoolConnectionProxy

from services.ingest.adapters import rows_postgres as rows
from services.ingest.domain.documents import PutOutcome, Status
from services.ingest.domain.lifecycle import (
    DocumentFact,
    DocumentState,
    Erased,
    Failed,
    Indexed,
    Ingested,
    Key,
    Retired,
    RevisionState,
    Settled,
    Unchanged,
    fold,
)
from services.ingest.domain.providers import ProviderRole
from services.ingest.domain.values import CrateRow, Fact, JobRow, Stated
from services.kernel import scrub

_CRATE: Final = """
insert into crates values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)
on conflict (crate_id) do update set revision = excluded.revision, settings = excluded.settings,
    providers = excluded.providers, max_input_chars = excluded.max_input_chars,
    configured_at = excluded.configured_at, position = excluded.position
where crates.position < excluded.position
"""
_JOB: Final = """
insert into jobs values ($1, $2, $3, $4, $5, $6)
on conflict (crate_id, job_id) do update set size_chars = excluded.size_chars,
    overlap_chars = excluded.overlap_chars, position = excluded.position
where jobs.position < excluded.position
"""
# A document, its current revision, and what the index reported of it, in one row.
_DOCUMENTS: Final = """
select k.crate_id, k.document_id, d.revision current, d.ended, d.sequence, d.position document_position, d.job_id,
    (select jsonb_object_agg(p.revision, p.applied) from reported p
     where p.crate_id = k.crate_id and p.document_id = k.document_id) reported,
    r.revision, r.position, r.source_pack, r.source_bytes, r.size_chars, r.overlap_chars, r.settings_digest, r.form,
    r.effective_at, r.ingested_at, r.chunks, r.embedded_at, r.records, r.indexed_at, r.failure, r.damaged
from unnest($1::text[], $2::text[]) k (crate_id, document_id)
left join documents d using (crate_id, document_id)
left join revisions r on r.crate_id = d.crate_id and r.document_id = d.document_id and r.revision = d.revision
"""
_REVISIONS: Final = """
select crate_id, document_id, revision, position, source_pack, source_bytes, size_chars, overlap_chars,
    settings_digest, form, effective_at, ingested_at, chunks, embedded_at, records, indexed_at, failure,
    damaged
from revisions join unnest($1::text[], $2::text[], $3::int[]) k (crate_id, document_id, revision)
using (crate_id, document_id, revision)
"""
_PUT_DOCUMENT: Final = """
insert into documents values ($1, $2, $3, $4, $5, $6, $7, $8, $9, coalesce($10, U&'\\+10FFFF'), $11, $12)
on conflict (crate_id, document_id) do update set revision = excluded.revision, status = excluded.status,
    ended = excluded.ended, sequence = excluded.sequence, position = excluded.position, job_id = excluded.job_id,
    source_id = coalesce(excluded.source_id, documents.source_id),
    sort_key = case when excluded.source_id is null then documents.sort_key else excluded.sort_key end,
    title = coalesce(excluded.title, documents.title),
    source_domain = coalesce(excluded.source_domain, documents.source_domain)
"""
_MOVE_DOCUMENT: Final = """
update documents set status = $3, ended = $4, sequence = $5, position = $6
where crate_id = $1 and document_id = $2
"""
# The tombstone: no name, no title, no origin.
_BURY_DOCUMENT: Final = """
insert into documents values ($1, $2, $3, $4, $5, $6, $7, '', null, U&'\\+10FFFF', null, null)
on conflict (crate_id, document_id) do update set revision = excluded.revision, status = excluded.status,
    ended = excluded.ended, sequence = excluded.sequence, position = excluded.position, job_id = '',
    source_id = null, sort_key = excluded.sort_key, title = null, source_domain = null
"""
_BURY_REVISIONS: Final = "delete from revisions where crate_id = $1 and document_id = $2"
# What failed before the erasure is nobody's business any more.
_BURY_FAILURES: Final = "delete from failures where crate_id = $1 and document_id = $2 and failure_id < $3"
_PUT_REVISION: Final = """
insert into revisions values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
on conflict (crate_id, document_id, revision) do update set position = excluded.position,
    source_pack = excluded.source_pack, source_bytes = excluded.source_bytes, size_chars = excluded.size_chars,
    overlap_chars = excluded.overlap_chars, settings_digest = excluded.settings_digest, form = excluded.form,
    effective_at = excluded.effective_at, ingested_at = excluded.ingested_at,
    manifest = coalesce(excluded.manifest, revisions.manifest),
    content_digest = case when excluded.manifest is null then revisions.content_digest
        else excluded.content_digest end,
    chunks = excluded.chunks, embedded_at = excluded.embedded_at, records = excluded.records,
    indexed_at = excluded.indexed_at, failure = excluded.failure, damaged = excluded.damaged
"""
_MOVE_REVISION: Final = """
update revisions set chunks = $4, embedded_at = $5, records = $6, indexed_at = $7, failure = $8, damaged = $9
where crate_id = $1 and document_id = $2 and revision = $3
"""
_REPORT: Final = """
insert into reported values ($1, $2, $3, $4) on conflict (crate_id, document_id, revision)
do update set applied = greatest(reported.applied, excluded.applied)
"""
_FAILURE: Final = """
insert into failures (crate_id, failure_id, document_id, revision, service, stream, event_position, code, reason,
    attempts, failed_at, own, retry)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) on conflict do nothing
"""
_SETTLE: Final = """
update failures set state = $3, settled_position = $4, settled_at = $5
where crate_id = $1 and failure_id = $2 and state = 'open'
"""
_ANY_OPEN: Final = "select exists (select from failures where state = 'open')"
# Only failures before the fact: what comes later in the log must not depend on where batches are cut.
_SUPERSEDE: Final = """
update failures set state = 'superseded', settled_position = $3
where crate_id = $1 and document_id = $2 and state = 'open' and failure_id < $3
"""
_SUBMISSION: Final = "insert into submissions values ($1, $2, $3, $4, $5, $6) on conflict do nothing"


async def write(connection: PoolConnectionProxy[Any], facts: Sequence[Fact]) -> None:
    """Store what facts change.

    Args:
        connection: Inside the transaction that also stores the position.
        facts: In log order.
    """
    crates = [fact for fact in facts if isinstance(fact, CrateRow)]
    jobs = [fact for fact in facts if isinstance(fact, JobRow)]
    failures = [fact for fact in facts if isinstance(fact, Failed)]
    about = [fact for fact in facts if not isinstance(fact, CrateRow | JobRow | Stated) and fact.document_id]
    # Failures are rare: a batch without any costs one question more.
    may_supersede = bool(failures) or await connection.fetchval(_ANY_OPEN)
    await _many(connection, _CRATE, [_crate(crate) for crate in crates])
    await _many(connection, _JOB, [_job(job) for job in jobs])
    await _many(connection, _FAILURE, [_failure(fact) for fact in failures])
    for fact in facts:
        if isinstance(fact, Settled):
            arguments = (fact.crate_id, fact.failure_id, fact.state, fact.position, fact.settled_at)
            await connection.execute(_SETTLE, *arguments)
        elif isinstance(fact, Ingested | Retired | Erased) and may_supersede:
            await connection.execute(_SUPERSEDE, fact.crate_id, fact.document_id, fact.position)
    if about:
        await _write_documents(connection, about)
    await _many(connection, _SUBMISSION, list(_submissions(facts)))


async def _many(connection: PoolConnectionProxy[Any], statement: str, arguments: Sequence[Sequence[object]]) -> None:
    if arguments:
        await connection.executemany(statement, arguments)


async def _write_documents(connection: PoolConnectionProxy[Any], facts: Sequence[DocumentFact]) -> None:
    before = await _load(connection, facts)
    after = fold(before, facts)
    put = {(fact.crate_id, fact.document_id, fact.revision): fact for fact in facts if isinstance(fact, Ingested)}
    buried = {(fact.crate_id, fact.document_id) for fact in facts if isinstance(fact, Erased)}
    await _many(connection, _BURY_REVISIONS, sorted(buried))
    for fact in facts:
        if isinstance(fact, Erased):
            await scrub.note(connection, fact.crate_id, [(fact.document_id, fact.revision)])
    erasures = [(fact.crate_id, fact.document_id, fact.position) for fact in facts if isinstance(fact, Erased)]
    await _many(connection, _BURY_FAILURES, erasures)
    changed = {key: state for key, state in after.items() if state != before.get(key)}
    await _write_states(connection, before, changed, put, buried)
    await _write_revisions(connection, before, changed, put)
    reports = [(f.crate_id, f.document_id, f.revision, f.applied) for f in facts if isinstance(f, Indexed)]
    await _many(connection, _REPORT, reports)


async def _load(connection: PoolConnectionProxy[Any], facts: Sequence[DocumentFact]) -> dict[Key, DocumentState]:
    keys = sorted({(fact.crate_id, fact.document_id) for fact in facts})
    states = {}
    for row in await connection.fetch(_DOCUMENTS, *_columns(keys, 2)):
        state = rows.document_state(row)
        states[state.crate_id, state.document_id] = state
    # Facts about a revision that isn't the current one are rare: a late step, or a failure of the past.
    earlier = sorted(
        {
            (fact.crate_id, fact.document_id, fact.revision)
            for fact in facts
            if fact.revision < states[fact.crate_id, fact.document_id].revision
        }
    )
    if earlier:
        for row in await connection.fetch(_REVISIONS, *_columns(earlier, 3)):
            revision = rows.revision_state(row, manifest=False)
            states[row["crate_id"], row["document_id"]].revisions[revision.revision] = revision
    return states


def _columns(keys: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    return [[key[column] for key in keys] for column in range(width)]


async def _write_states(
    connection: PoolConnectionProxy[Any],
    before: dict[Key, DocumentState],
    states: dict[Key, DocumentState],
    put: dict[tuple[str, str, int], Ingested],
    buried: set[Key],
) -> None:
    puts, moves, burials = [], [], []
    for key, state in states.items():
        fact = put.get((*key, state.revision))
        if state.ended is Status.ERASED or (fact and key in buried):
            burials.append((*key, *_state(state)))
        if fact and state.ended is not Status.ERASED:
            puts.append((*key, *_state(state), state.job_id, *_names(fact)))
        elif state.revision and state.ended is not Status.ERASED and _state(state) != _state(before[key]):
            moves.append((*key, *_state(state)[1:]))
    await _many(connection, _BURY_DOCUMENT, burials)
    await _many(connection, _PUT_DOCUMENT, puts)
    await _many(connection, _MOVE_DOCUMENT, moves)


async def _write_revisions(
    connection: PoolConnectionProxy[Any],
    before: dict[Key, DocumentState],
    states: dict[Key, DocumentState],
    put: dict[tuple[str, str, int], Ingested],
) -> None:
    puts, moves = [], []
    for key, state in states.items():
        known = before[key].revisions
        for number, revision in state.revisions.items():
            if (*key, number) in put:
                puts.append((*key, number, *_content(revision), *_pipeline(revision)))
            elif known.get(number) != revision:
                moves.append((*key, number, *_pipeline(revision)))
    await _many(connection, _PUT_REVISION, puts)
    await _many(connection, _MOVE_REVISION, moves)


def _content(revision: RevisionState) -> tuple[object, ...]:
    return (
        revision.position,
        revision.source.id,
        revision.source.size_bytes,
        revision.chunking.size_chars,
        revision.chunking.overlap_chars,
        revision.settings_digest,
        revision.form,
        revision.effective_at,
        revision.ingested_at,
        rows.manifest_json(revision.manifest),
        revision.digest,
    )


def _pipeline(revision: RevisionState) -> tuple[object, ...]:
    failure = rows.text(revision.failure)
    return (revision.chunks, revision.embedded_at, revision.records, revision.indexed_at, failure, revision.damaged)


def _state(state: DocumentState) -> tuple[int, str, str | None, int, int]:
    return (state.revision, state.status, state.ended, state.sequence, state.position)


def _names(fact: Ingested) -> tuple[str | None, str | None, str | None, str | None]:
    manifest = fact.manifest
    if manifest is None:
        return (None, None, None, None)
    name = rows.text(manifest.source_id)
    return (name, rows.sort_key(name), rows.text(manifest.title), rows.text(manifest.source_domain))


def _submissions(facts: Iterable[Fact]) -> Iterable[tuple[object, ...]]:
    for fact in facts:
        if isinstance(fact, Stated) and fact.submission:
            yield (fact.crate_id, fact.submission, fact.document_id, 0, fact.outcome, fact.position)
        if isinstance(fact, Unchanged) and fact.submission:
            yield (
                fact.crate_id,
                fact.submission,
                fact.document_id,
                fact.revision,
                PutOutcome.UNCHANGED,
                fact.holds,
            )
        if not isinstance(fact, Ingested | Retired | Erased) or not fact.submission:
            continue
        ended = Status.RETIRED if isinstance(fact, Retired) else Status.ERASED
        outcome = fact.outcome if isinstance(fact, Ingested) else ended
        yield (fact.crate_id, fact.submission, fact.document_id, fact.revision, outcome, fact.position)


def _crate(crate: CrateRow) -> tuple[object, ...]:
    limits = [p.max_input_chars for p in crate.providers if p.role is ProviderRole.EMBEDDING]
    return (
        crate.crate_id,
        crate.revision,
        rows.settings_json(crate.settings),
        rows.providers_json(crate.providers),
        max(limits, default=0),
        crate.secret.id,
        crate.secret.size_bytes,
        crate.configured_at,
        crate.position,
    )


def _job(job: JobRow) -> tuple[object, ...]:
    chunking = job.chunking
    return (job.crate_id, job.job_id, chunking.size_chars, chunking.overlap_chars, job.configured_at, job.position)


def _failure(fact: Failed) -> tuple[object, ...]:
    return (
        fact.crate_id,
        fact.position,
        fact.document_id,
        fact.revision,
        rows.text(fact.service),
        rows.text(fact.stream),
        fact.event_position,
        rows.text(fact.code),
        rows.text(fact.reason),
        fact.attempts,
        fact.failed_at,
        fact.own,
        fact.retry,
    )
