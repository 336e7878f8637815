"""Protobuf to domain and back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from affidavit.event.v1 import envelope_pb2
from affidavit.ingest.v1 import ingest_events_pb2
from affidavit.receipt.v1 import receipt_events_pb2 as events_pb
from affidavit.receipt.v1 import receipt_service_pb2 as pb
from affidavit.verify.errors import Refused
from affidavit.verify.receipt import parse
from google.protobuf.message import Message

from services.kernel.packs import PackRef
from services.receipt.domain.chains import Head
from services.receipt.domain.drafts import Candidate, Draft, Evidence

RECEIPT_EVENTS = ("ReceiptIssued",)
ERASURE_EVENTS = ("DocumentErased",)

_ROLES = {
    pb.EVIDENCE_ROLE_SUPPORT: "support",
    pb.EVIDENCE_ROLE_CONTRA: "contra",
    pb.EVIDENCE_ROLE_CONTEXT: "context",
}


@dataclass(frozen=True, slots=True)
class EvidencePack:
    """The pack that discloses one cited revision."""

    document_id: str
    revision: int
    pack: PackRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A receipt as the log records it.

    Attributes:
        cose: Its bytes.
        head: Its place, id and key, read from those bytes.
        parent_id: Id of the receipt before it, 32 bytes.
        answer_id: Id of the answer.
        answer_pack: Discloses question, answer and what was considered.
        evidence_packs: One per cited revision.
        issued_at: By the issuer's clock, UTC.
    """

    cose: bytes
    head: Head
    parent_id: bytes
    answer_id: str
    answer_pack: PackRef
    evidence_packs: tuple[EvidencePack, ...]
    issued_at: datetime


@dataclass(frozen=True, slots=True)
class Erasure:
    """A document that is gone for good.

    Attributes:
        document_id: 32 hex digits.
        revision: The last one that is gone.
    """

    document_id: str
    revision: int


def draft_from(request: pb.IssueReceiptRequest) -> Draft:
    """Read what is to be signed; nothing is checked yet.

    Args:
        request: As it came.

    Returns:
        The draft.
    """
    return Draft(
        answer_id=request.answer_id,
        question=request.question,
        answer=request.answer_text,
        raw_answer=request.raw_answer_text,
        repairs=tuple(request.repairs),
        evidence=tuple(
            Evidence(
                document_id=one.document_id,
                revision=one.revision,
                ordinal=one.ordinal,
                byte_start=one.byte_start,
                byte_end=one.byte_end,
                content=one.content,
                role=_ROLES.get(one.role, "unspecified"),
            )
            for one in request.evidence
        ),
        candidates=tuple(Candidate(one.document_id, one.revision, one.ordinal) for one in request.candidates),
        position=request.position,
        incarnation=request.incarnation,
        policy_digest=request.policy_digest,
        engine_digest=request.engine_digest,
        mode_requested=request.mode_requested,
        mode_applied=request.mode_applied,
        mode_reason=request.mode_reason,
        model=request.llm_model,
        model_request_id=request.llm_request_id,
    )


def event_from(issued: Issued) -> events_pb.ReceiptIssued:
    """Write the signal.

    Args:
        issued: The receipt.

    Returns:
        The event's body.
    """
    head = issued.head
    message = events_pb.ReceiptIssued(
        receipt_id=head.receipt_id.hex(),
        chain_id=head.chain_id.hex(),
        sequence=head.sequence,
        parent_id=issued.parent_id.hex(),
        cose=issued.cose,
        cited_document_ids=list(dict.fromkeys(pack.document_id for pack in issued.evidence_packs)),
        answer_disclosure=_reference(issued.answer_pack),
        evidence_disclosures=[
            events_pb.EvidencePack(document_id=one.document_id, revision=one.revision, pack=_reference(one.pack))
            for one in issued.evidence_packs
        ],
        answer_id=issued.answer_id,
    )
    message.issued_at.FromDatetime(issued.issued_at)
    return message


def issued_from(message: Message) -> Issued:
    """Read the signal. What the receipt's own bytes say is taken from them, not from the fields beside them.

    Args:
        message: The event's body.

    Returns:
        The receipt.

    Raises:
        ValueError: When its bytes are no receipt, or the fields beside them say something else.
    """
    if not isinstance(message, events_pb.ReceiptIssued):
        raise ValueError(f"{message.DESCRIPTOR.full_name} is not ReceiptIssued")  # noqa: TRY004  (data, not a misuse)
    try:
        receipt = parse(message.cose)
    except Refused as refusal:
        raise ValueError(f"event of receipt {message.receipt_id[:64]} holds no receipt: {refusal}") from refusal
    stated = (message.receipt_id, message.chain_id, message.sequence, message.parent_id)
    found = (receipt.id.hex(), receipt.chain.hex(), receipt.sequence, receipt.parent.hex())
    if stated != found:
        raise ValueError(f"event of receipt {message.receipt_id[:64]} holds another receipt, {found[0]}")
    return Issued(
        cose=message.cose,
        head=Head(receipt.chain, receipt.sequence, receipt.id, receipt.kid),
        parent_id=receipt.parent,
        answer_id=message.answer_id,
        answer_pack=_stored(message.answer_disclosure),
        evidence_packs=tuple(
            EvidencePack(one.document_id, one.revision, _stored(one.pack)) for one in message.evidence_disclosures
        ),
        issued_at=message.issued_at.ToDatetime(UTC),
    )


def erasure_from(message: Message) -> Erasure:
    """Read the fact that a document was erased.

    Args:
        message: The event's body.

    Returns:
        The erasure.

    Raises:
        ValueError: When it is another event.
    """
    if not isinstance(message, ingest_events_pb2.DocumentErased):
        raise ValueError(f"{message.DESCRIPTOR.full_name} is not DocumentErased")  # noqa: TRY004  (data, not a misuse)
    return Erasure(message.document_id, message.revision)


def _reference(pack: PackRef) -> envelope_pb2.PackRef:
    return envelope_pb2.PackRef(id=pack.id, size_bytes=pack.size_bytes)


def _stored(reference: envelope_pb2.PackRef) -> PackRef:
    return PackRef(reference.id, reference.size_bytes)


def issue_response(receipt_id: bytes, bundle: bytes) -> pb.IssueReceiptResponse:
    """Write the reply to IssueReceipt."""
    return pb.IssueReceiptResponse(receipt_id=receipt_id.hex(), bundle=bundle)


def get_response(bundle: bytes, view_json: str, *, disclosed: bool) -> pb.GetReceiptResponse:
    """Write the reply to GetReceipt."""
    return pb.GetReceiptResponse(bundle=bundle, view_json=view_json, disclosed=disclosed)


def verify_response(*, ok: bool, verdict_json: str) -> pb.VerifyReceiptResponse:
    """Write the reply to VerifyReceipt."""
    return pb.VerifyReceiptResponse(ok=ok, verdict_json=verdict_json)


def keys_response(keys_file: bytes) -> pb.ListKeysResponse:
    """Write the reply to ListKeys."""
    return pb.ListKeysResponse(keys_file=keys_file)
