"""Domain values as columns of the index's tables, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from services.index.adapters.schema_postgres import force as read_force
from services.index.domain.content import Description, KnownRevision, ShownRevision
from services.index.domain.documents import DocumentState, Embedded, Ingested
from services.index.domain.force import Force
from services.index.domain.records import Form


def ingested(crate: str, fact: Ingested) -> tuple[Any, ...]:
    """Columns of a revision that is known."""
    return (
        crate,
        fact.document_id,
        fact.revision,
        fact.settings_digest,
        fact.form,
        fact.effective_at,
        fact.effective_from,
        fact.position,
    )


def force(held: Force) -> tuple[Any, ...]:
    """Columns that say when a revision counts."""
    return held.effective_from, held.in_force_until, held.current, held.gone_from, held.until_known_from


def document(crate: str, state: DocumentState) -> tuple[Any, ...]:
    """Columns of a document."""
    return (
        crate,
        state.document_id,
        state.status,
        state.latest_revision,
        state.latest_digest,
        state.current_revision,
        state.current_digest,
        state.current_count,
        state.retired,
        state.erased_revision,
    )


def signal(crate: str, fact: Embedded) -> tuple[Any, ...]:
    """Columns of a signal that is still to be sent."""
    return (
        crate,
        fact.document_id,
        fact.revision,
        fact.settings_digest,
        fact.generation,
        fact.chunk_count,
        fact.position,
    )


def revision(crate: str, fact: Embedded, told: Description) -> tuple[Any, ...]:
    """Columns of a revision that is stored."""
    return (
        crate,
        fact.document_id,
        fact.revision,
        fact.position,
        fact.settings_digest,
        fact.generation,
        fact.chunk_count,
        fact.chunks_pack,
        fact.vectors_pack,
        fact.model_id,
        fact.dimension,
        fact.form,
        told.title,
        told.source_id,
        told.source_domain,
        told.media_type,
        told.charset,
        told.uri,
        told.headings,
        fact.evaluations_pack,
        fact.statement_count,
    )


def state(row: Any, digests: dict[int, str]) -> DocumentState:
    """Read a document with the digests of some of its revisions."""
    return DocumentState(
        document_id=row["document_id"],
        latest_revision=row["latest_revision"],
        latest_digest=row["latest_digest"],
        current_revision=row["current_revision"],
        current_digest=row["current_digest"],
        current_count=row["current_count"],
        retired=row["retired"],
        erased_revision=row["erased_revision"],
        digests=digests,
    )


def known(row: Any) -> KnownRevision:
    """Read a revision that isn't erased."""
    return KnownRevision(
        revision=row["revision"],
        effective_from=row["effective_from"],
        position=row["ingested_position"],
        stored=row["stored"],
    )


def shown(row: Any) -> ShownRevision:
    """Read a stored revision."""
    return ShownRevision(
        fact=Embedded(
            document_id=row["document_id"],
            revision=row["revision"],
            settings_digest=row["embedded_digest"],
            generation=row["generation"],
            chunks_pack=row["chunks_pack"],
            vectors_pack=row["vectors_pack"],
            chunk_count=row["chunk_count"],
            model_id=row["model_id"],
            dimension=row["dimension"],
            form=Form(row["form"]),
            position=row["embedded_position"],
            evaluations_pack=row["evaluations_pack"],
            statement_count=row["statement_count"],
        ),
        description=replace(description(row), headings=tuple(row["headings"] or ())),
        force=read_force(row),
    )


def description(row: Any) -> Description:
    """Read what is told about a stored revision's original, but for its headings."""
    return Description(
        title=row["title"],
        source_id=row["source_id"],
        source_domain=row["source_domain"],
        media_type=row["media_type"],
        charset=row["charset"],
        uri=row["uri"],
    )
