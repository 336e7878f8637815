"""Rows of the tables <-> values of the domain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from services.ingest.domain.chunking import ChunkSettings
from services.ingest.domain.documents import Form, Held, Manifest, Pack, PutOutcome, Status
from services.ingest.domain.lifecycle import DocumentState, Failed, FailureState, RevisionState
from services.ingest.domain.providers import Provider, ProviderKind, ProviderRole
from services.ingest.domain.relations import RelationOutcome
from services.ingest.domain.settings import (
    AnswerMode,
    CrateSettings,
    PropositionFailurePolicy,
    RetrievalMode,
    RetrievalStrategy,
)
from services.ingest.domain.state_rules import NO_RULES, StateRules, StateWindow
from services.ingest.domain.values import CrateRow, CrateView, DocumentView, FailureView, JobRow, PutState, Submitted

Row = Mapping[str, Any]
# Sorts after every name that a document can have.
NAMELESS: Final = "\U0010ffff"
# A name of 1,024 characters would not fit into an index; its start orders well enough.
SORT_CHARS: Final = 400
_NUL: Final = "\x00"
_END_OUTCOMES: Final = frozenset({Status.RETIRED, Status.ERASED})


def text(value: str) -> str:
    """Make a text storable: Postgres takes no NUL, and one such value must not sink a batch of others."""
    return value.replace(_NUL, "\N{REPLACEMENT CHARACTER}") if _NUL in value else value


def dumps(value: object) -> str:
    """JSON that Postgres takes."""
    return json.dumps(value, ensure_ascii=False).replace("\\u0000", "\N{REPLACEMENT CHARACTER}")


def sort_key(source_id: str) -> str:
    """What a document is ordered by."""
    return text(source_id)[:SORT_CHARS]


def settings_json(settings: CrateSettings) -> str:
    """Write crate settings; rules that there are none of are left out, as in rows that know of none."""
    fields = asdict(settings)
    if settings.state_rules == NO_RULES:
        del fields["state_rules"]
    return dumps(fields)


def settings_value(stored: str) -> CrateSettings:
    """Read crate settings."""
    fields: dict[str, Any] = json.loads(stored)
    fields["retrieval_mode"] = RetrievalMode(fields["retrieval_mode"])
    fields["retrieval_strategy"] = RetrievalStrategy(fields["retrieval_strategy"])
    fields["proposition_failure_policy"] = PropositionFailurePolicy(fields["proposition_failure_policy"])
    fields["mode"] = AnswerMode(fields["mode"])
    if "state_rules" in fields:
        fields["state_rules"] = _state_rules(fields["state_rules"])
    return CrateSettings(**fields)


def _state_rules(fields: Mapping[str, Any]) -> StateRules:
    return StateRules(
        tuple((word, state) for word, state in fields["status_words"]),
        tuple(StateWindow(**window) for window in fields["windows"]),
        tuple(fields["superseding_series"]),
    )


def providers_json(providers: tuple[Provider, ...]) -> str:
    """Write providers."""
    return dumps([asdict(provider) for provider in providers])


def providers_value(stored: str) -> tuple[Provider, ...]:
    """Read providers."""
    return tuple(
        Provider(**{**fields, "role": ProviderRole(fields["role"]), "kind": ProviderKind(fields["kind"])})
        for fields in json.loads(stored)
    )


def manifest_json(manifest: Manifest | None) -> str | None:
    """Write a manifest without its links, which only later steps look at."""
    if manifest is None:
        return None
    return dumps(
        {
            "source_id": manifest.source_id,
            "uri": manifest.uri,
            "media_type": manifest.media_type,
            "charset": manifest.charset,
            "title": manifest.title,
            "metadata": manifest.metadata,
            "source_domain": manifest.source_domain,
            "content_hash": manifest.content_hash.hex(),
            "size_bytes": manifest.size_bytes,
            "notices": manifest.notices,
        }
    )


def manifest_value(stored: str | None) -> Manifest | None:
    """Read a manifest."""
    if stored is None:
        return None
    fields: dict[str, Any] = json.loads(stored)
    fields["content_hash"] = bytes.fromhex(fields["content_hash"])
    fields["metadata"] = tuple((key, value) for key, value in fields["metadata"])
    fields["notices"] = tuple(fields["notices"])
    return Manifest(**fields)


def crate_view(row: Row) -> CrateView:
    """Read a crate with its number of documents."""
    crate = CrateRow(
        crate_id=row["crate_id"],
        revision=row["revision"],
        settings=settings_value(row["settings"]),
        providers=providers_value(row["providers"]),
        secret=Pack(row["secret_pack"], row["secret_bytes"]),
        configured_at=row["configured_at"],
        position=row["position"],
    )
    return CrateView(crate=crate, created_at=row["created_at"], documents=row["documents"])


def job_row(row: Row) -> JobRow:
    """Read a job."""
    return JobRow(
        crate_id=row["crate_id"],
        job_id=row["job_id"],
        chunking=ChunkSettings(row["size_chars"], row["overlap_chars"]),
        configured_at=row["created_at"],
        position=row["position"],
    )


def document_state(row: Row) -> DocumentState:
    """Read a document for the fold, with its current revision; an unknown document has revision 0."""
    reported = {int(number): applied for number, applied in json.loads(row["reported"] or "{}").items()}
    if row["current"] is None:
        return DocumentState(crate_id=row["crate_id"], document_id=row["document_id"], reported=reported)
    revisions = {} if row["revision"] is None else {row["revision"]: revision_state(row, manifest=False)}
    return DocumentState(
        crate_id=row["crate_id"],
        document_id=row["document_id"],
        revision=row["current"],
        ended=Status(row["ended"]) if row["ended"] else None,
        sequence=row["sequence"],
        position=row["document_position"],
        job_id=row["job_id"],
        revisions=revisions,
        reported=reported,
    )


def revision_state(row: Row, *, manifest: bool) -> RevisionState:
    """Read a revision.

    Args:
        row: Its row.
        manifest: Whether the row has its manifest; the fold works without.

    Returns:
        The revision.
    """
    return RevisionState(
        revision=row["revision"],
        position=row["position"],
        source=Pack(row["source_pack"], row["source_bytes"]),
        chunking=ChunkSettings(row["size_chars"], row["overlap_chars"]),
        settings_digest=row["settings_digest"],
        form=Form(row["form"]),
        effective_at=row["effective_at"],
        ingested_at=row["ingested_at"],
        manifest=manifest_value(row["manifest"]) if manifest else None,
        chunks=row["chunks"],
        embedded_at=row["embedded_at"],
        records=row["records"],
        indexed_at=row["indexed_at"],
        failure=row["failure"],
        damaged=row["damaged"],
    )


def document_view(row: Row, revisions: tuple[RevisionState, ...]) -> DocumentView:
    """Read a document as it is shown."""
    return DocumentView(
        document_id=row["document_id"],
        source_id=row["source_id"] or "",
        title=row["title"] or "",
        status=Status(row["status"]),
        revision=row["revision"],
        job_id=row["job_id"],
        source_domain=row["source_domain"] or "",
        revisions=revisions,
    )


def held(row: Row) -> Held | None:
    """Read what a decision needs of a document; None when there is none."""
    if row["revision"] is None:
        return None
    known = row["source_pack"] is not None
    return Held(
        document_id=row["document_id"],
        revision=row["revision"],
        status=Status(row["status"]),
        sequence=row["sequence"],
        position=row["position"],
        content_digest=row["content_digest"] or b"",
        chunking=ChunkSettings(row["size_chars"], row["overlap_chars"]) if known else None,
        source=Pack(row["source_pack"], row["source_bytes"]) if known else None,
        form=Form(row["form"]) if known else Form.TEXT,
        effective_at=row["effective_at"],
        ingested_at=row["ingested_at"],
    )


def put_state(row: Row, *, job_named: bool) -> PutState:
    """Read all that a decision needs."""
    chunking: ChunkSettings | None = ChunkSettings()
    if job_named:
        chunking = None if row["job_size"] is None else ChunkSettings(row["job_size"], row["job_overlap"])
    submitted = None
    if row["submitted_outcome"] is not None:
        submitted = Submitted(
            document_id=row["submitted_document"],
            revision=row["submitted_revision"],
            outcome=outcome(row["submitted_outcome"]),
            position=row["submitted_position"],
        )
    return PutState(max_input_chars=row["max_input_chars"], chunking=chunking, held=held(row), submitted=submitted)


def outcome(value: str) -> PutOutcome | Status | RelationOutcome:
    """Read what a publisher's event came to."""
    if value in (RelationOutcome.DECLARED, RelationOutcome.WITHDRAWN):
        return RelationOutcome(value)
    ended = {str(status): status for status in _END_OUTCOMES}
    return ended.get(value) or PutOutcome(value)


def failure(row: Row) -> Failed:
    """Read a failure."""
    return Failed(
        crate_id=row["crate_id"],
        document_id=row["document_id"],
        position=row["failure_id"],
        revision=row["revision"],
        service=row["service"],
        stream=row["stream"],
        event_position=row["event_position"],
        code=row["code"],
        reason=row["reason"],
        attempts=row["attempts"],
        failed_at=row["failed_at"],
        own=row["own"],
        retry=row["retry"],
    )


def failure_view(row: Row) -> FailureView:
    """Read a failure and what became of it."""
    return FailureView(
        failure=failure(row),
        source_id=row["source_id"],
        state=FailureState(row["state"]),
        settled_position=row["settled_position"],
        settled_at=row["settled_at"],
    )
