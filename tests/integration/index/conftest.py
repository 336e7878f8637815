"""A running index on the real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.kernel.settings import NodeSettings
from tests.integration.index.service_world import World


@pytest.fixture
async def world(node_settings: NodeSettings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A node that runs the index, without rests between writes: tests put one document at a time."""
    monkeypatch.setenv("AFFIDAVIT_INDEX_SPACING_S", "0")
    made = World(settings=node_settings)
    await made.open()
    yield made
    await made.stop()
    await made.close()
