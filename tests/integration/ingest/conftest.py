"""A node that runs ingest alone, a client, and a hand that plays the rest of the pipeline."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.ingest.main import wire
from services.kernel.runner import Node
from services.kernel.settings import NodeSettings
from tests.conftest import ContextFactory
from tests.integration.ingest.ingest_world import Client, Pipeline


@pytest.fixture
async def node(node_settings: NodeSettings) -> AsyncIterator[Node]:
    """A running node."""
    running = Node(settings=node_settings, wires={"ingest": wire})
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def client(node: Node) -> AsyncIterator[Client]:
    """Calls the node; crate "main" exists."""
    async with Client.connect(node.server.address) as made:
        await made.create_crate("main")
        yield made


@pytest.fixture
async def pipeline(context_for: ContextFactory) -> Pipeline:
    """Appends what the other services would."""
    buses = {role: (await context_for(role)).bus for role in ("ingest", "chunker", "embedder", "index")}
    return Pipeline(buses=buses)
