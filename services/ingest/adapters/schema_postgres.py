"""Tables of ingest: projections of the log, each of which can be dropped and built again."""

from __future__ import annotations

from typing import Final

from services.kernel.digests import LogicalTable

# Texts that order or compare use collation C: the order must not depend on the machine's locale.
_FIRST: Final = """
create table crates (
    crate_id text collate "C" primary key,
    revision int not null,
    settings jsonb not null,
    providers jsonb not null,
    max_input_chars int not null,
    secret_pack bytea not null,
    secret_bytes bigint not null,
    created_at timestamptz not null,
    configured_at timestamptz not null,
    position bigint not null
);
create table jobs (
    crate_id text collate "C" not null,
    job_id text collate "C" not null,
    size_chars int not null,
    overlap_chars int not null,
    created_at timestamptz not null,
    position bigint not null,
    primary key (crate_id, job_id)
);
create table documents (
    crate_id text collate "C" not null,
    document_id text collate "C" not null,
    revision int not null,
    status text not null,
    ended text,
    sequence bigint not null,
    position bigint not null,
    job_id text not null,
    source_id text,
    -- Start of the source id; U+10FFFF puts those whose name is gone last.
    sort_key text collate "C" not null,
    title text,
    source_domain text,
    primary key (crate_id, document_id)
);
create index documents_by_name on documents (crate_id, sort_key, document_id);
create index documents_by_status on documents (crate_id, status);
create table revisions (
    crate_id text collate "C" not null,
    document_id text collate "C" not null,
    revision int not null,
    position bigint not null,
    source_pack bytea not null,
    source_bytes bigint not null,
    size_chars int not null,
    overlap_chars int not null,
    settings_digest text not null,
    form text not null,
    effective_at timestamptz not null,
    ingested_at timestamptz not null,
    manifest jsonb,
    content_digest bytea not null,
    chunks int,
    embedded_at bigint not null,
    records int not null,
    indexed_at bigint not null,
    failure text not null,
    primary key (crate_id, document_id, revision)
);
-- What the index reported; holds no content and outlives the document, so that the order of the streams can't matter.
create table reported (
    crate_id text collate "C" not null,
    document_id text collate "C" not null,
    revision int not null,
    applied bigint not null,
    primary key (crate_id, document_id, revision)
);
create index reported_by_position on reported (crate_id, applied);
create table failures (
    crate_id text collate "C" not null,
    failure_id bigint not null,
    document_id text collate "C" not null,
    revision int not null,
    service text not null,
    stream text not null,
    event_position bigint not null,
    code text not null,
    reason text not null,
    attempts int not null,
    failed_at timestamptz not null,
    own boolean not null,
    primary key (crate_id, failure_id)
);
create table submissions (
    crate_id text collate "C" not null,
    submission text collate "C" not null,
    document_id text collate "C" not null,
    revision int not null,
    outcome text not null,
    position bigint not null,
    primary key (crate_id, submission)
);
"""

# The planner keeps sample values of columns, which would outlive the documents that they come from.
_NO_SAMPLES: Final = """
alter table documents alter source_id set statistics 0, alter sort_key set statistics 0,
    alter title set statistics 0, alter source_domain set statistics 0;
alter table revisions alter manifest set statistics 0, alter content_digest set statistics 0,
    alter failure set statistics 0;
"""

# What becomes of a failure, and revisions whose packs were found gone or damaged.
_FAILURES: Final = """
alter table failures add state text not null default 'open', add settled_position bigint not null default 0,
    add settled_at timestamptz, add retry bigint not null default 0;
create index failures_open on failures (crate_id, failure_id) where state = 'open';
create index failures_by_document on failures (crate_id, document_id) where state = 'open';
alter table revisions add damaged boolean not null default false;
"""

MIGRATIONS: Final = (_FIRST, _NO_SAMPLES, _FAILURES)
_DOCUMENT: Final = ("crate_id", "document_id")
_REVISION: Final = (*_DOCUMENT, "revision")
TABLES: Final = (
    LogicalTable(name="crates", key=("crate_id",), history=("secret_pack", "created_at", "configured_at", "position")),
    LogicalTable(name="jobs", key=("crate_id", "job_id"), history=("created_at", "position")),
    LogicalTable(name="documents", key=_DOCUMENT, history=("sequence", "position")),
    LogicalTable(
        name="revisions",
        key=_REVISION,
        # The settings digest holds the position of the fact that it follows.
        history=(
            "position",
            "source_pack",
            "source_bytes",
            "settings_digest",
            "effective_at",
            "ingested_at",
            "embedded_at",
            "indexed_at",
        ),
    ),
    LogicalTable(name="reported", key=_REVISION, history=("applied",)),
    LogicalTable(name="failures", key=("crate_id", "failure_id"), portable=False),
    LogicalTable(name="submissions", key=("crate_id", "submission"), portable=False),
)
# Tables that hold content, which a scrub rewrites.
CONTENT: Final = ("documents", "revisions")
