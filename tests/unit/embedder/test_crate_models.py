"""Providers, generations and addresses as values."""

from __future__ import annotations

import pytest

from services.embedder.domain.models import Generation, Provider, ProviderKind, mismatch

GENERATION = Generation(1, "model-a", 3, "standard", "f")


def test_the_generation_s_own_model_matches() -> None:
    assert mismatch(GENERATION, "model-a", 3) == ""


@pytest.mark.parametrize(("model_id", "dimension"), [("model-b", 3), ("model-a", 4)])
def test_another_model_or_length_is_named(model_id: str, dimension: int) -> None:
    problem = mismatch(GENERATION, model_id, dimension)
    assert problem == (
        "generation 1 is built on model-a with 3 dimensions, "
        f"but the embedding model is now {model_id} with {dimension}"
    )


def test_fingerprint_covers_what_changes_the_numbers() -> None:
    def made(base_url: str = "https://a", model: str = "m", credential: str = "", timeout_s: int = 30) -> str:
        return Provider(
            kind=ProviderKind.OPENAI_COMPATIBLE,
            base_url=base_url,
            model=model,
            credential=credential,
            timeout_s=timeout_s,
            dimension=3,
        ).fingerprint

    assert made() == made(credential="env:KEY", timeout_s=5)
    assert len({made(), made(base_url="https://b"), made(model="n")}) == 3
    assert len(made()) == 64
