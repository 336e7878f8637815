"""A bundle that was touched never verifies as before, and the reason is named."""

from __future__ import annotations

import re
from typing import Any

import pytest
from affidavit.verify import Exit, Verdict, bundle, receipt, verify_bundle
from affidavit.verify import keys as keys_files
from affidavit.verify.bundle import Disclosures, Gone, Opened, OpenedEvidence, parse_bundle
from affidavit.verify.encoding import Value, encode
from affidavit.verify.keys import PinnedKey

from tests.contract.receipt_maker import ANSWER, QUESTION, Change, Maker, reassembled

MAKER = Maker()
FILE = MAKER.bundle()
KEYS = MAKER.keys_file


def failures(verdict: Verdict) -> dict[str, str]:
    return {name: one.detail for name, one in verdict.lines() if one.state == "failed"}


def test_the_untouched_bundle_verifies() -> None:
    verdict = verify_bundle(FILE, KEYS, question=QUESTION, answer=ANSWER)
    assert verdict.exit is Exit.OK
    states = {name: one.state for name, one in verdict.lines()}
    assert states == {
        "keys file": "ok",
        "integrity": "ok",
        "issuer pinned": "ok",
        "chain link": "ok",
        "logged": "not shown",
        "witnessed": "not shown",
        "evidence included": "not shown",
        "evidence current": "not shown",
        "fragility": "not shown",
        "chain complete": "not shown",
        "question": "matched",
        "answer": "matched",
        "answer before repair": "matched",
        "repairs": "matched",
        "candidates": "matched",
        "evidence 1": "matched",
        "evidence 2": "matched",
        "evidence 3": "matched",
        "question given": "matched",
        "answer given": "matched",
    }
    assert verdict.facts is not None
    assert verdict.facts.receipt_id == parse_bundle(FILE).receipt.id.hex()
    assert (verdict.facts.mode, verdict.facts.model) == (
        ("verified", "light", "mode_not_available"),
        ("example-model", "r-1"),
    )


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_of_a_bundle_verifies(bit: int) -> None:
    assert verify_bundle(FILE, KEYS).exit is Exit.OK
    for position in range(len(FILE)):
        changed = bytearray(FILE)
        changed[position] ^= 1 << bit
        assert bytes(changed) != FILE
        verdict = verify_bundle(bytes(changed), KEYS)
        assert verdict.exit is not Exit.OK, position
        assert any(failures(verdict).values()), position


def test_no_missing_or_doubled_byte_of_a_bundle_verifies() -> None:
    for position in range(len(FILE)):
        for changed in (
            FILE[:position] + FILE[position + 1 :],
            FILE[:position] + FILE[position : position + 1] + FILE[position:],
        ):
            assert changed != FILE
            assert verify_bundle(changed, KEYS).exit is not Exit.OK, position


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_of_an_answer_or_question_matches(bit: int) -> None:
    for text, name in ((ANSWER, "answer"), (QUESTION, "question")):
        for position in range(len(text.encode())):
            changed = bytearray(text.encode())
            changed[position] ^= 1 << bit
            assert bytes(changed) != text.encode()
            given: dict[str, Any] = {name: bytes(changed)}
            verdict = verify_bundle(FILE, KEYS, **given)
            assert verdict.exit is Exit.COMPARISON
            assert f"{name} given" in failures(verdict)


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_of_the_keys_file_verifies(bit: int) -> None:
    for position in range(len(KEYS)):
        changed = bytearray(KEYS)
        changed[position] ^= 1 << bit
        assert bytes(changed) != KEYS
        verdict = verify_bundle(FILE, bytes(changed))
        assert verdict.exit is Exit.KEYS_FILE
        assert failures(verdict)["keys file"]


def test_a_line_end_too_many_is_said() -> None:
    verdict = verify_bundle(FILE, KEYS, answer=ANSWER + "\n")
    assert "differs by line ends after its last character" in failures(verdict)["answer given"]


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert verify_bundle(FILE, KEYS, answer="\ud83d").exit is Exit.COMPARISON


