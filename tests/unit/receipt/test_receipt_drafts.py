"""What may be signed, and what a chain allows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.receipt.domain import chains, drafts
from services.receipt.domain.body import Commitments, Stamp, receipt_body
from services.receipt.domain.chains import NO_PARENT, Head, Link
from services.receipt.domain.drafts import Candidate, Draft, Evidence, Unfit

ONE = Evidence("a" * 32, 1, 0, 10, 13, b"one", "support")
DRAFT = Draft(
    answer_id="1" * 32,
    question="When?",
    answer="Now [1].",
    raw_answer="Now [[1]].",
    repairs=("[[1]] became [1]",),
    evidence=(ONE, replace(ONE, document_id="b" * 32), replace(ONE, ordinal=4)),
    candidates=(Candidate("a" * 32, 1, 0),),
    position=7,
    incarnation=bytes(16),
    policy_digest=bytes(32),
    engine_digest=bytes(32),
    mode_requested="verified",
    mode_applied="light",
    mode_reason="mode_not_available",
)
HEAD = Head(bytes(16), 4, b"\x04" * 32, b"\x09" * 16)


def test_a_whole_draft_is_fit() -> None:
    drafts.check(DRAFT)
    drafts.check(replace(DRAFT, evidence=(), candidates=(), repairs=(), answer="", raw_answer=""))
    drafts.check(replace(DRAFT, model="m", model_request_id="r"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answer_id": ""}, "answer_id is empty"),
        ({"question": ""}, "question is empty"),
        ({"question": "x" * (drafts.MAX_TEXT_BYTES + 1)}, "question is over"),
        ({"answer": "é" * (drafts.MAX_TEXT_BYTES // 2 + 1)}, "answer is over"),
        ({"raw_answer": "x" * (drafts.MAX_TEXT_BYTES + 1)}, "raw answer is over"),
        ({"evidence": (ONE,) * (drafts.MAX_EVIDENCE + 1)}, "129 pieces of evidence"),
        ({"candidates": (Candidate("a" * 32, 1, 0),) * (drafts.MAX_CANDIDATES + 1)}, "10001 candidates"),
        ({"repairs": ("x",) * (drafts.MAX_REPAIRS + 1)}, "1001 repairs"),
        ({"repairs": ("x" * (drafts.MAX_REPAIR_CHARS + 1),)}, "a line of repairs"),
        ({"evidence": (replace(ONE, byte_end=10 + 2**23, content=bytes(2**23)),) * 2}, "cite shorter places"),
        ({"policy_digest": b"x"}, "policy_digest has 1 bytes, not 32"),
        ({"engine_digest": b""}, "engine_digest has 0 bytes, not 32"),
        ({"incarnation": bytes(32)}, "incarnation has 32 bytes, not 16"),
        ({"mode_requested": ""}, "mode_requested is empty"),
        ({"mode_applied": ""}, "mode_applied is empty"),
        ({"mode_reason": "x" * 256}, "is over 255 characters"),
        ({"model": "x" * 256}, "is over 255 characters"),
        ({"model_request_id": "r"}, "a request id without a model"),
        ({"position": 2**53}, "is no position of the log"),
        ({"candidates": (Candidate("A" * 32, 1, 0),)}, "a candidate's document id"),
        ({"evidence": (replace(ONE, document_id="../../etc"),)}, "the document id isn't 32 hex digits"),
        ({"evidence": (replace(ONE, revision=0),)}, "revisions count from 1"),
        ({"evidence": (replace(ONE, role="unspecified"),)}, "its role is not one of support, contra, context"),
        ({"evidence": (replace(ONE, byte_start=14),)}, "are no place"),
        ({"evidence": (replace(ONE, byte_end=14),)}, "3 bytes of content for bytes 10 to 14"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, object], words: str) -> None:
    draft = replace(DRAFT, **changes)  # type: ignore[arg-type]  # one table for all fields
    with pytest.raises(Unfit, match=words) as caught:
        drafts.check(draft)
    assert draft.answer_id[:64] in str(caught.value)


def test_citations_are_grouped_by_revision() -> None:
    assert DRAFT.cited == (("a" * 32, 1), ("b" * 32, 1))
    assert DRAFT.places_of("a" * 32, 1) == (0, 2)
    assert DRAFT.places_of("b" * 32, 1) == (1,)
    assert DRAFT.places_of("b" * 32, 2) == ()


def test_erased_documents_are_found_by_revision() -> None:
    cited = (("a", 1), ("b", 3), ("a", 2))
    assert drafts.erased_among(cited, {}) == ()
    assert drafts.erased_among(cited, {"a": 2, "b": 2}) == ("a",)
    assert drafts.erased_among(cited, {"b": 3}) == ("b",)


def test_a_chain_begins_and_goes_on() -> None:
    assert chains.follow(None, b"\x07" * 16) == Link(b"\x07" * 16, 0, NO_PARENT)
    assert chains.follow(HEAD, b"\x07" * 16) == Link(HEAD.chain_id, 5, HEAD.receipt_id)


def test_a_chain_is_not_continued_where_it_would_fork() -> None:
    older = replace(HEAD, sequence=3, receipt_id=b"\x03" * 32)
    assert chains.fault(None, known=None, kid=b"k") == ""
    assert chains.fault(HEAD, known=None, kid=HEAD.kid) == ""
    assert chains.fault(HEAD, known=HEAD, kid=HEAD.kid) == ""
    assert chains.fault(HEAD, known=older, kid=HEAD.kid) == ""
    assert "an older copy of the log" in chains.fault(None, known=HEAD, kid=HEAD.kid)
    assert "an older copy of the log" in chains.fault(older, known=HEAD, kid=HEAD.kid)
    twin = replace(HEAD, receipt_id=b"\x05" * 32)
    assert "another receipt 4" in chains.fault(twin, known=HEAD, kid=HEAD.kid)
    assert "restore the keys folder" in chains.fault(HEAD, known=HEAD, kid=b"\x01" * 16)


def test_the_body_holds_commitments_and_no_text() -> None:
    commitments = Commitments(
        question=b"q" * 32,
        answer=b"a" * 32,
        raw_answer=b"r" * 32,
        repairs=b"p" * 32,
        candidates=b"c" * 32,
        evidence=(b"1" * 32, b"2" * 32, b"3" * 32),
    )
    body = receipt_body(DRAFT, Link(bytes(16), 5, b"\x04" * 32), commitments, Stamp("example.org/a", 1234))
    assert body == {
        "v": 0,
        "iss": "example.org/a",
        "chn": bytes(16),
        "seq": 5,
        "par": b"\x04" * 32,
        "iat": 1234,
        "qry": b"q" * 32,
        "ans": {"raw": b"r" * 32, "rep": b"p" * 32, "txt": b"a" * 32},
        "cur": {"inc": bytes(16), "ssq": 7},
        "cit": [
            {"com": b"1" * 32, "idx": 0, "len": 3, "off": 10, "rol": "support"},
            {"com": b"2" * 32, "idx": 0, "len": 3, "off": 10, "rol": "support"},
            {"com": b"3" * 32, "idx": 4, "len": 3, "off": 10, "rol": "support"},
        ],
        "ret": {"can": b"c" * 32},
        "eng": bytes(32),
        "pol": bytes(32),
        "mod": {"app": "light", "req": "verified", "why": "mode_not_available"},
    }
    with_model = receipt_body(replace(DRAFT, model="m"), Link(bytes(16), 0, NO_PARENT), commitments, Stamp("x", 1))
    assert with_model["llm"] == {"mdl": "m"}
    with_id = replace(DRAFT, model="m", model_request_id="r")
    assert receipt_body(with_id, Link(bytes(16), 0, NO_PARENT), commitments, Stamp("x", 1))["llm"] == {
        "mdl": "m",
        "rid": "r",
    }
