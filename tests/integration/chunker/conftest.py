"""A running chunker on the real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.chunker.main import wire
from services.kernel.settings import NodeSettings
from tests.integration.chunker.small_world import World


@pytest.fixture
async def world(node_settings: NodeSettings) -> AsyncIterator[World]:
    """A node that runs the chunker."""
    made = World(settings=node_settings, wires={"chunker": wire})
    await made.open()
    yield made
    await made.stop()
    await made.close()