OTHER = Maker(seed=2)


def signed_by_other_keeping_kid() -> bytes:
    read = parse_bundle(FILE)
    stolen = receipt.assemble(
        read.receipt.kid, encode(read.receipt.body), OTHER.key.sign(read.receipt.signed).signature
    )
    return bundle.assemble(stolen, read.disclosures)


def signed_by_other() -> bytes:
    read = parse_bundle(FILE)
    return bundle.assemble(OTHER.sign(read.receipt.body), read.disclosures)


def test_the_same_body_under_another_key_is_not_the_issuers() -> None:
    assert signed_by_other() != FILE
    verdict = verify_bundle(signed_by_other(), KEYS)
    assert verdict.exit is Exit.ISSUER
    assert "not in the keys file" in failures(verdict)["issuer pinned"]
    assert verdict.integrity.state == "not shown"
    assert verdict.facts is None


def test_a_foreign_signature_under_a_pinned_key_id_fails() -> None:
    verdict = verify_bundle(signed_by_other_keeping_kid(), KEYS)
    assert verdict.exit is Exit.INTEGRITY
    assert failures(verdict)["integrity"] == "signature: was not made over these bytes with this key"
    assert verdict.issuer_pinned.state == "not shown"


def test_a_key_is_good_for_its_own_issuer_only() -> None:
    keys = keys_files.render([PinnedKey("example.org/somebody-else", MAKER.public_key)])
    verdict = verify_bundle(FILE, keys)
    assert verdict.exit is Exit.ISSUER
    assert "is pinned for 'example.org/somebody-else'" in failures(verdict)["issuer pinned"]


@pytest.mark.parametrize(("first", "end"), [(0, 7), (3, None)])
def test_a_key_limited_to_positions_shows_nothing_without_a_position(first: int, end: int | None) -> None:
    keys = keys_files.render([PinnedKey(MAKER.issuer, MAKER.public_key, first, end)])
    verdict = verify_bundle(FILE, keys)
    assert verdict.exit is Exit.ISSUER
    assert verdict.integrity.state == "ok"
    assert verdict.issuer_pinned.state == "not shown"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("v", 1, "v: must be one of 0"),
        ("v", -1, "v: must be one of 0"),
        ("iss", "", "iss: must be a text"),
        ("chn", b"short", "chn: must be a byte string of 16 bytes"),
        ("seq", -1, "seq: must be an integer"),
        ("seq", 1.0, "seq: must be an integer"),
        ("par", None, "par: must be a byte string"),
        ("cit", [{}], "cit.0: must have the keys com, idx, len, off, rol"),
        ("llm", {}, "llm: must have the keys mdl"),
        ("llm", {"mdl": ""}, "llm.mdl: must be a text of 1"),
        ("mod", {"app": "light", "req": "verified"}, "mod: must have the keys"),
        ("zzz", 1, "must have the keys v, ans"),
    ],
)
def test_a_well_signed_body_of_another_shape_is_refused(field: str, value: object, reason: str) -> None:
    import cbor2  # the strict encoder would not write such bodies

    read = parse_bundle(FILE)
    body = {**read.receipt.body, field: value}
    payload = cbor2.dumps(dict(sorted(body.items(), key=lambda item: (len(item[0]), item[0]))))
    signature = MAKER.key.sign(receipt.signing_input(read.receipt.kid, payload)).signature
    changed = bundle.assemble(receipt.assemble(read.receipt.kid, payload, signature), read.disclosures)
    verdict = verify_bundle(changed, KEYS)
    assert verdict.exit is Exit.INTEGRITY
    assert reason in failures(verdict)["integrity"]


