"""Laws of receipts: one encoding, agreement of independent encoders, refusal of everything else, chains without forks."""

from __future__ import annotations

from typing import Any

import pytest
from affidavit.verify import Exit, Refused, verify_bundle
from affidavit.verify import keys as keys_files
from affidavit.verify.bundle import parse_bundle
from affidavit.verify.chain import check_links
from affidavit.verify.encoding import MAX_UINT, decode, encode
from affidavit.verify.hashing import Purpose, commitment
from affidavit.verify.receipt import NO_PARENT, Receipt, parse
from hypothesis import given, settings
from hypothesis import strategies as st

from services.receipt.domain import chains
from services.receipt.domain.chains import Head
from tests.contract.receipt_maker import Maker

MAKER = Maker()
FILE = MAKER.bundle()
KEYS = MAKER.keys_file
COSE = parse_bundle(FILE).receipt.cose

leaves = st.integers(0, MAX_UINT) | st.binary(max_size=40) | st.text(max_size=40)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=30), inner, max_size=6)
)


def head_bytes(major: int, number: int) -> bytes:
    if number < 24:
        return bytes([major << 5 | number])
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([major << 5 | code]) + number.to_bytes(size, "big")
    raise AssertionError(number)


def second_encoder(value: Any) -> bytes:
    """The agreed subset, written from RFC 8949 alone: keys in bytewise order of their encodings."""
    if isinstance(value, int):
        return head_bytes(0, value)
    if isinstance(value, bytes):
        return head_bytes(2, len(value)) + value
    if isinstance(value, str):
        return head_bytes(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head_bytes(4, len(value)) + b"".join(map(second_encoder, value))
    pairs = sorted((second_encoder(key), second_encoder(one)) for key, one in value.items())
    return head_bytes(5, len(value)) + b"".join(key + one for key, one in pairs)


def anything(_: object) -> None:
    """Takes every value."""


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0) if isinstance(value, dict | list) else 0


@settings(deadline=None)
@given(values)
def test_two_encoders_agree(value: Any) -> None:
    assert encode(value) == second_encoder(value)


@settings(deadline=None)
@given(values)
def test_what_was_encoded_is_decoded(value: Any) -> None:
    data = encode(value)
    if depth(value) <= 8:
        assert decode(data, anything, step="s", limit=len(data)) == value


@settings(deadline=None)
@given(values, st.data())
def test_no_other_bytes_are_read_as_the_same_value(value: Any, data: st.DataObject) -> None:
    encoded = encode(value)
    changed = bytearray(encoded)
    place = data.draw(st.integers(0, len(encoded) - 1))
    changed[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([bytes(changed), encoded + b"\x00", encoded[:-1]]))
    try:
        read = decode(cut, anything, step="s", limit=10_000)
    except Refused:
        return
    assert (read == value and type(read) is type(value)) == (cut == encoded)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_junk_is_refused_and_nothing_else_happens(junk: bytes) -> None:
    verdict = verify_bundle(junk, KEYS, question="q", answer=junk)
    assert verdict.exit is Exit.INTEGRITY
    assert verify_bundle(FILE, junk).exit is Exit.KEYS_FILE
    assert verify_bundle(FILE, KEYS, parents=[junk]).exit is Exit.CHAIN_LINK


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_no_set_of_changed_bytes_verifies(changes: list[tuple[int, int]]) -> None:
    changed = bytearray(FILE)
    for place, byte in changes:
        changed[place] = byte
    if bytes(changed) == FILE:
        return
    verdict = verify_bundle(bytes(changed), KEYS)
    assert verdict.exit is not Exit.OK
    assert any(one.state == "failed" and one.detail for _, one in verdict.lines())


@settings(deadline=None)
@given(st.integers(0, len(FILE) - 1), st.integers(0, 40), st.binary(max_size=40))
def test_no_splice_verifies(start: int, length: int, piece: bytes) -> None:
    changed = FILE[:start] + piece + FILE[start + length :]
    if changed != FILE:
        assert verify_bundle(changed, KEYS).exit is not Exit.OK


fields = st.lists(leaves, max_size=4)


@settings(deadline=None)
@given(st.sampled_from(Purpose), st.sampled_from(Purpose), fields, fields, st.binary(min_size=32, max_size=32))
def test_commitments_bind_purpose_salt_and_every_field(
    one: Purpose, two: Purpose, first: list[Any], second: list[Any], salt: bytes
) -> None:
    same = one is two and [(type(value), value) for value in first] == [(type(value), value) for value in second]
    assert (commitment(one, salt, *first) == commitment(two, salt, *second)) == same
    assert commitment(one, salt, *first) != commitment(one, bytes(reversed(salt)) + b"", *first) or salt == salt[::-1]


@settings(deadline=None)
@given(st.binary(max_size=200), st.text(max_size=60), st.integers(1, 2**31))
def test_any_evidence_and_texts_verify(content: bytes, issuer: str, seed: int) -> None:
    name = "".join(char for char in issuer if "!" <= char <= "~") or "example.org"
    maker = Maker(seed=seed, issuer=name, evidence=(content, content[::-1]))
    assert verify_bundle(maker.bundle(), maker.keys_file).exit is Exit.OK


def placed(receipt: Receipt, sequence: int, own: bytes, parent: bytes) -> Receipt:
    return receipt._replace(id=own, body={**receipt.body, "seq": sequence, "par": parent})


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 12), st.data())
def test_a_chain_holds_exactly_when_it_is_one_unbroken_run(length: int, data: st.DataObject) -> None:
    receipt = parse(COSE)
    ids = [bytes([number + 1]) * 32 for number in range(length)]
    chain = [placed(receipt, number, ids[number], ids[number - 1] if number else NO_PARENT) for number in range(length)]
    given_ones = data.draw(st.lists(st.sampled_from(chain), unique_by=lambda one: one.sequence))
    head = data.draw(st.sampled_from(chain))
    order = sorted({one.sequence for one in given_ones} | {head.sequence})
    unbroken = order == list(range(order[0], order[-1] + 1))
    if not unbroken:
        with pytest.raises(Refused, match="a gap"):
            check_links(head, given_ones)
        return
    link = check_links(head, given_ones)
    assert link.lowest == order[0]
    assert link.parent_seen == (head.sequence == 0 or order[0] < head.sequence)


@settings(deadline=None)
@given(
    st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=30, unique=True),
    st.binary(min_size=16, max_size=16),
)
def test_heads_follow_each_other_without_a_gap(ids: list[bytes], chain_id: bytes) -> None:
    head = None
    for number, own in enumerate(ids):
        link = chains.follow(head, chain_id)
        assert (link.chain_id, link.sequence) == (chain_id, number)
        assert link.parent == (ids[number - 1] if number else NO_PARENT)
        head = Head(link.chain_id, link.sequence, own, b"k" * 16)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_keys_files_come_back_as_they_were(size: int) -> None:
    makers = [Maker(seed=number, issuer=f"example.org/{number}") for number in range(size + 1)]
    pinned = tuple(keys_files.PinnedKey(one.issuer, one.public_key, 3, 9) for one in makers)
    assert keys_files.parse(keys_files.render(pinned)).keys == pinned
