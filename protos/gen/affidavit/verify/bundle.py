"""The file that is handed on: a receipt, and what is disclosed of the texts that it commits to.

Every commitment of the receipt has its place in the bundle, with salt and content, or with the word that says why they
aren't there. So nothing can be left out unnoticed, and no byte of the file is without meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from affidavit.verify.encoding import Shape, Value, array, blob, decode, either, encode, one_of, record, row, text, uint
from affidavit.verify.errors import Refused
from affidavit.verify.hashing import SALT_BYTES, Purpose, commitment, evidence_commitment
from affidavit.verify.receipt import MAX_CITATIONS, Receipt, parse

FORMAT = "affidavit receipt bundle v0"
STEP = "bundle"
MAX_BUNDLE_BYTES = 16 * 1024 * 1024
MAX_CANDIDATES = 100_000
MAX_REPAIRS = 10_000
ERASED = "erased"
WITHHELD = "withheld"

_SALT = blob(SALT_BYTES, SALT_BYTES)
_TEXT = blob(0, MAX_BUNDLE_BYTES)
_ID = text(1, 255)
_GONE = record({"gon": one_of(ERASED, WITHHELD)})


def _or_gone(shape: Shape) -> Shape:
    return either(_GONE, shape, decide=lambda value: isinstance(value, dict) and "gon" in value)


_BUNDLE = record(
    {
        "fmt": one_of(FORMAT),
        "rcp": blob(1, MAX_BUNDLE_BYTES),
        "qry": _or_gone(record({"slt": _SALT, "txt": _TEXT})),
        "ans": record(
            {
                "raw": _or_gone(record({"slt": _SALT, "txt": _TEXT})),
                "rep": _or_gone(record({"slt": _SALT, "lst": array(text(0, 10_000), MAX_REPAIRS)})),
                "txt": _or_gone(record({"slt": _SALT, "txt": _TEXT})),
            }
        ),
        "can": _or_gone(record({"slt": _SALT, "lst": array(row(_ID, uint(), uint()), MAX_CANDIDATES)})),
        "evi": array(_or_gone(record({"doc": _ID, "rev": uint(), "slt": _SALT, "txt": _TEXT})), MAX_CITATIONS),
    }
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A disclosure of something that isn't evidence.

    Attributes:
        salt: 32 bytes.
        content: UTF-8 of a text, or a list as it was committed to.
    """

    salt: bytes
    content: Value


@dataclass(frozen=True, slots=True)
class OpenedEvidence:
    """The disclosure of one citation's evidence.

    Attributes:
        salt: 32 bytes.
        document_id: Opaque id of the document.
        revision: Its revision, from 1.
        content: The original bytes at the cited place.
    """

    salt: bytes
    document_id: str
    revision: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing is disclosed.

    Attributes:
        why: `erased` or `withheld`; the bundle says so, no signature does.
    """

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosures:
    """What is disclosed beside a receipt, one place per commitment."""

    question: Opened | Gone
    answer: Opened | Gone
    raw_answer: Opened | Gone
    repairs: Opened | Gone
    candidates: Opened | Gone
    evidence: tuple[OpenedEvidence | Gone, ...]

    @classmethod
    def none(cls, *, citations: int, why: str) -> Disclosures:
        """Nothing is disclosed.

        Args:
            citations: How many citations the receipt has.
            why: `erased` or `withheld`.
        """
        gone = Gone(why)
        return cls(
            question=gone,
            answer=gone,
            raw_answer=gone,
            repairs=gone,
            candidates=gone,
            evidence=(gone,) * citations,
        )


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle whose form is right; neither the signature nor the disclosures have been checked."""

    receipt: Receipt
    disclosures: Disclosures


def assemble(cose: bytes, disclosures: Disclosures) -> bytes:
    """Write a bundle.

    Args:
        cose: The receipt.
        disclosures: One place per commitment of it.

    Returns:
        The file.
    """
    return encode(
        {
            "fmt": FORMAT,
            "rcp": cose,
            "qry": _place(disclosures.question, "txt"),
            "ans": {
                "raw": _place(disclosures.raw_answer, "txt"),
                "rep": _place(disclosures.repairs, "lst"),
                "txt": _place(disclosures.answer, "txt"),
            },
            "can": _place(disclosures.candidates, "lst"),
            "evi": [_evidence_place(one) for one in disclosures.evidence],
        }
    )


def _place(one: Opened | Gone, key: str) -> Value:
    return {"gon": one.why} if isinstance(one, Gone) else {"slt": one.salt, key: one.content}


def _evidence_place(one: OpenedEvidence | Gone) -> Value:
    if isinstance(one, Gone):
        return {"gon": one.why}
    return {"doc": one.document_id, "rev": one.revision, "slt": one.salt, "txt": one.content}


def parse_bundle(file: bytes) -> Bundle:
    """Read a bundle.

    Args:
        file: Its bytes.

    Returns:
        The bundle.

    Raises:
        Refused: When it, or the receipt in it, isn't exactly what the format says.
    """
    parts = decode(file, _BUNDLE, step=STEP, limit=MAX_BUNDLE_BYTES)
    receipt = parse(parts["rcp"])
    citations = len(receipt.body["cit"])
    if len(parts["evi"]) != citations:
        raise Refused(STEP, f"{citations} citations, but {len(parts['evi'])} places for their evidence")
    return Bundle(
        receipt,
        Disclosures(
            question=_opened(parts["qry"], "txt"),
            answer=_opened(parts["ans"]["txt"], "txt"),
            raw_answer=_opened(parts["ans"]["raw"], "txt"),
            repairs=_opened(parts["ans"]["rep"], "lst"),
            candidates=_opened(parts["can"], "lst"),
            evidence=tuple(_opened_evidence(place) for place in parts["evi"]),
        ),
    )


def _opened(place: dict[str, Any], key: str) -> Opened | Gone:
    return Gone(place["gon"]) if "gon" in place else Opened(place["slt"], place[key])


def _opened_evidence(place: dict[str, Any]) -> OpenedEvidence | Gone:
    if "gon" in place:
        return Gone(place["gon"])
    return OpenedEvidence(place["slt"], place["doc"], place["rev"], place["txt"])


def opens(one: Opened, purpose: Purpose, committed: bytes) -> bool:
    """Whether a disclosure is what the receipt commits to.

    Args:
        one: Salt and content.
        purpose: What is committed to.
        committed: The commitment, from the signed body.
    """
    return commitment(purpose, one.salt, one.content) == committed


def evidence_fault(one: OpenedEvidence, citation: dict[str, Any]) -> str | None:
    """What is wrong with disclosed evidence, if anything.

    Args:
        one: The disclosure.
        citation: The citation, from the signed body.

    Returns:
        The fault in words, or None.
    """
    if len(one.content) != citation["len"]:
        return f"{len(one.content)} bytes of evidence, but the receipt says {citation['len']}"
    found = evidence_commitment(
        one.salt,
        document_id=one.document_id,
        revision=one.revision,
        ordinal=citation["idx"],
        byte_start=citation["off"],
        content=one.content,
    )
    if found != citation["com"]:
        return "text, place or salt isn't what the receipt commits to"
    return None