FIELDS: tuple[tuple[str, Change], ...] = (
    ("iss", lambda body: body.update(iss="example.org/other")),
    ("chn", lambda body: body.update(chn=b"\x01" * 16)),
    ("seq", lambda body: body.update(seq=1)),
    ("par", lambda body: body.update(par=b"\x01" * 32)),
    ("iat", lambda body: body.update(iat=1)),
    ("qry", lambda body: body.update(qry=b"\x01" * 32)),
    ("ans.txt", lambda body: body["ans"].update(txt=b"\x01" * 32)),
    ("ans.raw", lambda body: body["ans"].update(raw=b"\x01" * 32)),
    ("ans.rep", lambda body: body["ans"].update(rep=b"\x01" * 32)),
    ("cur.inc", lambda body: body["cur"].update(inc=b"\x01" * 16)),
    ("cur.ssq", lambda body: body["cur"].update(ssq=43)),
    ("cit dropped", lambda body: body["cit"].pop()),
    ("cit swapped", lambda body: body["cit"].reverse()),
    ("cit.com", lambda body: body["cit"][0].update(com=b"\x01" * 32)),
    ("cit.idx", lambda body: body["cit"][0].update(idx=9)),
    ("cit.len", lambda body: body["cit"][0].update(len=9)),
    ("cit.off", lambda body: body["cit"][0].update(off=9)),
    ("cit.rol", lambda body: body["cit"][0].update(rol="contra")),
    ("ret.can", lambda body: body["ret"].update(can=b"\x01" * 32)),
    ("eng", lambda body: body.update(eng=b"\x09" * 32)),
    ("pol", lambda body: body.update(pol=b"\x09" * 32)),
    ("mod.why", lambda body: body["mod"].update(why="")),
    ("llm dropped", lambda body: body.pop("llm")),
    ("llm.rid dropped", lambda body: body["llm"].pop("rid")),
)


@pytest.mark.parametrize(("name", "change"), FIELDS)
def test_every_field_is_under_the_signature(name: str, change: Change) -> None:
    read = parse_bundle(FILE)
    body = parse_bundle(FILE).receipt.body
    change(body)
    assert body != read.receipt.body, name
    changed = bundle.assemble(
        receipt.assemble(read.receipt.kid, encode(body), read.receipt.signature), read.disclosures
    )
    verdict = verify_bundle(changed, KEYS)
    if name == "iss":  # refused one step earlier: nobody pinned a key for that name
        assert verdict.exit is Exit.ISSUER
        assert "the receipt says 'example.org/other'" in failures(verdict)["issuer pinned"]
    else:
        assert verdict.exit is Exit.INTEGRITY
        assert re.match(r"signature: was not made|bundle: \d+ citations", failures(verdict)["integrity"])


@pytest.mark.parametrize("part", ["question", "answer", "raw_answer", "repairs", "candidates"])
def test_a_disclosure_of_another_text_or_salt_fails_by_name(part: str) -> None:
    shown = getattr(parse_bundle(FILE).disclosures, part)
    line = part.replace("raw_answer", "answer before repair")
    other: Value = b"another text" if isinstance(shown.content, bytes) else []
    for wrong in (Opened(shown.salt, other), Opened(bytes(32), shown.content)):
        verdict = verify_bundle(reassembled(FILE, **{part: wrong}), KEYS)
        assert verdict.exit is Exit.DISCLOSURE
        assert list(failures(verdict)) == [line]


def test_evidence_is_bound_to_text_place_and_salt() -> None:
    first, *rest = parse_bundle(FILE).disclosures.evidence
    assert isinstance(first, OpenedEvidence)
    letter = first.content.replace(b"saffron", b"saffrom")
    wrong = (
        OpenedEvidence(first.salt, first.document_id, first.revision, letter),
        OpenedEvidence(first.salt, first.document_id, first.revision, first.content + b"."),
        OpenedEvidence(first.salt, "f" * 32, first.revision, first.content),
        OpenedEvidence(first.salt, first.document_id, first.revision + 1, first.content),
        OpenedEvidence(bytes(32), first.document_id, first.revision, first.content),
    )
    for one in wrong:
        verdict = verify_bundle(reassembled(FILE, evidence=(one, *rest)), KEYS)
        assert verdict.exit is Exit.DISCLOSURE
        assert list(failures(verdict)) == ["evidence 1"]


