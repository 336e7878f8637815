"""How receipts of one chain hang together: each names the one before it by its id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from affidavit.verify.errors import Refused
from affidavit.verify.keys import PinnedKey, PinnedKeys
from affidavit.verify.receipt import NO_PARENT, Receipt, parse
from affidavit.verify.signature import check

STEP = "chain link"
ISSUER = "issuer"


@dataclass(frozen=True, slots=True)
class Link:
    """What is known about a receipt's place in its chain.

    Attributes:
        lowest: Lowest sequence down to which the chain was followed without a gap.
        parent_seen: True when the receipt before it was seen, or when it is the first.
    """

    lowest: int
    parent_seen: bool


def check_form(receipt: Receipt) -> None:
    """The first receipt of a chain has no parent, every other one has.

    Args:
        receipt: Any receipt.

    Raises:
        Refused: When that isn't so.
    """
    if (receipt.sequence == 0) != (receipt.parent == NO_PARENT):
        raise Refused(
            STEP, f"sequence {receipt.sequence} with parent {receipt.parent.hex()[:16]}: only the first has none"
        )


def check_links(head: Receipt, others: Iterable[Receipt]) -> Link:
    """Check how a receipt and other receipts of its chain hang together.

    Args:
        head: The receipt in question.
        others: Receipts of the same chain, older or newer, in any order.

    Returns:
        How far down the chain was followed from the head.

    Raises:
        Refused: On another chain's receipt, a fork, a wrong parent, or a gap between the given receipts.
    """
    by_sequence: dict[int, Receipt] = {}
    same = (head.chain, head.issuer)
    for receipt in (head, *others):
        if (receipt.chain, receipt.issuer) != same:
            raise Refused(STEP, _foreign(head, receipt))
        check_form(receipt)
        known = by_sequence.setdefault(receipt.sequence, receipt)
        if known.id != receipt.id:
            raise Refused(STEP, f"a fork: {known.name} and {receipt.name} stand at the same place")
    order = sorted(by_sequence)
    for below, above in pairwise(order):
        if above != below + 1:
            raise Refused(STEP, f"a gap: receipt {below + 1} is missing between {below} and {above}")
        if by_sequence[above].parent != by_sequence[below].id:
            raise Refused(
                STEP,
                f"{by_sequence[above].name} names {by_sequence[above].parent.hex()[:16]} as its parent, "
                f"but before it stands {by_sequence[below].name}",
            )
    lowest = order[0]
    return Link(lowest=lowest, parent_seen=head.sequence == 0 or lowest < head.sequence)


def _foreign(head: Receipt, receipt: Receipt) -> str:
    if receipt.chain != head.chain:
        return f"{receipt.name} belongs to chain {receipt.chain.hex()}, not to {head.chain.hex()}"
    return f"{receipt.name} was issued by {receipt.issuer!r}, not by {head.issuer!r}"


def check_signer(receipt: Receipt, keys: PinnedKeys) -> PinnedKey:
    """Check that a pinned key of the issuer signed a receipt.

    Args:
        receipt: The receipt.
        keys: Pinned keys.

    Returns:
        The key. Whether it was allowed to sign at the receipt's place in the log is another question.

    Raises:
        Refused: Step "issuer" when the key isn't pinned for the issuer, "signature" when the signature isn't good.
    """
    key = keys.find(receipt.kid)
    if key is None:
        raise Refused(ISSUER, f"key {receipt.kid.hex()} is not in the keys file")
    if key.issuer != receipt.issuer:
        raise Refused(
            ISSUER, f"key {receipt.kid.hex()} is pinned for {key.issuer!r}, the receipt says {receipt.issuer!r}"
        )
    check(key.public_key, receipt.signed, receipt.signature)
    return key


def verify_chain(receipts: Sequence[bytes], keys: PinnedKeys, *, every_signature: bool = False) -> Link:
    """Check a run of receipts.

    Every receipt is hashed and each names the hash of the one before it, so a good signature of the last vouches for
    all of them.

    Args:
        receipts: COSE_Sign1 bytes, in any order.
        keys: Pinned keys.
        every_signature: Check each signature, not only the last one's.

    Returns:
        How far down the chain was followed.

    Raises:
        Refused: When anything is wrong.
        ValueError: When there are no receipts.
    """
    parsed = sorted((parse(cose) for cose in receipts), key=lambda receipt: receipt.sequence)
    if not parsed:
        raise ValueError("there is no receipt to check")
    head = parsed[-1]
    link = check_links(head, parsed[:-1])
    for receipt in parsed if every_signature else (head,):
        check_signer(receipt, keys)
    return link
