"""The models of benchmarks and tests."""

from __future__ import annotations

import numpy as np
import pytest

from services.embedder.adapters.model_constant import ConstantModel, HashModel
from services.embedder.domain.models import Purpose
from services.embedder.domain.vectors import unit_rows


async def test_constant_gives_every_text_the_same_unit_vector() -> None:
    vectors = await ConstantModel().embed(["a", "b"], Purpose.DOCUMENT)
    assert vectors.shape == (2, 384)
    assert np.array_equal(vectors[0], vectors[1])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1)


async def test_hash_tells_texts_apart_and_equal_ones_not() -> None:
    model = HashModel()
    first = unit_rows(await model.embed(["a", "b", "a"], Purpose.DOCUMENT), count=3, dimension=384)
    again = unit_rows(await model.embed(["a"], Purpose.QUERY), count=1, dimension=384)
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[0], again[0])
    assert abs(float(first[0] @ first[1])) < 0.25


async def test_they_take_anything_and_hold_nothing() -> None:
    for model in (ConstantModel(), HashModel()):
        assert model.fits(["x" * 10_000, ""]) == [True, True]
        assert len(model.fingerprint) == 64
        await model.close()
    assert ConstantModel().fingerprint != HashModel().fingerprint
