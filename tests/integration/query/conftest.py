"""The query service over real gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.kernel.settings import NodeSettings
from tests.integration.query.query_world import QueryWorld


@pytest.fixture
async def world(node_settings: NodeSettings) -> AsyncIterator[QueryWorld]:
    """A running query service with one crate."""
    made = QueryWorld(settings=node_settings)
    await made.open()
    yield made
    await made.close()
