"""One node of ingest per module, a crate per test, and a hand that plays the rest of the pipeline."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.kernel.settings import NodeSettings
from tests.integration.ingest.ingest_world import Client, Pipeline, World

_numbers = itertools.count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> AsyncIterator[World]:
    """A running node with its servers."""
    folder: Path = tmp_path_factory.mktemp("ingest")
    async with World.start(folder, postgres_server) as running:
        yield running


@pytest.fixture
def node_settings(world: World) -> NodeSettings:
    """Settings of the module's node."""
    return world.settings


@pytest_asyncio.fixture(loop_scope="module")
async def client(world: World) -> AsyncIterator[Client]:
    """Calls the node; its crate is new."""
    async with Client.connect(world.address, crate=f"crate-{next(_numbers)}") as made:
        await made.create_crate(made.crate)
        yield made


@pytest.fixture
def pipeline(world: World, client: Client) -> Pipeline:
    """Appends what the other services would."""
    return Pipeline(buses=world.buses, crate=client.crate)
