"""Real servers for integration tests: one nats-server and one Postgres per session, one database per test."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from services.embedded.children import NatsServer, Postgres, free_port
from services.embedded.folder import DataFolder
from services.kernel.auth import Credentials
from services.kernel.blobs import FolderBlobs
from services.kernel.bus import Bus
from services.kernel.packs import PackStore
from services.kernel.runner import Context
from services.kernel.settings import NodeSettings


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """DSN of a Postgres without fsync."""
    # Not below pytest's own folder: another session closes that for the user that Postgres runs as.
    with tempfile.TemporaryDirectory(prefix="affidavit-test-") as root:
        Path(root).chmod(0o755)
        with owned(Path(root)) as folder:
            server = Postgres(folder, fsync=False)
            asyncio.run(server.start())
            yield server.dsn
            server.stop()


@pytest.fixture
async def nats_url(tmp_path: Path) -> AsyncIterator[str]:
    """URL of an empty nats-server of this test."""
    with owned(tmp_path / "nats-data") as folder:
        server = NatsServer(folder)
        await server.start()
        yield server.url
        server.stop()


@contextlib.contextmanager
def owned(path: Path) -> Iterator[DataFolder]:
    """A data folder that is given free, whatever happens."""
    folder = DataFolder(path)
    folder.claim()
    try:
        yield folder
    finally:
        folder.release()


@pytest.fixture
async def postgres_dsn(postgres_server: str) -> AsyncIterator[str]:
    """DSN of an empty database of this test."""
    name = f"t{secrets.token_hex(6)}"
    admin = await asyncpg.connect(postgres_server)
    await admin.execute(f"create database {name}")
    yield f"{postgres_server.rsplit('/', 1)[0]}/{name}"
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


@pytest.fixture
def node_settings(tmp_path: Path, nats_url: str, postgres_dsn: str) -> NodeSettings:
    """Settings of a node on this test's servers, listening on a free port."""
    return NodeSettings(
        data_dir=tmp_path / "data",
        nats_url=nats_url,
        postgres_dsn=postgres_dsn,
        listen=f"127.0.0.1:{free_port()}",
    )


async def admit_everybody(credentials: Credentials, method: str, crate: str) -> None:
    """Stands in for the grants where a test is about something else."""


ContextFactory = Callable[[str], Awaitable[Context]]


@pytest.fixture
async def context_for(node_settings: NodeSettings) -> AsyncIterator[ContextFactory]:
    """Makes the context of a role: `await context_for("ingest")`."""
    made: list[Context] = []
    blobs = FolderBlobs(root=node_settings.blobs)

    async def make(role: str) -> Context:
        bus = await Bus.connect(node_settings.nats_url, role=role)
        context = Context(
            settings=node_settings, role=role, bus=bus, packs=PackStore(blobs=blobs), admit=admit_everybody
        )
        made.append(context)
        return context

    yield make
    for context in made:
        await context.close()
    blobs.close()
