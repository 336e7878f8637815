"""Tables of living states in Postgres."""

from __future__ import annotations

from services.kernel.digests import LogicalTable

LIVING_MIGRATIONS = (
    """
    create table living_revisions (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        revision bigint not null,
        position bigint not null,
        effective_at timestamptz not null,
        recorded_at timestamptz not null,
        source_id text collate "C" not null,
        title text not null,
        source_domain text not null,
        uri text not null,
        metadata text not null,
        links text[] not null,
        primary key (crate, document_id, revision)
    );
    create index living_revisions_by_source on living_revisions (crate, md5(source_id));
    create table living_statements (
        crate text collate "C" not null,
        source_id text collate "C" not null,
        type text collate "C" not null,
        target_id text collate "C" not null,
        position bigint not null,
        recorded_at timestamptz not null,
        confidence_ppm bigint not null,
        effective_at timestamptz,
        withdrawn boolean not null,
        primary key (crate, source_id, type, target_id, position)
    );
    create table living_retirements (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        position bigint not null,
        at timestamptz not null,
        primary key (crate, document_id, position)
    );
    create table living_erasures (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        position bigint not null,
        revision bigint not null,
        primary key (crate, document_id, position)
    );
    create table living_crates (
        crate text collate "C" primary key,
        rules_position bigint not null default 0,
        rules text not null default '{}',
        clock timestamptz
    );
    create table living_timelines (
        crate text collate "C" not null,
        document_id text collate "C" not null,
        revision bigint not null,
        known_from bigint not null,
        known_until bigint,
        recorded_at timestamptz not null,
        erased boolean not null,
        has_gap boolean not null,
        position bigint not null,
        effective_at timestamptz not null,
        in_force_until bigint not null,
        until_known_from bigint not null,
        first_known bigint not null,
        family text not null,
        version text not null,
        not_in_force_yet boolean not null,
        spans text not null,
        primary key (crate, document_id, revision, known_from)
    );
    create index living_timelines_by_end on living_timelines (crate, known_until);
    create index living_timelines_by_start on living_timelines (crate, known_from) where known_until is null;
    create table living_outbox (
        number bigint generated always as identity primary key,
        crate text not null,
        document_id text not null,
        revision bigint not null,
        before text not null,
        after text not null,
        position bigint not null
    );
    -- What a replay must find again. What was known for a time because of a document that is erased by now can't be read
    -- anew, so where something was erased only what is known now is compared.
    create view living_now as
        select crate, document_id, revision, position, effective_at, in_force_until, family, version, not_in_force_yet, spans
        from living_timelines where known_until is null and not erased;
    create view living_history as
        select t.* from living_timelines t
        where not exists (select from living_erasures e where e.crate = t.crate);
    alter table living_revisions alter source_id set statistics 0, alter title set statistics 0,
        alter source_domain set statistics 0, alter uri set statistics 0, alter metadata set statistics 0,
        alter links set statistics 0;
    alter table living_timelines alter family set statistics 0, alter version set statistics 0,
        alter spans set statistics 0;
    """,
)
LIVING_CONTENT = ("living_revisions", "living_timelines")
_EDGE = ("crate", "source_id", "type", "target_id")
LIVING_TABLES = (
    LogicalTable(
        name="living_revisions",
        key=("crate", "document_id", "revision"),
        history=("position", "effective_at", "recorded_at"),
    ),
    LogicalTable(name="living_statements", key=(*_EDGE, "position"), portable=False),
    LogicalTable(name="living_retirements", key=("crate", "document_id", "position"), portable=False),
    LogicalTable(name="living_erasures", key=("crate", "document_id", "position"), portable=False),
    LogicalTable(name="living_crates", key=("crate",), history=("rules_position", "clock")),
    LogicalTable(
        name="living_now",
        key=("crate", "document_id", "revision"),
        history=("position", "effective_at", "in_force_until", "spans"),
    ),
    LogicalTable(name="living_history", key=("crate", "document_id", "revision", "known_from"), portable=False),
)
