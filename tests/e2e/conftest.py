"""A whole node, started as a user starts it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest
from affidavit.ingest.v1 import settings_pb2

from tests.audit.node import started
from tests.e2e.commands import let_through
from tests.e2e.crate import Crate


@pytest.fixture(scope="session")
def node_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running node with the real model."""
    folder = tmp_path_factory.mktemp("node")
    let_through(folder)
    with started(environment=os.environ, data_dir=folder) as (address, _):
        yield address


@pytest.fixture
def crate(node_address: str) -> Crate:
    """An empty crate."""
    return Crate(address=node_address, crate_id=f"t-{secrets.token_hex(6)}")


@pytest.fixture
def living(node_address: str) -> Crate:
    """An empty crate of profile v3.1."""
    settings = settings_pb2.CrateSettings(profile="v3.1")
    return Crate(address=node_address, crate_id=f"t-{secrets.token_hex(6)}", settings=settings)
