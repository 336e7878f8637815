"""Each text of a document is computed once."""

from __future__ import annotations

import numpy as np
import pytest

from services.embedder.domain.reuse import MAX_EARLIER, PackAt, assemble, earlier_sets, missing

ROW = np.array([1.0, 0.0], dtype=np.float32)
OTHER = np.array([0.0, 1.0], dtype=np.float32)


def at(number: int) -> PackAt:
    return PackAt(number, bytes([number]) * 32, number)


def test_known_texts_and_repetitions_need_no_computing() -> None:
    keys = [b"a", b"b", b"a", b"c", b"b"]
    assert missing(keys, {b"b": ROW}) == (0, 3)
    assert missing(keys, {}) == (0, 1, 3)
    assert missing([], {}) == ()


def test_rows_stand_in_the_order_of_the_keys() -> None:
    rows = assemble([b"a", b"b", b"a"], {b"a": ROW, b"b": OTHER}, 2)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_a_key_without_vector_is_a_fault() -> None:
    with pytest.raises(KeyError):
        assemble([b"a"], {}, 2)


def test_newest_vectors_come_first() -> None:
    assert earlier_sets(at(3), [at(2), at(1)], set()) == (at(3), at(2), at(1))


def test_a_revision_without_chunks_keeps_the_older_ones() -> None:
    assert earlier_sets(None, [at(2), at(1)], set()) == (at(2), at(1))


def test_spent_packs_are_left_out() -> None:
    assert earlier_sets(at(3), [at(2), at(1)], {at(2).pack_id}) == (at(3), at(1))


def test_the_chain_is_bounded() -> None:
    assert earlier_sets(at(20), [at(number) for number in range(19, 0, -1)], set()) == tuple(
        at(number) for number in range(20, 20 - MAX_EARLIER, -1)
    )
