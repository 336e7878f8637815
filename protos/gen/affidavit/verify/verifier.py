"""The verification, step by step, in the order that the format fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from affidavit.verify import bundle as bundles
from affidavit.verify import keys as keys_files
from affidavit.verify.bundle import Bundle, Gone, Opened, OpenedEvidence
from affidavit.verify.chain import ISSUER, check_form, check_links, check_signer
from affidavit.verify.errors import Refused
from affidavit.verify.hashing import Purpose, commitment
from affidavit.verify.keys import PinnedKeys
from affidavit.verify.receipt import Receipt
from affidavit.verify.verdict import FAILED, MATCHED, NOT_SHOWN, OK, STATED, Facts, Finding, Verdict


def verify_bundle(
    bundle: bytes,
    keys: bytes,
    *,
    question: str | bytes | None = None,
    answer: str | bytes | None = None,
    parents: Sequence[bytes] = (),
) -> Verdict:
    """Verify a bundle offline.

    Args:
        bundle: Bytes of the receipt's file.
        keys: Bytes of the keys file that the reader pinned.
        question: The question that was asked, if the caller wants to compare it; bytes are compared as they stand.
        answer: The answer that was delivered, likewise.
        parents: Files of other receipts of the same chain, in any order.

    Returns:
        The findings. Nothing is raised for bytes that are wrong, whatever they are.
    """
    verdict = Verdict()
    try:
        pinned = keys_files.parse(keys)
    except Refused as refusal:
        return replace(verdict, keys_file=Finding(FAILED, refusal.reason))
    verdict = replace(verdict, keys_file=Finding(OK, f"fingerprint {pinned.fingerprint}"))
    try:
        read = bundles.parse_bundle(bundle)
    except Refused as refusal:
        return replace(verdict, integrity=_failed(refusal))
    verdict = _signer(verdict, read.receipt, pinned)
    if verdict.integrity.state != OK:
        return verdict
    verdict = _chain(verdict, read.receipt, parents, pinned)
    verdict = _disclosures(verdict, read)
    return _comparisons(verdict, read, question, answer)


def _failed(refusal: Refused) -> Finding:
    return Finding(FAILED, str(refusal))


def _signer(verdict: Verdict, receipt: Receipt, pinned: PinnedKeys) -> Verdict:
    try:
        key = check_signer(receipt, pinned)
    except Refused as refusal:
        if refusal.step == ISSUER:
            unknown = Finding(NOT_SHOWN, "the signature can't be checked without a pinned key of the issuer")
            return replace(verdict, integrity=unknown, issuer_pinned=Finding(FAILED, refusal.reason))
        return replace(verdict, integrity=_failed(refusal), issuer_pinned=Finding(NOT_SHOWN, "no good signature"))
    pinned_as = Finding(OK, f"{key.issuer}, key {key.kid.hex()}")
    if not key.unlimited:
        limits = f"key {key.kid.hex()} is limited to positions of the receipts log, and the receipt shows no position"
        pinned_as = Finding(NOT_SHOWN, limits)
    return replace(
        verdict,
        integrity=Finding(OK, f"the signed bytes are unchanged; receipt {receipt.id.hex()}"),
        issuer_pinned=pinned_as,
        facts=_facts(receipt),
    )


def _facts(receipt: Receipt) -> Facts:
    mode = receipt.body["mod"]
    return Facts(
        receipt_id=receipt.id.hex(),
        issuer=receipt.issuer,
        kid=receipt.kid.hex(),
        chain=receipt.chain.hex(),
        sequence=receipt.sequence,
        parent=receipt.parent.hex(),
        issued_at_ms=receipt.body["iat"],
        mode=(mode["req"], mode["app"], mode["why"]),
        model=tuple(receipt.body.get("llm", {}).values()),
        position=receipt.body["cur"]["ssq"],
        citations=len(receipt.body["cit"]),
    )


def _chain(verdict: Verdict, receipt: Receipt, parents: Sequence[bytes], pinned: PinnedKeys) -> Verdict:
    try:
        check_form(receipt)
        others = tuple(_other(file, number, pinned) for number, file in enumerate(parents, 1))
        link = check_links(receipt, others)
    except Refused as refusal:
        return replace(verdict, chain_link=Finding(FAILED, refusal.reason))
    if receipt.sequence == 0:
        return replace(verdict, chain_link=Finding(OK, "the first of its chain"))
    if not link.parent_seen:
        detail = f"names {receipt.parent.hex()} as the receipt before it, which was not given"
        return replace(verdict, chain_link=Finding(STATED, detail))
    return replace(verdict, chain_link=Finding(OK, f"unbroken from receipt {link.lowest} to {receipt.sequence}"))


def _other(file: bytes, number: int, pinned: PinnedKeys) -> Receipt:
    try:
        receipt = bundles.parse_bundle(file).receipt
        check_signer(receipt, pinned)
    except Refused as refusal:
        raise Refused("chain link", f"file {number} of the chain: {refusal}") from refusal
    return receipt


def _disclosures(verdict: Verdict, read: Bundle) -> Verdict:
    body, shown = read.receipt.body, read.disclosures
    return replace(
        verdict,
        question=_disclosed(shown.question, Purpose.QUESTION, body["qry"]),
        answer=_disclosed(shown.answer, Purpose.ANSWER, body["ans"]["txt"]),
        raw_answer=_disclosed(shown.raw_answer, Purpose.RAW_ANSWER, body["ans"]["raw"]),
        repairs=_disclosed(shown.repairs, Purpose.REPAIRS, body["ans"]["rep"]),
        candidates=_disclosed(shown.candidates, Purpose.CANDIDATES, body["ret"]["can"]),
        evidence=tuple(_evidence(one, citation) for one, citation in zip(shown.evidence, body["cit"], strict=True)),
    )


def _gone(one: Gone) -> Finding:
    return Finding(one.why, "the commitment is intact")


def _disclosed(one: Opened | Gone, purpose: Purpose, committed: bytes) -> Finding:
    if isinstance(one, Gone):
        return _gone(one)
    if bundles.opens(one, purpose, committed):
        return Finding(MATCHED)
    return Finding(FAILED, "the disclosed text or its salt isn't what the receipt commits to")


def _evidence(one: OpenedEvidence | Gone, citation: dict[str, int]) -> Finding:
    if isinstance(one, Gone):
        return _gone(one)
    fault = bundles.evidence_fault(one, citation)
    if fault:
        return Finding(FAILED, fault)
    start, end = citation["off"], citation["off"] + citation["len"]
    return Finding(MATCHED, f"document {one.document_id} revision {one.revision}, bytes {start}-{end}")


def _comparisons(verdict: Verdict, read: Bundle, question: str | bytes | None, answer: str | bytes | None) -> Verdict:
    body, shown = read.receipt.body, read.disclosures
    if question is not None:
        given = _compare(question, shown.question, Purpose.QUESTION, body["qry"])
        verdict = replace(verdict, question_given=given)
    if answer is not None:
        given = _compare(answer, shown.answer, Purpose.ANSWER, body["ans"]["txt"])
        verdict = replace(verdict, answer_given=given)
    return verdict


def _compare(given: str | bytes, shown: Opened | Gone, purpose: Purpose, committed: bytes) -> Finding:
    if isinstance(shown, Gone):
        return Finding(NOT_SHOWN, f"can't be compared: the salt was {shown.why}")
    try:
        content = given if isinstance(given, bytes) else given.encode()
    except UnicodeEncodeError:
        return Finding(FAILED, "is no text: half of a surrogate pair stands in it")
    if commitment(purpose, shown.salt, content) == committed:
        return Finding(MATCHED)
    if commitment(purpose, shown.salt, content.rstrip(b"\r\n")) == committed:
        return Finding(FAILED, "differs by line ends after its last character; texts are compared byte by byte")
    return Finding(FAILED, "is another text than the one the receipt commits to")
