"""Vectors are computed once per (model, text) within a document's history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from services.embedder.domain.vectors import Vectors

MAX_EARLIER = 8


@dataclass(frozen=True, slots=True)
class PackAt:
    """Where a pack of a revision lies.

    Attributes:
        revision: Revision of the document.
        pack_id: Id of the pack.
        size_bytes: Its size.
    """

    revision: int
    pack_id: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True)
class VectorSet:
    """Vectors and what they belong to.

    Attributes:
        model_id: Model.
        keys: Text key of each row, see `texts.text_key`.
        vectors: float32[n, d].
    """

    model_id: str
    keys: tuple[bytes, ...]
    vectors: Vectors


def missing(keys: Sequence[bytes], known: Mapping[bytes, Vectors]) -> tuple[int, ...]:
    """Rows that must be computed: the first of each text that has no vector yet.

    Args:
        keys: Text key of each row.
        known: Vectors by text key.

    Returns:
        Their indices, ascending.
    """
    seen = set(known)
    rows = []
    for index, key in enumerate(keys):
        if key not in seen:
            seen.add(key)
            rows.append(index)
    return tuple(rows)


def assemble(keys: Sequence[bytes], known: Mapping[bytes, Vectors], dimension: int) -> Vectors:
    """Put the vectors of a revision together.

    Args:
        keys: Text key of each row.
        known: A vector for every key, float32[d] each.
        dimension: Length of a vector.

    Returns:
        float32[n, d].
    """
    rows = np.empty((len(keys), dimension), dtype=np.float32)
    for index, key in enumerate(keys):
        rows[index] = known[key]
    return rows


def earlier_sets(previous: PackAt | None, earlier: Iterable[PackAt], spent: set[bytes]) -> tuple[PackAt, ...]:
    """Choose which older vectors a revision goes on to name.

    Args:
        previous: Vectors of the revision before; None when it had no chunk.
        earlier: Those that it named, newest first.
        spent: Pack ids whose texts all stand in the new revision, or which are gone.

    Returns:
        Newest first, at most `MAX_EARLIER`.
    """
    chain = (*((previous,) if previous else ()), *earlier)
    return tuple(at for at in chain if at.pack_id not in spent)[:MAX_EARLIER]
