"""The proposition role's world of one test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.proposition.chat_double import KEY, KEY_NAME
from tests.integration.proposition.proposition_world import World, answer_provider


@pytest.fixture
async def bare_world(nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Log and packs without a crate."""
    monkeypatch.setenv(KEY_NAME, KEY)
    made = World(nats_url=nats_url, folder=tmp_path / "packs")
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def world(bare_world: World) -> World:
    """With crate "main", an answer provider and a generation of propositions."""
    await bare_world.configure(answer_provider())
    await bare_world.start_generation()
    return bare_world
