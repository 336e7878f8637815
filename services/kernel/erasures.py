"""What the log says of erasures and of what was ingested anew: then what can't be found is nobody's failure."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final, Protocol

from services import topology
from services.kernel.envelope import Event, check_tokens
from services.kernel.errors import NotFound, Rejected

_DOCUMENT_ID: Final = re.compile(r"[0-9a-f]{32}")


class Lookup(Protocol):
    """The log, as far as it is asked here."""

    async def last_named(
        self, *, crate: str, service: str, aggregate: str, name: str, stream: str | None = None
    ) -> Event | None:
        """The last event of one kind of an aggregate, or None."""


class Aggregates(Lookup, Protocol):
    """The log, as far as it is asked whether there is a document."""

    async def last(self, *, crate: str, service: str, aggregate: str, stream: str | None = None) -> Event | None:
        """The last event of an aggregate, or None."""


async def erased_since(log: Lookup, event: Event) -> bool:
    """Whether the log erases the aggregate of an event behind it, whatever became of the aggregate since.

    Args:
        log: Log.
        event: Of KNOWLEDGE.

    Returns:
        True when it does.

    Raises:
        Corrupt: When the erasure can't be read.
        Unavailable: When the log doesn't answer.
    """
    service, name = topology.ERASURE
    erased = await log.last_named(crate=event.crate, service=service, aggregate=event.aggregate, name=name)
    return erased is not None and erased.position > event.position


def check_document_id(value: str) -> None:
    """Check that a request names a document.

    Args:
        value: Document id.

    Raises:
        Rejected: When it is empty.
        NotFound: When it has not the form of one, so that there is no such document.
    """
    if not value:
        raise Rejected("document_id is empty: name the document that was erased")
    if not _DOCUMENT_ID.fullmatch(value):
        raise NotFound(f"document {value[:80]!r} does not exist: a document_id is 32 hex digits")


async def erased_at(log: Aggregates, crate: str, document_id: str) -> int:
    """Where the log has a document's last erasure.

    Args:
        log: Log.
        crate: Crate.
        document_id: As a caller gave it.

    Returns:
        Its position, 0 when the document was never erased.

    Raises:
        Rejected: When the id is empty.
        NotFound: When there is no such crate or document.
        Corrupt: When its erasure can't be read.
        Unavailable: When the log doesn't answer.
    """
    check_document_id(document_id)
    try:
        check_tokens(crate)
    except ValueError as error:
        raise NotFound(f"crate {crate[:64]!r} does not exist: see `affidavit crate list`") from error
    service, name = topology.ERASURE
    erased = await log.last_named(crate=crate, service=service, aggregate=document_id, name=name)
    if erased is not None:
        return erased.position
    if await log.last(crate=crate, service=service, aggregate=document_id) is None:
        raise NotFound(f"document {document_id} does not exist in crate {crate}: see the list of documents")
    return 0


class Walk(Protocol):
    """The log, as far as it is walked through here."""

    def facts(
        self, *, crate: str, service: str, aggregate: str, name: str, stream: str = topology.KNOWLEDGE
    ) -> AsyncIterator[Event]:
        """The events of one kind of an aggregate, oldest first."""


async def replaced_since(log: Walk, event: Event) -> bool:
    """Whether the revision that an event is about was ingested anew, with packs of its own.

    Args:
        log: Log.
        event: Of KNOWLEDGE.

    Returns:
        True when it was; False for events that are about no revision.

    Raises:
        Unavailable: When the log doesn't answer.
    """
    revision, digest = (getattr(event.message, name, None) for name in ("revision", "settings_digest"))
    if not revision or not digest:
        return False
    service, name = topology.INGESTION
    newest = digest
    async for ingested in log.facts(crate=event.crate, service=service, aggregate=event.aggregate, name=name):
        if getattr(ingested.message, "revision", None) == revision:
            newest = getattr(ingested.message, "settings_digest", newest)
    return bool(newest != digest)
