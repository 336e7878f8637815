"""Between drafts, receipts, packs, events and bundles nothing is lost, and nothing is read that wasn't written."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.receipt.v1 import receipt_events_pb2 as events_pb
from affidavit.receipt.v1 import receipt_service_pb2 as pb
from affidavit.verify import Exit, verify_bundle
from affidavit.verify import keys as keys_files
from affidavit.verify.bundle import Gone, parse_bundle
from affidavit.verify.keys import PinnedKey
from affidavit.verify.signature import key_id
from nacl.signing import SigningKey

from services.kernel.packs import PackRef
from services.receipt.codec import messages, opening, sealing
from services.receipt.codec.messages import EvidencePack, Issued
from services.receipt.domain.body import Stamp
from services.receipt.domain.chains import NO_PARENT, Head, Link
from services.receipt.domain.drafts import Candidate, Draft, Evidence, Salts, Unfit

KEY = SigningKey(b"\x03" * 32)
KID = key_id(bytes(KEY.verify_key))
STAMP = Stamp("example.org/a", 1_800_000_000_123)
LINK = Link(bytes(16), 0, NO_PARENT)
REQUEST = pb.IssueReceiptRequest(
    crate_id="main",
    answer_id="1" * 32,
    question="Wie viel Safran? ☕",
    answer_text="So viel [1][2].",
    raw_answer_text="So viel [1, 2].",
    evidence=[
        pb.Evidence(
            document_id="a" * 32,
            revision=2,
            ordinal=7,
            byte_start=5,
            byte_end=10,
            content="Caf\u00e9".encode(),
            role=pb.EVIDENCE_ROLE_SUPPORT,
        ),
        pb.Evidence(
            document_id="b" * 32,
            revision=1,
            byte_start=0,
            byte_end=2,
            content=b"\xff\xfe",
            role=pb.EVIDENCE_ROLE_CONTRA,
        ),
        pb.Evidence(
            document_id="a" * 32, revision=2, ordinal=8, byte_start=9, byte_end=9, role=pb.EVIDENCE_ROLE_CONTEXT
        ),
        pb.Evidence(document_id="a" * 32, revision=2, ordinal=8, byte_start=9, byte_end=9),
    ],
    candidates=[pb.Candidate(document_id="a" * 32, revision=2, ordinal=7)],
    position=12,
    incarnation=bytes(16),
    policy_digest=b"\x01" * 32,
    engine_digest=b"\x02" * 32,
    mode_requested="verified",
    mode_applied="light",
    mode_reason="mode_not_available",
    llm_model="m",
    llm_request_id="r",
    repairs=["[1, 2] became [1][2]"],
)
DRAFT = messages.draft_from(REQUEST)
SALTS = Salts(
    question=b"\x11" * 32,
    answer=b"\x12" * 32,
    raw_answer=b"\x13" * 32,
    repairs=b"\x14" * 32,
    candidates=b"\x15" * 32,
    evidence=(b"\x21" * 32, b"\x22" * 32, b"\x23" * 32, b"\x24" * 32),
)
FIT = replace(DRAFT, evidence=DRAFT.evidence[:3])
FIT_SALTS = replace(SALTS, evidence=SALTS.evidence[:3])
KEYS = keys_files.render([PinnedKey("example.org/a", bytes(KEY.verify_key))])


def sealed(draft: Draft = FIT, link: Link = LINK) -> tuple[bytes, bytes]:
    unsigned = sealing.seal(draft, link, sealing.commit(draft, FIT_SALTS), STAMP, KID)
    return sealing.finish(unsigned, KEY.sign(unsigned.signing_input).signature), unsigned.receipt_id


def packs() -> tuple[dict[str, bytes], dict[tuple[str, int], dict[str, bytes] | None]]:
    answer = sealing.answer_parts(sealing.disclosures(FIT, FIT_SALTS))
    return answer, {cited: sealing.evidence_parts(FIT, FIT_SALTS, *cited) for cited in FIT.cited}


def test_a_request_becomes_a_draft() -> None:
    assert DRAFT.answer_id == "1" * 32
    assert DRAFT.evidence[0] == Evidence("a" * 32, 2, 7, 5, 10, "Café".encode(), "support")
    assert [one.role for one in DRAFT.evidence] == ["support", "contra", "context", "unspecified"]
    assert DRAFT.candidates == (Candidate("a" * 32, 2, 7),)
    assert (DRAFT.model, DRAFT.model_request_id) == ("m", "r")
    assert DRAFT.repairs == ("[1, 2] became [1][2]",)


def test_packs_open_every_commitment() -> None:
    cose, receipt_id = sealed()
    answer, evidence = packs()
    assert set(evidence["a" * 32, 2] or {}) == {"0", "2"}
    shown = opening.opened(cose, answer, evidence)
    assert shown == sealing.disclosures(FIT, FIT_SALTS)
    assert opening.is_complete(shown)
    verdict = verify_bundle(opening.bundle(cose, shown), KEYS, question=FIT.question, answer=FIT.answer)
    assert verdict.exit is Exit.OK
    assert verdict.facts is not None
    assert verdict.facts.receipt_id == receipt_id.hex()
    assert {one.state for one in verdict.disclosures} == {"matched"}


def test_erased_packs_leave_their_places() -> None:
    cose, _ = sealed()
    answer, evidence = packs()
    evidence["b" * 32, 1] = None
    shown = opening.opened(cose, answer, evidence)
    assert [isinstance(one, Gone) for one in shown.evidence] == [False, True, False]
    assert not opening.is_complete(shown)
    without = opening.opened(cose, None, {})
    assert verify_bundle(opening.bundle(cose, without), KEYS).exit is Exit.OK
    assert json.loads(opening.view(cose, without))["answer"] == {"state": "erased"}


@pytest.mark.parametrize("parts", [{}, {"answer": b""}, {"answer": b"\x80"}, {"other": b"\x80"}])
def test_a_pack_of_another_layout_is_refused(parts: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match="pack of the answer"):
        opening.opened(sealed()[0], parts, {})


def test_what_is_gone_is_never_packed() -> None:
    shown = opening.opened(sealed()[0], None, {})
    with pytest.raises(TypeError, match="gone"):
        sealing.answer_parts(shown)


def test_a_draft_that_no_verifier_would_read_is_not_signed() -> None:
    too_many = replace(FIT, evidence=FIT.evidence * 100)
    salts = replace(FIT_SALTS, evidence=FIT_SALTS.evidence * 100)
    with pytest.raises(Unfit, match="cit: must be a list of at most 256"):
        sealing.seal(too_many, LINK, sealing.commit(too_many, salts), STAMP, KID)
    with pytest.raises(Unfit, match="int has no place"):
        sealing.seal(replace(FIT, position=-1), LINK, sealing.commit(FIT, FIT_SALTS), STAMP, KID)


def issued() -> Issued:
    cose, receipt_id = sealed()
    return Issued(
        cose=cose,
        head=Head(LINK.chain_id, 0, receipt_id, KID),
        parent_id=NO_PARENT,
        answer_id="1" * 32,
        answer_pack=PackRef(b"\x31" * 32, 100),
        evidence_packs=(
            EvidencePack("a" * 32, 2, PackRef(b"\x32" * 32, 200)),
            EvidencePack("a" * 32, 3, PackRef(b"\x33" * 32, 300)),
        ),
        issued_at=datetime(2026, 11, 30, 12, tzinfo=UTC),
    )


def test_an_event_comes_back_as_it_was() -> None:
    message = messages.event_from(issued())
    assert message.receipt_id == issued().head.receipt_id.hex()
    assert list(message.cited_document_ids) == ["a" * 32]
    read = events_pb.ReceiptIssued.FromString(message.SerializeToString())
    assert messages.issued_from(read) == issued()


@pytest.mark.parametrize("field", ["receipt_id", "chain_id", "parent_id"])
def test_an_event_whose_fields_say_something_else_is_refused(field: str) -> None:
    message = messages.event_from(issued())
    setattr(message, field, "00" * 8)
    with pytest.raises(ValueError, match="holds another receipt"):
        messages.issued_from(message)


def test_events_of_other_kinds_are_refused() -> None:
    message = messages.event_from(issued())
    message.cose = b"\x00"
    with pytest.raises(ValueError, match="holds no receipt"):
        messages.issued_from(message)
    erased = ingest_pb.DocumentErased(document_id="a" * 32, revision=3)
    assert messages.erasure_from(erased) == messages.Erasure("a" * 32, 3)
    with pytest.raises(ValueError, match="is not ReceiptIssued"):
        messages.issued_from(erased)
    with pytest.raises(ValueError, match="is not DocumentErased"):
        messages.erasure_from(message)


def test_the_parent_that_a_bundle_names() -> None:
    answer, evidence = packs()
    first, first_id = sealed()
    second, _ = sealed(link=Link(bytes(16), 1, first_id))
    shown = opening.opened(first, answer, evidence)
    assert opening.parent_of(opening.bundle(first, shown)) is None
    assert opening.parent_of(opening.bundle(second, shown)) == first_id
    assert opening.parent_of(b"junk") is None
    closed = opening.closed_bundle(first)
    assert {one.state for one in verify_bundle(closed, KEYS).disclosures} == {"withheld"}
    verdict = verify_bundle(opening.bundle(second, shown), KEYS, parents=[closed])
    assert verdict.chain_link.state == "ok"


def test_the_view_shows_everything_readable() -> None:
    cose, receipt_id = sealed()
    view = json.loads(opening.view(cose, opening.opened(cose, *packs())))
    assert view["receipt_id"] == receipt_id.hex() == parse_bundle(opening.closed_bundle(cose)).receipt.id.hex()
    assert view["issued_at"] == "2027-01-15T08:00:00.123000Z"
    assert view["question"] == {"state": "disclosed", "content": "Wie viel Safran? ☕"}
    assert view["repairs"]["content"] == ["[1, 2] became [1][2]"]
    assert view["candidates"]["content"] == [["a" * 32, 2, 7]]
    assert [one["text"] for one in view["citations"]] == ["Café", "\ufffd\ufffd", ""]
    assert [one["role"] for one in view["citations"]] == ["support", "contra", "context"]
    assert view["model"] == {"name": "m", "request_id": "r"}
    plain, _ = sealed(replace(FIT, model="", model_request_id=""))
    assert "model" not in json.loads(opening.view(plain, opening.opened(plain, *packs())))


def test_replies() -> None:
    assert messages.issue_response(b"\x01" * 32, b"b") == pb.IssueReceiptResponse(receipt_id="01" * 32, bundle=b"b")
    shown = pb.GetReceiptResponse(bundle=b"b", view_json="{}", disclosed=True)
    assert messages.get_response(b"b", "{}", disclosed=True) == shown
    assert messages.verify_response(ok=True, verdict_json="{}") == pb.VerifyReceiptResponse(ok=True, verdict_json="{}")
    assert messages.keys_response(b"k") == pb.ListKeysResponse(keys_file=b"k")
