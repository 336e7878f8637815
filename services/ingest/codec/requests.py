"""Requests of the gRPC service -> values of the domain."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Final

from affidavit.ingest.v1 import ingest_service_pb2 as pb

from services.ingest.codec.configuration import choice, moment
from services.ingest.domain import settings
from services.ingest.domain.documents import Status
from services.ingest.domain.headers import Header
from services.ingest.domain.refusals import Refused, Unknown
from services.ingest.domain.relations import End, Statement
from services.ingest.domain.values import Page, Selection

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1_000
MAX_WATCHED: Final = 10_000
_DOCUMENT_ID = re.compile(r"[0-9a-f]{32}")
STATUSES: Final = {
    pb.DOCUMENT_STATUS_PENDING: Status.PENDING,
    pb.DOCUMENT_STATUS_SEARCHABLE: Status.SEARCHABLE,
    pb.DOCUMENT_STATUS_EMPTY: Status.EMPTY,
    pb.DOCUMENT_STATUS_FAILED: Status.FAILED,
    pb.DOCUMENT_STATUS_RETIRED: Status.RETIRED,
    pb.DOCUMENT_STATUS_ERASED: Status.ERASED,
    pb.DOCUMENT_STATUS_SUPERSEDED: Status.SUPERSEDED,
}


def header(message: pb.DocumentHeader) -> Header:
    """Read a document header; it is checked later.

    Raises:
        Refused: When its time is out of range.
    """
    effective_at = None
    if message.HasField("effective_at"):
        effective_at = moment("effective_at", message.effective_at)
    return Header(
        source_id=message.source_id,
        media_type=message.media_type,
        charset=message.charset,
        uri=message.uri,
        title=message.title,
        metadata=tuple(sorted(message.metadata.items())),
        job_id=message.job_id,
        effective_at=effective_at,
        source_domain=message.source_domain,
    )


def statement(message: pb.DeclareRelationRequest) -> Statement:
    """Read a statement about a relation; it is checked later.

    Raises:
        Refused: When its time is out of range.
    """
    return Statement(
        source=End(document_id=message.source_document_id, source_id=message.source_source_id),
        type=message.type,
        target=End(document_id=message.target_document_id, source_id=message.target_source_id),
        confidence=message.confidence if message.HasField("confidence") else None,
        effective_at=moment("effective_at", message.effective_at) if message.HasField("effective_at") else None,
        withdrawn=message.withdrawn,
    )


def page(size: int, token: str, width: int) -> Page:
    """Read which page is wanted.

    Args:
        size: Rows; 0 for the default.
        token: As a reply gave it; empty for the first page.
        width: Parts of the list's sort key.

    Returns:
        The page.

    Raises:
        Refused: When the size is out of range or the token isn't one of ours.
    """
    if size > MAX_PAGE:
        raise Refused(f"page_size {size} is out of range: 1 to {MAX_PAGE}, or 0 for {DEFAULT_PAGE}")
    if not token:
        return Page(size=size or DEFAULT_PAGE)
    try:
        after = json.loads(base64.urlsafe_b64decode(token.encode("ascii")))
    except (ValueError, binascii.Error) as error:
        raise _bad_token() from error
    if not isinstance(after, list) or len(after) != width or not all(map(_is_key, after)):
        raise _bad_token()
    return Page(size=size or DEFAULT_PAGE, after=tuple(after))


def page_token(after: tuple[str, ...]) -> str:
    """Write where the next page begins; empty at the end of the list."""
    return base64.urlsafe_b64encode(json.dumps(after).encode()).decode("ascii") if after else ""


def statuses(message: pb.ListDocumentsRequest) -> tuple[Status, ...]:
    """Read which statuses are wanted; none means all.

    Raises:
        Refused: When one is unknown.
    """
    return tuple(choice(STATUSES, "status", number) for number in message.statuses)


def selection(message: pb.WatchProgressRequest) -> Selection:
    """Read which documents are watched.

    Raises:
        Refused: When too many are named, or the job id has not the form of one.
        Unknown: When a document id has not the form of one.
    """
    if len(message.document_ids) > MAX_WATCHED:
        raise Refused(
            f"{len(message.document_ids)} document_ids are named: at most {MAX_WATCHED}; watch the job or the crate"
        )
    return Selection(
        crate_id=message.crate_id,
        job_id=job_filter(message.job_id),
        document_ids=tuple(document_id(value) for value in message.document_ids),
    )


def failures_page(message: pb.ListFailuresRequest) -> Page:
    """Read which page of failures is wanted, see `page`."""
    wanted = page(message.page_size, message.page_token, width=1)
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in wanted.after):
        raise _bad_token()
    return wanted


def document_id(value: str) -> str:
    """Read a document id.

    Raises:
        Unknown: When it has not the form of one, so that there is no such document.
    """
    if not _DOCUMENT_ID.fullmatch(value):
        raise Unknown(f"document {value[:80]!r} does not exist: a document_id is 32 hex digits, or name its source_id")
    return value


def job_filter(value: str) -> str:
    """Read which job's documents are wanted; empty means all.

    Raises:
        Refused: When it has not the form of a job id.
    """
    return settings.job_id(value) if value else ""


def _is_key(part: object) -> bool:
    return isinstance(part, str) and "\x00" not in part


def _bad_token() -> Refused:
    return Refused("page_token isn't one that this list gave: begin again without it")
