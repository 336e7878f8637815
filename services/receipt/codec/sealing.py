"""Drafts to receipts: commitments, encoding and bundles, all by the contracts' own verifier modules."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.verify import bundle as bundles
from affidavit.verify import receipt as receipts
from affidavit.verify.bundle import Disclosures, Opened, OpenedEvidence
from affidavit.verify.encoding import Value, encode
from affidavit.verify.errors import Refused
from affidavit.verify.hashing import Purpose, commitment, evidence_commitment

from services.receipt.domain.body import Commitments, Stamp, receipt_body
from services.receipt.domain.chains import Link
from services.receipt.domain.drafts import Draft, Salts, Unfit


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A receipt that lacks its signature only.

    Attributes:
        kid: Id of the key that is to sign it.
        payload: The encoded body.
        signing_input: The bytes to sign.
        receipt_id: 32 bytes; the signature is no part of it.
    """

    kid: bytes
    payload: bytes
    signing_input: bytes
    receipt_id: bytes


def disclosures(draft: Draft, salts: Salts) -> Disclosures:
    """Everything that a draft's receipt commits to, in the open.

    Args:
        draft: The draft.
        salts: Its salts.

    Returns:
        One place per commitment.
    """
    return Disclosures(
        question=Opened(salts.question, draft.question.encode()),
        answer=Opened(salts.answer, draft.answer.encode()),
        raw_answer=Opened(salts.raw_answer, draft.raw_answer.encode()),
        repairs=Opened(salts.repairs, list(draft.repairs)),
        candidates=Opened(salts.candidates, _candidates(draft)),
        evidence=tuple(
            OpenedEvidence(salt, one.document_id, one.revision, one.content)
            for one, salt in zip(draft.evidence, salts.evidence, strict=True)
        ),
    )


def commit(draft: Draft, salts: Salts) -> Commitments:
    """Commit to a draft's texts.

    Args:
        draft: The draft.
        salts: Its salts.

    Returns:
        The commitments.
    """
    return Commitments(
        question=commitment(Purpose.QUESTION, salts.question, draft.question.encode()),
        answer=commitment(Purpose.ANSWER, salts.answer, draft.answer.encode()),
        raw_answer=commitment(Purpose.RAW_ANSWER, salts.raw_answer, draft.raw_answer.encode()),
        repairs=commitment(Purpose.REPAIRS, salts.repairs, list(draft.repairs)),
        candidates=commitment(Purpose.CANDIDATES, salts.candidates, _candidates(draft)),
        evidence=tuple(
            evidence_commitment(
                salt,
                document_id=one.document_id,
                revision=one.revision,
                ordinal=one.ordinal,
                byte_start=one.byte_start,
                content=one.content,
            )
            for one, salt in zip(draft.evidence, salts.evidence, strict=True)
        ),
    )


def _candidates(draft: Draft) -> list[Value]:
    return [[one.document_id, one.revision, one.ordinal] for one in draft.candidates]


def seal(draft: Draft, link: Link, commitments: Commitments, stamp: Stamp, kid: bytes) -> Unsigned:
    """Encode a receipt and everything about it but the signature.

    Args:
        draft: What is signed.
        link: Its place in the chain.
        commitments: To the draft's texts.
        stamp: Issuer and time.
        kid: Id of the key that will sign, 16 bytes.

    Returns:
        The bytes to sign.

    Raises:
        Unfit: When a verifier would refuse it.
    """
    try:
        payload = receipts.body_payload(receipt_body(draft, link, commitments, stamp))
    except (Refused, TypeError) as error:
        raise Unfit(f"no receipt for answer {draft.answer_id!r}: {error}") from error
    signing_input = receipts.signing_input(kid, payload)
    return Unsigned(kid, payload, signing_input, receipts.receipt_id(signing_input))


def finish(unsigned: Unsigned, signature: bytes) -> bytes:
    """Put the signature in.

    Args:
        unsigned: The receipt.
        signature: 64 bytes over its signing input.

    Returns:
        COSE_Sign1 bytes.
    """
    return receipts.assemble(unsigned.kid, unsigned.payload, signature)


def answer_parts(shown: Disclosures) -> dict[str, bytes]:
    """Lay out the pack that discloses question, answer and what was considered.

    Args:
        shown: Everything in the open.

    Returns:
        Bodies by name; the whole is one encoded list, so that it can't be read in part.
    """
    opened = [_pair(one) for one in (shown.question, shown.answer, shown.raw_answer, shown.repairs, shown.candidates)]
    return {"answer": encode(opened)}


def _pair(one: bundles.Opened | bundles.Gone) -> Value:
    if isinstance(one, bundles.Gone):
        raise TypeError("what is gone can't be stored")
    return [one.salt, one.content]


def evidence_parts(draft: Draft, salts: Salts, document_id: str, revision: int) -> dict[str, bytes]:
    """Lay out the pack that discloses one cited revision.

    Args:
        draft: The draft.
        salts: Its salts.
        document_id: 32 hex digits.
        revision: From 1.

    Returns:
        Salt and content by the number of the citation, from 0.
    """
    places = draft.places_of(document_id, revision)
    return {str(place): salts.evidence[place] + draft.evidence[place].content for place in places}