def test_swapped_evidence_fails() -> None:
    first, second, third = parse_bundle(FILE).disclosures.evidence
    verdict = verify_bundle(reassembled(FILE, evidence=(second, first, third)), KEYS)
    assert set(failures(verdict)) == {"evidence 1", "evidence 2"}


def test_two_bundles_do_not_splice() -> None:
    other = Maker(evidence=(b"x", b"y", b"z")).bundle()
    spliced = bundle.assemble(parse_bundle(FILE).receipt.cose, parse_bundle(other).disclosures)
    assert spliced not in (FILE, other)
    assert verify_bundle(spliced, KEYS).exit is Exit.DISCLOSURE


def test_evidence_can_not_be_left_out_unnoticed() -> None:
    shown = parse_bundle(FILE).disclosures
    verdict = verify_bundle(reassembled(FILE, evidence=shown.evidence[:-1]), KEYS)
    assert verdict.exit is Exit.INTEGRITY
    assert "3 citations, but 2 places" in failures(verdict)["integrity"]


@pytest.mark.parametrize("why", ["erased", "withheld"])
def test_without_texts_the_commitments_stay(why: str) -> None:
    nothing = bundle.assemble(parse_bundle(FILE).receipt.cose, Disclosures.none(citations=3, why=why))
    verdict = verify_bundle(nothing, KEYS)
    assert verdict.exit is Exit.OK
    assert {one.state for one in verdict.disclosures} == {why}
    given = verify_bundle(nothing, KEYS, question=QUESTION)
    assert given.exit is Exit.COMPARISON
    assert given.question_given.detail == f"can't be compared: the salt was {why}"


def test_a_word_for_a_missing_text_is_one_of_two() -> None:
    verdict = verify_bundle(reassembled(FILE, question=Gone("lost")), KEYS)
    assert verdict.exit is Exit.INTEGRITY
    assert "qry.gon: must be one of 'erased', 'withheld'" in failures(verdict)["integrity"]


def test_an_empty_chain_link_form_is_refused() -> None:
    for sequence, parent in ((1, receipt.NO_PARENT), (0, b"\x01" * 32)):
        verdict = verify_bundle(MAKER.bundle(sequence=sequence, parent=parent), KEYS)
        assert verdict.exit is Exit.CHAIN_LINK
        assert "only the first has none" in failures(verdict)["chain link"]


def test_another_header_is_refused_even_when_it_is_signed() -> None:
    import cbor2  # the one allowed header can't be varied through the verifier's own code

    read = parse_bundle(FILE)
    payload = encode(read.receipt.body)
    for header in ({1: -8, 3: receipt.CONTENT_TYPE, 4: read.receipt.kid}, {1: -19, 4: read.receipt.kid}, {}):
        protected = cbor2.dumps(header)
        signature = MAKER.key.sign(cbor2.dumps(["Signature1", protected, b"", payload])).signature
        cose = cbor2.dumps([protected, {}, payload, signature])
        verdict = verify_bundle(bundle.assemble(cose, read.disclosures), KEYS)
        assert failures(verdict)["integrity"].startswith("header: not the one allowed header")
    tagged = b"\xd2" + read.receipt.cose
    verdict = verify_bundle(bundle.assemble(tagged, read.disclosures), KEYS)
    assert failures(verdict)["integrity"].startswith("receipt: not the agreed subset of CBOR")


def test_a_body_that_a_verifier_would_refuse_is_never_signed() -> None:
    with pytest.raises(Exception, match="iss: must be a text"):
        MAKER.bundle(change=lambda body: body.update(iss="x" * 256))


def test_the_verdict_is_a_record() -> None:
    record = verify_bundle(FILE, KEYS).as_dict()
    assert (record["exit"], record["exit_name"]) == (0, "ok")
    assert isinstance(record["findings"], dict)
    assert record["findings"]["logged"]["state"] == "not shown"
    refused = verify_bundle(b"", KEYS).as_dict()
    assert "facts" not in refused
    assert refused["exit_name"] == "integrity"
