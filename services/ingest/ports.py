"""What ingest needs from the outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from google.protobuf.message import Message

from services.ingest.domain.documents import Manifest, Pack, Prepared, Status
from services.ingest.domain.headers import Header
from services.ingest.domain.values import (
    Counts,
    CrateView,
    DocumentView,
    FailureView,
    JobRow,
    Page,
    Placed,
    PutState,
    Selection,
    SourceAddress,
    UnderWay,
    Usage,
)
from services.kernel.bus import Appended
from services.kernel.envelope import Event


class Tables(Protocol):
    """Projected rows: written by the projections only, read by everybody."""

    async def position(self, projection: str) -> int:
        """Stream sequence that a projection has applied, 0 at first."""

    async def apply(self, projection: str, position: int, facts: Sequence[Placed]) -> None:
        """Store what facts change, and the position, in one transaction.

        Args:
            projection: Name of the projection.
            position: Of the last fact.
            facts: In the order of their places; those at or below the stored position are skipped.
        """

    async def put_state(self, crate_id: str, document_id: str, job_id: str, submission: str) -> PutState | None:
        """Read what a decision needs; empty job and submission name none; None when there is no such crate."""

    async def crate(self, crate_id: str) -> CrateView | None:
        """One crate."""

    async def crates(self) -> tuple[CrateView, ...]:
        """All crates by id."""

    async def jobs(self, crate_id: str) -> tuple[JobRow, ...]:
        """All jobs of a crate by id."""

    async def document(self, crate_id: str, document_id: str) -> DocumentView | None:
        """One document with all its revisions."""

    async def documents(
        self, crate_id: str, page: Page, statuses: Sequence[Status], job_id: str
    ) -> tuple[tuple[DocumentView, ...], tuple[str, ...]]:
        """One page of documents by source id, and the sort key of the next page, empty at the end."""

    async def missing(self, crate_id: str, job_id: str, document_ids: Sequence[str]) -> str:
        """The first of a job (empty for none) and some documents that there isn't, in words; empty when all are there."""

    async def counts(self, selection: Selection, under_way: Sequence[UnderWay] = ()) -> Counts:
        """How far the pipeline is.

        Args:
            selection: Documents that count.
            under_way: What is told of documents that are being embedded.
        """

    async def usage(self, crate_id: str) -> Usage:
        """What a crate uses of its quotas."""

    async def failure(self, crate_id: str, failure_id: int) -> FailureView | None:
        """One failure."""

    async def failures(
        self, crate_id: str, page: Page, *, open_only: bool
    ) -> tuple[tuple[FailureView, ...], tuple[str, ...]]:
        """One page of failures, newest first, and the sort key of the next page, empty at the end."""


class Preparer(Protocol):
    """Reads bodies: charset, form, text, structure."""

    async def prepare(self, crate_id: str, header: Header, body: bytes) -> Prepared:
        """Read a body without holding up other work.

        Args:
            crate_id: Crate, the last resort for the source domain.
            header: Checked.
            body: Original bytes.

        Returns:
            What is in it.

        Raises:
            Refused: When it isn't what it is said to be, or of a kind that isn't read.
            Unavailable: When the work could not be done, for example for want of memory.
        """


class Sources(Protocol):
    """Source packs: the original bytes, their normalised text and what is known of them."""

    async def write(self, at: SourceAddress, manifest: Manifest, raw: bytes, normalized: bytes) -> Pack:
        """Store a source pack durably."""

    async def manifest(self, at: SourceAddress, source: Pack) -> Manifest | None:
        """What is known of a revision; None when its pack is gone or damaged."""

    async def raw(self, at: SourceAddress, source: Pack) -> bytes:
        """Original bytes of a revision.

        Raises:
            NotFound: When the pack is gone.
            Corrupt: When it is damaged.
        """

    async def intact(self, at: SourceAddress, source: Pack, *, searchable: bool = False) -> bool:
        """Whether a revision's source pack is there and right, and what was made of it is not damaged.

        A searchable revision has packs of every later step; where there is none of one, it was lost. Packs of later steps that are damaged are deleted: nothing can be read from them, and cutting again makes them.
        """

    async def erase(self, crate_id: str, document_id: str, revision: int, *, whole: bool) -> None:
        """Delete everything of a document up to a revision, or all of it when `whole`."""

    async def write_secret(self, crate_id: str, secret: bytes) -> Pack:
        """Store a crate's secret durably."""

    async def secret(self, crate_id: str, pack: Pack) -> bytes:
        """Read a crate's secret."""


class History(Protocol):
    """The log, as ingest looks facts up in it."""

    async def last(self, *, crate: str, service: str, aggregate: str, stream: str | None = None) -> Event | None:
        """The last event of an aggregate."""

    async def last_named(self, *, crate: str, service: str, aggregate: str, name: str) -> Event | None:
        """The last event of one kind of an aggregate."""


class Log(History, Protocol):
    """The log, as ingest writes it."""

    async def append(
        self, *, crate: str, aggregate: str, message: Message, key: str, expected: int | None = None
    ) -> Appended:
        """Append one event durably.

        Raises:
            Conflict: When the aggregate's last event isn't the expected one.
            Unavailable: When the log doesn't confirm.
        """


class Applied(Protocol):
    """Waits for the service's own projection."""

    async def __call__(self, position: int) -> bool:
        """True once the projection has applied a position, False when that takes too long."""


class HandedOver(Protocol):
    """Finds what a TaskRetried is about."""

    async def __call__(self, event: Event) -> Event | None:
        """The event that ingest gave up; None when another role did, or when it still can't be read."""
