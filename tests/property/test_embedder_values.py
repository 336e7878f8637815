"""Properties of the embedder's pure parts, for inputs that nobody thought of."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from services.embedder import codec
from services.embedder.domain.batches import BatchLimits, batch_end
from services.embedder.domain.reuse import VectorSet, assemble, missing
from services.embedder.domain.texts import ChunkText, embedded_texts, text_key
from services.embedder.domain.vectors import from_bytes, to_bytes, unit_rows
from services.embedder.domain.windows import padded_groups, windows

DIMENSION = 3
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
MATRICES = st.integers(0, 5).flatmap(lambda rows: arrays.arrays(np.float32, (rows, DIMENSION), elements=FLOATS))
KEYS = st.lists(st.binary(min_size=1, max_size=1), max_size=12)


@settings(deadline=None)
@given(st.integers(0, 5_000), st.integers(2, 300), st.data())
def test_windows_cover_every_token_within_their_size(tokens: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    cuts = windows(tokens, size=size, overlap=overlap)
    assert cuts[0].start == 0
    assert cuts[-1].end == tokens
    assert all(cut.end - cut.start <= size for cut in cuts)
    assert all(cut.start < cut.end for cut in cuts if tokens)
    assert all(later.start <= earlier.end for earlier, later in itertools.pairwise(cuts))
    assert all(earlier.start < later.start for earlier, later in itertools.pairwise(cuts))


@settings(deadline=None)
@given(st.lists(st.integers(2, 300), max_size=40), st.integers(1, 8), st.integers(1, 600))
def test_groups_hold_every_window_once_within_their_limits(lengths: list[int], rows: int, tokens: int) -> None:
    groups = list(padded_groups(lengths, rows=rows, tokens=tokens))
    assert sorted(itertools.chain.from_iterable(groups)) == list(range(len(lengths)))
    for group in groups:
        longest = max(lengths[index] for index in group)
        assert len(group) <= rows
        assert len(group) == 1 or len(group) * longest <= tokens


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 100))
def test_batches_cover_every_text_within_their_limits(sizes: list[int], texts: int, size_bytes: int) -> None:
    limits, start = BatchLimits(texts, size_bytes), 0
    while start < len(sizes):
        end = batch_end(sizes, start, limits)
        assert start < end <= len(sizes)
        assert end - start <= texts
        assert end - start == 1 or sum(sizes[start:end]) <= size_bytes
        start = end


@settings(deadline=None)
@given(KEYS, KEYS)
def test_every_text_gets_its_own_vector_and_none_is_computed_twice(keys: list[bytes], held: list[bytes]) -> None:
    def vector(key: bytes) -> NDArray[np.float32]:
        return np.full(DIMENSION, key[0], dtype=np.float32)

    known = {key: vector(key) for key in held}
    todo = missing(keys, known)
    assert {keys[row] for row in todo} == set(keys) - set(held)
    assert len({keys[row] for row in todo}) == len(todo)
    rows = assemble(keys, known | {keys[row]: vector(keys[row]) for row in todo}, DIMENSION)
    assert rows.tolist() == [[key[0]] * DIMENSION for key in keys]


@settings(deadline=None)
@given(MATRICES)
def test_vectors_pass_through_bytes_bit_for_bit(vectors: NDArray[np.float32]) -> None:
    again = from_bytes(to_bytes(vectors), count=len(vectors), dimension=DIMENSION)
    assert again.tobytes() == vectors.tobytes()


@settings(deadline=None)
@given(MATRICES, st.text(max_size=5))
def test_vector_packs_come_back(vectors: NDArray[np.float32], model_id: str) -> None:
    keys = tuple(text_key(model_id, str(row)) for row in range(len(vectors)))
    again = codec.vector_set(codec.vector_parts(VectorSet(model_id, keys, vectors)), dimension=DIMENSION)
    assert (again.model_id, again.keys) == (model_id, keys)
    assert again.vectors.tobytes() == vectors.tobytes()


@settings(deadline=None)
@given(arrays.arrays(np.float64, (3, DIMENSION), elements=st.floats()))
def test_unit_rows_are_finite_and_of_unit_length_or_refused(vectors: NDArray[np.float64]) -> None:
    usable = bool(np.isfinite(vectors).all() and vectors.any(axis=1).all())
    try:
        rows = unit_rows(vectors, count=3, dimension=DIMENSION)
    except ValueError:
        assert not usable
    else:
        assert usable
        assert np.isfinite(rows).all()
        assert np.allclose(np.linalg.norm(rows.astype(np.float64), axis=1), 1, atol=1e-6)


@settings(deadline=None)
@given(st.text(max_size=8), st.lists(st.tuples(st.text(max_size=12), st.lists(st.text(max_size=6))), max_size=6))
def test_a_chunk_s_own_text_is_always_embedded_whole(title: str, chunks: list[tuple[str, list[str]]]) -> None:
    given_chunks = [ChunkText(text, tuple(path)) for text, path in chunks]
    found = embedded_texts(title, given_chunks, lambda texts: [len(text) <= 10 for text in texts])
    assert len(found) == len(chunks)
    for chunk, made in zip(given_chunks, found, strict=True):
        assert made.text.endswith(chunk.text)
        # Only the chunk's own length may make windows necessary.
        assert made.windowed == (len(chunk.text) > 10 and len(made.text) > 10)
