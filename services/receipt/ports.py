"""What receipt needs from the outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.kernel.packs import PackRef
from services.receipt.domain.chains import Head


class Signer(Protocol):
    """The signing key."""

    @property
    def issuer(self) -> str:
        """Origin that it signs for."""

    @property
    def kid(self) -> bytes:
        """Id of the key, 16 bytes."""

    @property
    def keys_file(self) -> bytes:
        """What a verifier pins."""

    @property
    def problem(self) -> str:
        """Why it can't sign and what to do, or ""."""

    def check(self) -> None:
        """Make sure that it can sign.

        Raises:
            Unavailable: When the key is lost or not usable; the message says what to do.
        """

    def sign(self, message: bytes) -> bytes:
        """Sign.

        Args:
            message: Bytes.

        Returns:
            64 bytes.

        Raises:
            Unavailable: When it can't.
        """


class Entropy(Protocol):
    """Random bytes from the operating system."""

    def draw(self, size_bytes: int) -> bytes:
        """Fresh random bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptRow:
    """A receipt in the tables.

    Attributes:
        crate: Crate.
        head: Place, id and key.
        parent_id: 32 bytes.
        answer_id: Id of the answer.
        position: Sequence of its event in SIGNALS.
        cose: Its bytes.
        answer_pack: Id of the pack that discloses the answer; None once erased.
        evidence_packs: (document id, revision) -> id of the pack; None once erased.
    """

    crate: str
    head: Head
    parent_id: bytes
    answer_id: str
    position: int
    cose: bytes
    answer_pack: bytes | None
    evidence_packs: Mapping[tuple[str, int], bytes | None]


@dataclass(frozen=True, slots=True)
class ErasedRow:
    """A document that was erased.

    Attributes:
        crate: Crate.
        document_id: 32 hex digits.
        revision: The last one that is gone.
    """

    crate: str
    document_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Gone:
    """What has to be deleted from the packs.

    Attributes:
        crate: Crate.
        receipts: Ids of receipts whose answer's pack goes.
        revisions: (document id, revision) whose evidence goes.
    """

    crate: str
    receipts: tuple[bytes, ...]
    revisions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Intent:
    """Packs that are about to be written for a receipt that the log doesn't hold yet.

    Attributes:
        crate: Crate.
        receipt_id: 32 bytes.
        cited: (document id, revision).
    """

    crate: str
    receipt_id: bytes
    cited: tuple[tuple[str, int], ...]


class DisclosureStore(Protocol):
    """Packs with salts and texts."""

    async def write_answer(self, crate: str, receipt_id: bytes, parts: Mapping[str, bytes]) -> PackRef:
        """Store what discloses question and answer; durable when it returns."""

    async def write_evidence(self, crate: str, document_id: str, revision: int, parts: Mapping[str, bytes]) -> PackRef:
        """Store what discloses one cited revision, below that document's own prefix; durable when it returns."""

    async def read_answer(self, crate: str, receipt_id: bytes, pack_id: bytes) -> dict[str, bytes]:
        """Read it.

        Raises:
            NotFound: When it was erased.
            Corrupt: When it isn't what was written.
        """

    async def read_evidence(self, crate: str, document_id: str, revision: int, pack_id: bytes) -> dict[str, bytes]:
        """Read it.

        Raises:
            NotFound: When it was erased.
            Corrupt: When it isn't what was written.
        """

    async def delete(self, gone: Gone) -> None:
        """Delete for good; what isn't there is fine."""


Delete = Callable[[Gone], Awaitable[None]]


class Tables(Protocol):
    """Receipts by id and by cited document, and the tombstones of documents."""

    async def add(self, rows: Sequence[ReceiptRow], *, position: int, delete: Delete) -> None:
        """Add receipts of the log, idempotent.

        Args:
            rows: In log order.
            position: Of the last event.
            delete: Called, before the rows become visible, with what was erased before they came.

        Raises:
            Corrupt: When another receipt stands at the same place of a chain.
        """

    async def erase(self, erased: Sequence[ErasedRow], *, position: int, delete: Delete) -> None:
        """Take note of erased documents, idempotent.

        Args:
            erased: In log order.
            position: Of the last event.
            delete: Called, before the rows change for others, with what has to go.
        """

    async def receipt(self, crate: str, receipt_id: bytes, *, settled: bool = False) -> ReceiptRow | None:
        """Find a receipt of a crate.

        Args:
            crate: Crate.
            receipt_id: 32 bytes.
            settled: Wait for a running erasure first.
        """

    async def last(self, crate: str) -> Head | None:
        """The last receipt of a crate's chain."""

    async def tombstones(self, crate: str, documents: Sequence[str]) -> dict[str, int]:
        """Last erased revision of those documents that were erased."""

    async def intend(self, intent: Intent) -> None:
        """Take note of packs that are about to be written."""

    async def drop(self, intent: Intent) -> None:
        """Forget an intent: its packs are gone, or its receipt is in the log."""

    async def stale(self, before: datetime) -> tuple[Intent, ...]:
        """Intents older than a time: what a crash left."""

    async def position(self, projection: str) -> int:
        """Position that a projection has applied."""
