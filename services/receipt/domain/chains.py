"""How a receipt follows the one before it."""

from __future__ import annotations

from dataclasses import dataclass

CHAIN_BYTES = 16
NO_PARENT = bytes(32)


@dataclass(frozen=True, slots=True)
class Head:
    """The last receipt of a chain.

    Attributes:
        chain_id: 16 bytes.
        sequence: From 0.
        receipt_id: 32 bytes.
        kid: Id of the key that signed it, 16 bytes.
    """

    chain_id: bytes
    sequence: int
    receipt_id: bytes
    kid: bytes


@dataclass(frozen=True, slots=True)
class Link:
    """Where the next receipt stands.

    Attributes:
        chain_id: 16 bytes.
        sequence: From 0.
        parent: Id of the receipt before it, 32 zero bytes for the first.
    """

    chain_id: bytes
    sequence: int
    parent: bytes


def follow(head: Head | None, fresh_chain_id: bytes) -> Link:
    """Place of the next receipt.

    Args:
        head: The last receipt; None when the chain is to begin.
        fresh_chain_id: 16 random bytes, used when the chain begins.

    Returns:
        Its place.
    """
    if head is None:
        return Link(fresh_chain_id, 0, NO_PARENT)
    return Link(head.chain_id, head.sequence + 1, head.receipt_id)


def fault(head: Head | None, *, known: Head | None, kid: bytes) -> str:
    """Why nothing may be added to a chain, or "".

    Args:
        head: Last receipt that the log holds.
        known: Last receipt that the tables have seen; they follow the log, so they are never ahead of it.
        kid: Id of the key that would sign.

    Returns:
        What is wrong, in words.
    """
    if known is not None and (head is None or known.sequence > head.sequence):
        return (
            f"the log ends before receipt {known.sequence}, which was issued: an older copy of the log was restored, "
            "and signing on would fork the chain"
        )
    if known is not None and head is not None and known.sequence == head.sequence and known != head:
        return f"the log holds another receipt {known.sequence} than the one that was issued"
    if head is not None and head.kid != kid:
        return (
            f"the chain was signed with key {head.kid.hex()}, the key at hand is {kid.hex()}: "
            "restore the keys folder that belongs to this log"
        )
    return ""
