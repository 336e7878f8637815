"""A running receipt role on the real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.kernel.settings import NodeSettings
from tests.integration.receipt.receipt_world import World


@pytest.fixture
async def world(node_settings: NodeSettings) -> AsyncIterator[World]:
    """A node that runs receipt."""
    made = World(settings=node_settings)
    await made.open()
    yield made
    await made.stop()
    await made.close()
