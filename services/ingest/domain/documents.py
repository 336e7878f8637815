"""Decisions about documents: what a put, a retire or an erase comes to, given what is known of the document."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from blake3 import blake3

from services.ingest.domain import effect
from services.ingest.domain.chunking import ChunkSettings, settings_digest
from services.ingest.domain.headers import Header
from services.ingest.domain.refusals import Unknown


class Status(StrEnum):
    """Status of a document in the pipeline."""

    PENDING = "pending"
    SEARCHABLE = "searchable"
    EMPTY = "empty"
    FAILED = "failed"
    RETIRED = "retired"
    ERASED = "erased"
    SUPERSEDED = "superseded"


class PutOutcome(StrEnum):
    """What a put came to."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    RECHUNKED = "rechunked"


class Form(StrEnum):
    """How a document is weighed and indexed."""

    TEXT = "text"
    STRUCTURED = "structured"
    INFORMAL = "informal"


@dataclass(frozen=True, slots=True)
class Pack:
    """Reference to a pack.

    Attributes:
        id: 32 bytes.
        size_bytes: Its size.
    """

    id: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is known of a revision beside its text; lies in the source pack.

    Attributes:
        source_id: Name of the document.
        uri: Where people can read it.
        media_type: As resolved.
        charset: Python codec name.
        title: As resolved.
        metadata: Sorted by key.
        source_domain: Independent origin.
        content_hash: BLAKE3 of the original bytes.
        size_bytes: Of the original.
        notices: What was done to the text.
        links: Targets of its links; they follow from the bytes, so that no digest needs them.
    """

    source_id: str
    uri: str
    media_type: str
    charset: str
    title: str
    metadata: tuple[tuple[str, str], ...]
    source_domain: str
    content_hash: bytes
    size_bytes: int
    notices: tuple[str, ...]
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A body that was read.

    Attributes:
        media_type: As resolved.
        charset: Python codec name.
        form: Weighing and indexing.
        title: The caller's, else the document's own.
        metadata: The document's own.
        source_domain: As resolved.
        notices: What was done to the text.
        content_hash: BLAKE3 of the body.
        size_bytes: Of the body.
        normalized: Part "normalized" of the source pack.
        links: Targets of its links, as written.
    """

    media_type: str
    charset: str
    form: Form
    title: str
    metadata: tuple[tuple[str, str], ...]
    source_domain: str
    notices: tuple[str, ...]
    content_hash: bytes
    size_bytes: int
    normalized: bytes
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is known of a document.

    Attributes:
        document_id: Its id.
        revision: Current revision.
        status: Of the document.
        sequence: Position of the last event of its aggregate, what the next append expects.
        position: Position of the fact that holds.
        content_digest: See `content_digest`; empty when the content is gone.
        chunking: Settings of the current revision; None once erased.
        source: Its source pack; None once erased.
        form: Of the current revision.
        effective_at: When it came into force; None once erased.
        ingested_at: When the revision was recorded; None once erased.
    """

    document_id: str
    revision: int
    status: Status
    sequence: int
    position: int
    content_digest: bytes = b""
    chunking: ChunkSettings | None = None
    source: Pack | None = None
    form: Form = Form.TEXT
    effective_at: datetime | None = None
    ingested_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutDecision:
    """What to record for a put.

    Attributes:
        outcome: What the caller is told.
        revision: Revision that the put comes to.
        expected: Position of the aggregate's last event.
        settings_digest: Of the fact; empty when nothing is recorded.
        reuses_source: True when the pack of the held revision serves.
    """

    outcome: PutOutcome
    revision: int
    expected: int
    settings_digest: str = ""
    reuses_source: bool = False


@dataclass(frozen=True, slots=True)
class EndDecision:
    """What to record for a retire or an erase.

    Attributes:
        revision: Revision that was current.
        expected: Position of the aggregate's last event.
        unchanged: True when nothing is to be recorded.
    """

    revision: int
    expected: int
    unchanged: bool


def content_digest(manifest: Manifest, effective_at: datetime | None) -> bytes:
    """Stand-in for all that makes a revision what it is: bytes, media type and metadata.

    Args:
        manifest: Of the revision.
        effective_at: As declared; None when it wasn't.

    Returns:
        32 bytes.
    """
    fields = [
        manifest.uri,
        manifest.media_type,
        manifest.charset,
        manifest.title,
        manifest.source_domain,
        effective_at.isoformat() if effective_at else "",
        *(text for entry in manifest.metadata for text in entry),
    ]
    hasher = blake3(manifest.content_hash)
    for field in fields:
        encoded = field.encode()
        hasher.update(len(encoded).to_bytes(4, "big") + encoded)
    return hasher.digest()


def make_manifest(
    header: Header, prepared: Prepared, metadata: tuple[tuple[str, str], ...], notices: tuple[str, ...]
) -> Manifest:
    """Put together what is known of a revision.

    Args:
        header: What the caller says, checked.
        prepared: What the body says.
        metadata: Of both.
        notices: Beyond those of the body.

    Returns:
        The manifest.
    """
    return Manifest(
        source_id=header.source_id,
        uri=header.uri,
        media_type=prepared.media_type,
        charset=prepared.charset,
        title=prepared.title,
        metadata=metadata,
        source_domain=prepared.source_domain,
        content_hash=prepared.content_hash,
        size_bytes=prepared.size_bytes,
        notices=(*prepared.notices, *notices),
        links=prepared.links,
    )


def declared(manifest: Manifest, effective_at: datetime | None) -> datetime | None:
    """What a caller adds to the document's own words on when it comes into force.

    Args:
        manifest: Of the revision.
        effective_at: As the caller gave it, or as the revision has it.

    Returns:
        The same; None when the document's metadata says it already.
    """
    return None if effective_at == effect.stated(manifest.metadata)[0] else effective_at


def decide_put(held: Held | None, *, digest: bytes, chunking: ChunkSettings) -> PutDecision:
    """Decide what a put comes to.

    Any change of bytes, media type or metadata makes the next revision, and so does a put after retire or erase; a
    document that failed is worked on again; other chunk settings cut the same revision anew.

    Args:
        held: What is known of the document; None when it is new.
        digest: Content digest of the put.
        chunking: Settings that shape its chunks.

    Returns:
        The decision.
    """
    if held is None:
        return PutDecision(
            outcome=PutOutcome.CREATED, revision=1, expected=0, settings_digest=settings_digest(chunking, after=0)
        )
    if held.status in (Status.RETIRED, Status.ERASED) or held.content_digest != digest:
        return PutDecision(
            outcome=PutOutcome.REPLACED,
            revision=held.revision + 1,
            expected=held.sequence,
            settings_digest=settings_digest(chunking, after=0),
        )
    failed = held.status is Status.FAILED
    if held.chunking == chunking and not failed:
        return PutDecision(outcome=PutOutcome.UNCHANGED, revision=held.revision, expected=held.sequence)
    return PutDecision(
        outcome=PutOutcome.RECHUNKED,
        revision=held.revision,
        expected=held.sequence,
        settings_digest=settings_digest(chunking, after=held.sequence),
        # What failed may have failed because its pack is damaged.
        reuses_source=not failed and held.source is not None,
    )


def decide_retire(held: Held | None, name: str) -> EndDecision:
    """Decide what a retire comes to.

    Args:
        held: What is known of the document.
        name: What the caller called it.

    Returns:
        The decision; nothing is recorded for a document that is retired or erased already.

    Raises:
        Unknown: When there is no such document.
    """
    return _end(held, name, (Status.RETIRED, Status.ERASED))


def decide_erase(held: Held | None, name: str) -> EndDecision:
    """Decide what an erase comes to, see `decide_retire`; a retired document can be erased."""
    return _end(held, name, (Status.ERASED,))


def _end(held: Held | None, name: str, over: tuple[Status, ...]) -> EndDecision:
    if held is None:
        raise Unknown(f"document {name!r} does not exist in this crate: see the list of documents")
    return EndDecision(held.revision, held.sequence, held.status in over)


def fact_key(document: str, revision: int, kind: str, digest: str = "", submission: str = "") -> str:
    """Idempotency key of a fact about a document.

    Args:
        document: Document id, the aggregate.
        revision: Revision.
        kind: Name of the event.
        digest: Settings digest, for DocumentIngested.
        submission: Stand-in for the publisher's event that asked for it, when one did.

    Returns:
        aggregate:revision:kind:generation:settings:submission; ingest knows no generations.
    """
    return f"{document}:{revision}:{kind}:0:{digest}:{submission}"


def submission_of(key: str) -> str:
    """The publisher's event that a fact was recorded for, empty for none."""
    return key.rsplit(":", 1)[-1] if key.count(":") == 5 else ""
