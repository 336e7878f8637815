"""What a verification found: a record of findings, never one boolean."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

OK = "ok"
FAILED = "failed"
NOT_SHOWN = "not shown"
NOT_CHECKED = "not checked"
NOT_GIVEN = "not given"
STATED = "stated"
MATCHED = "matched"


class Exit(IntEnum):
    """Exit codes of `affidavit-verify`, in the order in which the first that applies is taken."""

    OK = 0
    USAGE = 2
    KEYS_FILE = 7
    INTEGRITY = 1
    ISSUER = 3
    CHAIN_LINK = 4
    DISCLOSURE = 5
    COMPARISON = 6


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the verdict.

    Attributes:
        state: One of the words of this module, or "erased" or "withheld".
        detail: What was found, in words.
    """

    state: str
    detail: str = ""


_UNCHECKED = Finding(NOT_CHECKED)


def _no_log(what: str) -> Finding:
    return Finding(NOT_SHOWN, f"receipts of version 0 carry no {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a receipt says, read from signed bytes. Hex where it is bytes.

    Attributes:
        receipt_id: Its id.
        issuer: Who issued it.
        kid: Id of the key that signed it.
        chain: Id of its chain.
        sequence: Its place there, from 0.
        parent: Id of the receipt before it.
        issued_at_ms: Milliseconds since 1970, UTC; the issuer's claim and no proof.
        mode: Mode asked for, mode applied, and why they differ.
        model: Language model and its request id; empty when no model was used.
        position: Position in the issuer's knowledge log that the answer holds for; a hint, not a proof.
        citations: How many pieces of evidence it commits to.
    """

    receipt_id: str
    issuer: str
    kid: str
    chain: str
    sequence: int
    parent: str
    issued_at_ms: int
    mode: tuple[str, str, str]
    model: tuple[str, ...]
    position: int
    citations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Findings of one verification.

    Attributes:
        keys_file: The keys file is as it was written; the detail is its fingerprint, to be compared by the reader.
        integrity: Size, encoding, header and signature.
        issuer_pinned: A pinned key of the issuer signed it.
        chain_link: `ok` when the receipt before it was seen (or it is the first), `stated` when it only names it.
        logged: It stands in the receipts log.
        witnessed: Others cosigned the log.
        evidence_included: Its evidence stands in the knowledge log.
        evidence_current: Its evidence was the current one at the cursor.
        fragility: Its fragility was recomputed.
        chain_complete: Nothing was cut off the chain's end.
        question: What the bundle discloses of the question: `matched`, `erased`, `withheld` or `failed`.
        answer: The answer as delivered, likewise.
        raw_answer: The answer before repair, likewise.
        repairs: The list of repairs, likewise.
        candidates: The list of everything that was considered, likewise.
        evidence: Each citation, likewise.
        question_given: The question that the caller passed in is the receipt's.
        answer_given: The answer that the caller passed in is the receipt's.
        facts: What the receipt says; None unless a pinned key signed it.
    """

    keys_file: Finding = _UNCHECKED
    integrity: Finding = _UNCHECKED
    issuer_pinned: Finding = _UNCHECKED
    chain_link: Finding = _UNCHECKED
    logged: Finding = field(default=_no_log("proof of inclusion in the receipts log"))
    witnessed: Finding = field(default=_no_log("cosignature of a witness"))
    evidence_included: Finding = field(default=_no_log("proof that the evidence is in the knowledge log"))
    evidence_current: Finding = field(default=_no_log("proof that the evidence was the current one"))
    fragility: Finding = field(default=_no_log("fragility"))
    chain_complete: Finding = field(default=_no_log("proof that nothing follows or was cut off"))
    question: Finding = _UNCHECKED
    answer: Finding = _UNCHECKED
    raw_answer: Finding = _UNCHECKED
    repairs: Finding = _UNCHECKED
    candidates: Finding = _UNCHECKED
    evidence: tuple[Finding, ...] = ()
    question_given: Finding = Finding(NOT_GIVEN)
    answer_given: Finding = Finding(NOT_GIVEN)
    facts: Facts | None = None

    @property
    def disclosures(self) -> tuple[Finding, ...]:
        """Everything that the bundle discloses or doesn't."""
        return (self.question, self.answer, self.raw_answer, self.repairs, self.candidates, *self.evidence)

    @property
    def exit(self) -> Exit:
        """The first thing that doesn't hold.

        `Exit.OK` needs all of these: the keys file is whole, integrity and pinned issuer are ok, the chain link is ok
        or stated, no disclosed text differs from its commitment, and every text that the caller passed in is the
        receipt's.
        """
        checks = (
            (self.keys_file.state == OK, Exit.KEYS_FILE),
            (self.integrity.state != FAILED, Exit.INTEGRITY),
            (self.issuer_pinned.state == OK, Exit.ISSUER),
            (self.integrity.state == OK, Exit.INTEGRITY),
            (self.chain_link.state in (OK, STATED), Exit.CHAIN_LINK),
            (all(one.state not in (FAILED, NOT_CHECKED) for one in self.disclosures), Exit.DISCLOSURE),
            (
                all(one.state in (MATCHED, NOT_GIVEN) for one in (self.question_given, self.answer_given)),
                Exit.COMPARISON,
            ),
        )
        return next((code for holds, code in checks if not holds), Exit.OK)

    def lines(self) -> tuple[tuple[str, Finding], ...]:
        """All findings with their names, in the order in which they are checked."""
        named = [
            ("keys file", self.keys_file),
            ("integrity", self.integrity),
            ("issuer pinned", self.issuer_pinned),
            ("chain link", self.chain_link),
            ("logged", self.logged),
            ("witnessed", self.witnessed),
            ("evidence included", self.evidence_included),
            ("evidence current", self.evidence_current),
            ("fragility", self.fragility),
            ("chain complete", self.chain_complete),
            ("question", self.question),
            ("answer", self.answer),
            ("answer before repair", self.raw_answer),
            ("repairs", self.repairs),
            ("candidates", self.candidates),
            *((f"evidence {number}", one) for number, one in enumerate(self.evidence, 1)),
            ("question given", self.question_given),
            ("answer given", self.answer_given),
        ]
        return tuple(named)

    def as_dict(self) -> dict[str, object]:
        """The record as plain values, for JSON.

        Returns:
            `exit`, `exit_name`, `findings` (name -> state and detail) and `facts`, which is absent when no pinned key
            signed the receipt.
        """
        record: dict[str, object] = {
            "exit": int(self.exit),
            "exit_name": self.exit.name.lower(),
            "findings": {name: {"state": one.state, "detail": one.detail} for name, one in self.lines()},
        }
        if self.facts:
            record["facts"] = {
                "receipt_id": self.facts.receipt_id,
                "issuer": self.facts.issuer,
                "kid": self.facts.kid,
                "chain": self.facts.chain,
                "sequence": self.facts.sequence,
                "parent": self.facts.parent,
                "issued_at_ms": self.facts.issued_at_ms,
                "mode": list(self.facts.mode),
                "model": list(self.facts.model),
                "position": self.facts.position,
                "citations": self.facts.citations,
            }
        return record
