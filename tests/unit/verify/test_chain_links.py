"""Receipts of one chain: gaps, forks, wrong parents and foreign receipts are found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from affidavit.verify import Exit, Refused, Verdict, verify_bundle
from affidavit.verify import keys as keys_files
from affidavit.verify.bundle import parse_bundle
from affidavit.verify.chain import Link, verify_chain

from tests.contract.receipt_maker import Maker

MAKER = Maker(evidence=(b"one",))
CHAIN = MAKER.chain(5)
KEYS = MAKER.keys_file
PINNED = keys_files.parse(KEYS)


def verify(file: bytes, parents: Sequence[bytes]) -> Verdict:
    return verify_bundle(file, KEYS, parents=parents)


def reason(file: bytes, parents: Sequence[bytes]) -> str:
    verdict = verify(file, parents)
    assert verdict.exit is Exit.CHAIN_LINK
    assert verdict.integrity.state == "ok"
    return verdict.chain_link.detail


def cose(files: Sequence[bytes]) -> list[bytes]:
    return [parse_bundle(file).receipt.cose for file in files]


def test_one_file_states_its_parent() -> None:
    verdict = verify(CHAIN[3], [])
    assert verdict.exit is Exit.OK
    assert verdict.chain_link.state == "stated"
    assert parse_bundle(CHAIN[2]).receipt.id.hex() in verdict.chain_link.detail


def test_the_parent_makes_the_link_ok() -> None:
    verdict = verify(CHAIN[3], [CHAIN[2]])
    assert (verdict.exit, verdict.chain_link.state) == (Exit.OK, "ok")
    assert verdict.chain_link.detail == "unbroken from receipt 2 to 3"


def test_the_whole_chain_in_any_order_with_doubles_and_later_ones() -> None:
    verdict = verify(CHAIN[3], [CHAIN[4], CHAIN[0], CHAIN[3], CHAIN[2], CHAIN[1], CHAIN[1]])
    assert verdict.chain_link.detail == "unbroken from receipt 0 to 3"


def test_later_receipts_alone_show_no_parent() -> None:
    assert verify(CHAIN[2], [CHAIN[3]]).chain_link.state == "stated"


def test_the_first_needs_no_parent() -> None:
    assert verify(CHAIN[0], []).chain_link.detail == "the first of its chain"
    assert verify(CHAIN[0], [CHAIN[1]]).chain_link.state == "ok"


def test_a_missing_receipt_is_a_gap() -> None:
    assert reason(CHAIN[4], [CHAIN[2], CHAIN[1]]) == "a gap: receipt 3 is missing between 2 and 4"
    assert "receipt 1 is missing between 0 and 2" in reason(CHAIN[3], [CHAIN[2], CHAIN[0]])


def test_a_fork_is_found() -> None:
    twin = MAKER.bundle(sequence=2, parent=parse_bundle(CHAIN[1]).receipt.id)
    assert twin != CHAIN[2]
    assert "a fork" in reason(CHAIN[3], [CHAIN[2], twin])
    assert "names" in reason(CHAIN[3], [twin])


def test_a_swapped_parent_is_found() -> None:
    wrong = MAKER.bundle(sequence=3, parent=parse_bundle(CHAIN[1]).receipt.id)
    assert "as its parent, but before it stands receipt 2" in reason(wrong, [CHAIN[2]])


def test_another_chain_or_issuer_is_found() -> None:
    foreign = MAKER.bundle(sequence=2, parent=b"\x01" * 32, change=lambda body: body.update(chn=b"\x07" * 16))
    assert "belongs to chain" in reason(CHAIN[3], [foreign])
    renamed = MAKER.bundle(sequence=2, parent=b"\x01" * 32, change=lambda body: body.update(iss="example.org/x"))
    assert "file 1 of the chain: issuer" in reason(CHAIN[3], [renamed])


def test_a_parent_of_another_issuer_with_a_pinned_key_is_found() -> None:
    other = Maker(seed=2, issuer="example.org/x", evidence=(b"one",))
    keys = keys_files.render(
        [
            keys_files.PinnedKey(MAKER.issuer, MAKER.public_key),
            keys_files.PinnedKey(other.issuer, other.public_key),
        ]
    )
    verdict = verify_bundle(CHAIN[1], keys, parents=[other.bundle()])
    assert "was issued by 'example.org/x'" in verdict.chain_link.detail


def test_a_changed_parent_is_refused_and_its_texts_do_not_matter() -> None:
    inside = parse_bundle(CHAIN[2]).receipt.cose
    start = CHAIN[2].index(inside)
    for position in range(0, len(CHAIN[2]), 11):
        changed = bytearray(CHAIN[2])
        changed[position] ^= 1
        verdict = verify(CHAIN[3], [bytes(changed)])
        if start <= position < start + len(inside):
            assert "file 1 of the chain" in verdict.chain_link.detail
            assert verdict.exit is Exit.CHAIN_LINK
        else:  # a chain link rests on the parent's receipt, not on what is disclosed beside it
            assert verdict.exit in (Exit.CHAIN_LINK, Exit.OK)


@pytest.mark.parametrize("every_signature", [True, False])
def test_a_run_of_receipts(every_signature: bool) -> None:
    receipts = cose(CHAIN)
    assert verify_chain(receipts, PINNED, every_signature=every_signature) == Link(lowest=0, parent_seen=True)
    assert verify_chain(receipts[2:], PINNED, every_signature=every_signature) == Link(lowest=2, parent_seen=True)
    for dropped in (1, 2, 3):
        with pytest.raises(Refused, match="a gap"):
            verify_chain(receipts[:dropped] + receipts[dropped + 1 :], PINNED, every_signature=every_signature)


@pytest.mark.parametrize("every_signature", [True, False])
def test_the_last_signature_vouches_for_all_bytes_before_it(every_signature: bool) -> None:
    receipts = cose(CHAIN)
    for number, file in enumerate(receipts):
        for position in range(0, len(file), 7):
            changed = bytearray(file)
            changed[position] ^= 4
            in_signature = position >= len(file) - 64
            if in_signature and not every_signature and number < 4:
                continue
            with pytest.raises(Refused):
                verify_chain(
                    [*receipts[:number], bytes(changed), *receipts[number + 1 :]],
                    PINNED,
                    every_signature=every_signature,
                )


def test_no_receipts_are_no_chain() -> None:
    with pytest.raises(ValueError, match="no receipt"):
        verify_chain([], PINNED)
