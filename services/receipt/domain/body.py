"""The body of a receipt of version 0, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.receipt.domain.chains import Link
from services.receipt.domain.drafts import Draft

VERSION = 0
BodyValue = int | bytes | str | Sequence["BodyValue"] | Mapping[str, "BodyValue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitments:
    """Salted commitments, 32 bytes each."""

    question: bytes
    answer: bytes
    raw_answer: bytes
    repairs: bytes
    candidates: bytes
    evidence: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who issues a receipt, and when.

    Attributes:
        issuer: Origin.
        issued_at_ms: Milliseconds since 1970, UTC.
    """

    issuer: str
    issued_at_ms: int


def receipt_body(draft: Draft, link: Link, commitments: Commitments, stamp: Stamp) -> dict[str, BodyValue]:
    """Lay out a receipt's body.

    Args:
        draft: What is signed; none of its texts get into the body.
        link: Its place in the chain.
        commitments: To the draft's texts.
        stamp: Issuer and time.

    Returns:
        The fields; absent ones aren't in it.
    """
    body: dict[str, BodyValue] = {
        "v": VERSION,
        "iss": stamp.issuer,
        "chn": link.chain_id,
        "seq": link.sequence,
        "par": link.parent,
        "iat": stamp.issued_at_ms,
        "qry": commitments.question,
        "ans": {"raw": commitments.raw_answer, "rep": commitments.repairs, "txt": commitments.answer},
        "cur": {"inc": draft.incarnation, "ssq": draft.position},
        "cit": [
            {
                "com": commitment,
                "idx": one.ordinal,
                "len": one.byte_end - one.byte_start,
                "off": one.byte_start,
                "rol": one.role,
            }
            for one, commitment in zip(draft.evidence, commitments.evidence, strict=True)
        ],
        "ret": {"can": commitments.candidates},
        "eng": draft.engine_digest,
        "pol": draft.policy_digest,
        "mod": {"app": draft.mode_applied, "req": draft.mode_requested, "why": draft.mode_reason},
    }
    if draft.model:
        request = {"rid": draft.model_request_id} if draft.model_request_id else {}
        body["llm"] = {"mdl": draft.model, **request}
    return body
