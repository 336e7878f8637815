"""The embedder's world of one test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.embedder.embedder_world import World


@pytest.fixture
async def bare_world(nats_url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Log and packs without a crate."""
    made = World(nats_url=nats_url, folder=tmp_path / "packs")
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def world(bare_world: World) -> World:
    """With crate "main" and its generation."""
    await bare_world.configure()
    await bare_world.start_generation()
    return bare_world
