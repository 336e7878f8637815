"""What other services are told about an answer, and what they say to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from services.query.domain.living import Role
from services.query.domain.modes import ModeDecision
from services.query.domain.values import RecordKey


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer before its markers are repaired.

    Attributes:
        crate_id: Crate.
        answer_id: Answer.
        text: With markers.
        source_count: Markers 1 to this exist.
        literals: Where the text quotes evidence; code points, ends exclusive.
    """

    crate_id: str
    answer_id: str
    text: str
    source_count: int
    literals: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Repaired:
    """A text with markers in one form.

    Attributes:
        text: Repaired.
        cited: Markers that remain, in order of first appearance.
        unsupported: Sentences that lost their source.
        actions: Repairs, one line each.
    """

    text: str
    cited: tuple[int, ...]
    unsupported: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceBytes:
    """One piece of evidence for a receipt: the exact original bytes at its span."""

    key: RecordKey
    byte_start: int
    byte_end: int
    content: bytes
    role: Role = Role.SUPPORT


@dataclass(frozen=True, slots=True)
class Claim:
    """What a receipt has to state.

    Attributes:
        crate_id: Crate.
        answer_id: Answer.
        question: As asked.
        answer_text: As delivered.
        raw_text: As written, before repair.
        evidence: Cited evidence.
        candidates: Everything that was considered.
        position: Cursor.
        incarnation: Of the KNOWLEDGE stream.
        policy_digest: Of the profile's manifest, 32 bytes.
        engine_digest: Of build, models and generation, 32 bytes.
        mode: Requested, applied and why.
        repairs: One line each.
    """

    crate_id: str
    answer_id: str
    question: str
    answer_text: str
    raw_text: str
    evidence: tuple[EvidenceBytes, ...]
    candidates: tuple[RecordKey, ...]
    position: int
    incarnation: bytes
    policy_digest: bytes
    engine_digest: bytes
    mode: ModeDecision
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IssuedReceipt:
    """A signed receipt and the bundle that a file holds."""

    receipt_id: str
    bundle: bytes


@dataclass(frozen=True, slots=True)
class AnswerFact:
    """What the signal AnswerIssued tells: ids only."""

    answer_id: str
    receipt_id: str
    status: str
    document_ids: tuple[str, ...]
    position: int
    mode: ModeDecision
    issued_at: datetime
