"""What an answer hands in to be signed, and when it is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAX_EVIDENCE = 128
MAX_CANDIDATES = 10_000
MAX_TEXT_BYTES = 4 * 1024 * 1024
MAX_DISCLOSED_BYTES = 12 * 1024 * 1024
MAX_REPAIRS = 1_000
MAX_REPAIR_CHARS = 1_000
MAX_NAME_CHARS = 255
INCARNATION_BYTES = 16
DIGEST_BYTES = 32
ROLES = ("support", "contra", "context")
_DOCUMENT_ID = re.compile(r"[0-9a-f]{32}")
_MAX_OFFSET = 2**53 - 1


class Unfit(ValueError):  # noqa: N818  (the house names outcomes, not errors)
    """A draft that no receipt can be made of; the message says why and of which answer."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One cited place and the bytes that stand there.

    Attributes:
        document_id: 32 hex digits.
        revision: From 1.
        ordinal: Chunk number in the revision.
        byte_start: Offset into the revision's original bytes.
        byte_end: End of the place, exclusive.
        content: The original bytes of the place.
        role: One of `ROLES`.
    """

    document_id: str
    revision: int
    ordinal: int
    byte_start: int
    byte_end: int
    content: bytes
    role: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that was considered."""

    document_id: str
    revision: int
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An answer with everything that its receipt binds.

    Attributes:
        answer_id: Id of the answer.
        question: As it was asked.
        answer: As it is delivered.
        raw_answer: As it was written, before repair.
        repairs: One line each.
        evidence: In the order of the answer's markers.
        candidates: Everything that was considered.
        position: KNOWLEDGE position that the answer holds for.
        incarnation: Of the KNOWLEDGE stream, 16 bytes.
        policy_digest: 32 bytes.
        engine_digest: 32 bytes.
        mode_requested: Mode asked for.
        mode_applied: Mode applied.
        mode_reason: Why they differ, or empty.
        model: Language model; empty when none was used.
        model_request_id: Its request id; empty when it gave none.
    """

    answer_id: str
    question: str
    answer: str
    raw_answer: str
    repairs: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    position: int
    incarnation: bytes
    policy_digest: bytes
    engine_digest: bytes
    mode_requested: str
    mode_applied: str
    mode_reason: str = ""
    model: str = ""
    model_request_id: str = ""

    @property
    def cited(self) -> tuple[tuple[str, int], ...]:
        """Cited revisions as (document id, revision), each once, in order of first appearance."""
        return tuple(dict.fromkeys((one.document_id, one.revision) for one in self.evidence))

    def places_of(self, document_id: str, revision: int) -> tuple[int, ...]:
        """Which citations, counted from 0, were cut from a revision."""
        wanted = (document_id, revision)
        return tuple(place for place, one in enumerate(self.evidence) if (one.document_id, one.revision) == wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Salts:
    """Fresh random bytes, 32 for each commitment."""

    question: bytes
    answer: bytes
    raw_answer: bytes
    repairs: bytes
    candidates: bytes
    evidence: tuple[bytes, ...] = field(default=())


def check(draft: Draft) -> None:
    """Refuse what no receipt can be made of.

    Args:
        draft: As it was handed in.

    Raises:
        Unfit: With what is wrong and what to do.
    """
    _check_texts(draft)
    _check_sizes(draft)
    _check_names(draft)
    for place, one in enumerate(draft.evidence):
        _check_evidence(draft, place, one)


def _refuse(draft: Draft, what: str) -> Unfit:
    return Unfit(f"no receipt for answer {draft.answer_id[:64]!r}: {what}")


def _check_texts(draft: Draft) -> None:
    if not draft.answer_id:
        raise _refuse(draft, "answer_id is empty; every answer has an id of its own")
    if not draft.question:
        raise _refuse(draft, "question is empty; send it as it was asked")
    for name, text in (("question", draft.question), ("answer", draft.answer), ("raw answer", draft.raw_answer)):
        if len(text.encode()) > MAX_TEXT_BYTES:
            raise _refuse(draft, f"{name} is over {MAX_TEXT_BYTES} bytes; shorten it")


def _check_sizes(draft: Draft) -> None:
    for name, items, most in (
        ("pieces of evidence", draft.evidence, MAX_EVIDENCE),
        ("candidates", draft.candidates, MAX_CANDIDATES),
        ("repairs", draft.repairs, MAX_REPAIRS),
    ):
        if len(items) > most:
            raise _refuse(draft, f"{len(items)} {name}, a receipt holds at most {most}")
    if any(len(line) > MAX_REPAIR_CHARS for line in draft.repairs):
        raise _refuse(draft, f"a line of repairs is over {MAX_REPAIR_CHARS} characters; shorten it")
    disclosed = sum(len(one.content) for one in draft.evidence)
    disclosed += sum(len(text.encode()) for text in (draft.question, draft.answer, draft.raw_answer))
    if disclosed > MAX_DISCLOSED_BYTES:
        raise _refuse(draft, f"its texts have {disclosed} bytes, at most {MAX_DISCLOSED_BYTES}; cite shorter places")


def _check_names(draft: Draft) -> None:
    for name, value, size in (
        ("policy_digest", draft.policy_digest, DIGEST_BYTES),
        ("engine_digest", draft.engine_digest, DIGEST_BYTES),
        ("incarnation", draft.incarnation, INCARNATION_BYTES),
    ):
        if len(value) != size:
            raise _refuse(draft, f"{name} has {len(value)} bytes, not {size}")
    for name, text in (("mode_requested", draft.mode_requested), ("mode_applied", draft.mode_applied)):
        if not text:
            raise _refuse(draft, f"{name} is empty; a receipt states both modes")
    names = (draft.mode_requested, draft.mode_applied, draft.mode_reason, draft.model, draft.model_request_id)
    if any(len(text) > MAX_NAME_CHARS for text in names):
        raise _refuse(draft, f"a mode, its reason, the model or its request id is over {MAX_NAME_CHARS} characters")
    if draft.model_request_id and not draft.model:
        raise _refuse(draft, "a request id without a model; send llm_model as well")
    if draft.position > _MAX_OFFSET:
        raise _refuse(draft, f"position {draft.position} is no position of the log")
    for one in draft.candidates:
        if not _DOCUMENT_ID.fullmatch(one.document_id):
            raise _refuse(draft, "a candidate's document id isn't 32 hex digits")


def _check_evidence(draft: Draft, place: int, one: Evidence) -> None:
    where = f"evidence {place + 1} (document {one.document_id[:64]!r})"
    if not _DOCUMENT_ID.fullmatch(one.document_id):
        raise _refuse(draft, f"{where}: the document id isn't 32 hex digits")
    if one.revision < 1:
        raise _refuse(draft, f"{where}: revisions count from 1")
    if one.role not in ROLES:
        raise _refuse(draft, f"{where}: its role is not one of {', '.join(ROLES)}")
    if not one.byte_start <= one.byte_end <= _MAX_OFFSET:
        raise _refuse(draft, f"{where}: bytes {one.byte_start} to {one.byte_end} are no place")
    if len(one.content) != one.byte_end - one.byte_start:
        raise _refuse(
            draft,
            f"{where}: {len(one.content)} bytes of content for bytes {one.byte_start} to {one.byte_end}; "
            "send the original bytes of exactly that place",
        )


def erased_among(cited: Sequence[tuple[str, int]], tombstones: Mapping[str, int]) -> tuple[str, ...]:
    """Which cited documents are gone.

    Args:
        cited: (document id, revision).
        tombstones: Last erased revision by document id. A document that was put again has a higher one.

    Returns:
        Their ids, in the order in which they are cited.
    """
    gone = (document for document, revision in cited if revision <= tombstones.get(document, 0))
    return tuple(dict.fromkeys(gone))
