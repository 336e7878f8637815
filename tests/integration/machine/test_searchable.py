"""Whatever happens to documents, processes and deliveries: searches find what is in force, and each of it once.

The log, the tables, both lanes and the handlers are real; deliveries are played, so that an example can be repeated:
which event comes when, how often and together with which others, and where a process ends, is drawn.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import secrets
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from services.embedded.children import NatsServer, free_port
from services.kernel.bus import Bus
from services.kernel.settings import NodeSettings
from tests.conftest import owned
from tests.integration.machine.crashes import COMMAND_POINTS, INDEX_POINTS, STEP_POINTS
from tests.integration.machine.example import Example
from tests.integration.machine.model import WORDS
from tests.integration.machine.system import System

SETTINGS = settings(
    max_examples=300,
    stateful_step_count=18,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
# The same document again and again is what goes wrong; its neighbours must not be touched by it.
names = st.sampled_from(("a.txt", "a.txt", "a.txt", "b.txt", "c.txt"))
texts = st.sampled_from(WORDS)
ends = st.sampled_from(("retired", "erased"))
picks = st.integers(0, 5)
counts = st.integers(1, 8)
passages = st.integers(1, 3)
losses = st.sampled_from(("nothing", "keyword", "vector", "both", "older copy", "nothing"))
# How far the pipeline goes on at once.
distances = st.sampled_from(("no step", "all", "chunker", "embedder"))
rarely = st.integers(0, 15).map(lambda drawn: drawn == 15)


class Servers:
    """What all examples share."""

    def __init__(self, *, runner: asyncio.Runner, system: System, reader: Bus, folder: Path) -> None:
        self._runner = runner
        self._system = system
        self._reader = reader
        self._folder = folder
        self._numbers = itertools.count(1)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run to the end."""
        self._runner.run(work)

    def example(self) -> Example:
        """One on a crate of its own."""
        crate = f"crate-{next(self._numbers)}"
        return Example(system=self._system, reader=self._reader, crate=crate, folder=self._folder)


class Searchable(RuleBasedStateMachine):
    """Documents, deliveries and crashes in any order."""

    def __init__(self, servers: Servers) -> None:
        super().__init__()
        self._servers = servers
        self._example = servers.example()
        self._broken = False
        self._run(self._example.open())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            self._servers.run(work)
        except BaseException:
            self._broken = True
            raise

    async def _go(self, distance: str) -> None:
        if distance == "all":
            await self._settle()
            return
        for role in {"no step": (), "chunker": ("chunker",), "embedder": ("chunker", "embedder")}[distance]:
            for stored in self._example.consumers[role].pending():
                await self._example.deliver(role, stored)

    async def _settle(self) -> None:
        await self._example.drain()
        await self._example.check_settled()

    @rule(name=names, text=texts, small=st.booleans(), distance=distances)
    def put(self, name: str, text: str, small: bool, distance: str) -> None:
        async def work() -> None:
            await self._example.put(name, text, small=small)
            await self._go(distance)

        self._run(work())

    @precondition(lambda self: self._example.model.documents)
    @rule(data=st.data(), state=ends, distance=distances)
    def end(self, data: st.DataObject, state: str, distance: str) -> None:
        name = data.draw(st.sampled_from(sorted(self._example.model.documents)))

        async def work() -> None:
            await self._example.end(name, state)
            await self._go(distance)

        self._run(work())

    @rule(name=names, text=texts, small=st.booleans(), point=st.sampled_from(COMMAND_POINTS))
    def crash_put(self, name: str, text: str, small: bool, point: str) -> None:
        self._run(self._example.crash_put(name, text, small=small, point=point))

    @precondition(lambda self: self._example.model.documents)
    @rule(data=st.data(), state=ends, point=st.sampled_from(("before event", "after event")))
    def crash_end(self, data: st.DataObject, state: str, point: str) -> None:
        name = data.draw(st.sampled_from(sorted(self._example.model.documents)))
        self._run(self._example.crash_end(name, state, point))

    @precondition(lambda self: self._example.pending())
    @rule(pick=picks)
    def deliver(self, pick: int) -> None:
        pending = self._example.pending()
        role, stored = pending[pick % len(pending)]

        async def work() -> None:
            await self._example.deliver(role, stored)

        self._run(work())

    @precondition(lambda self: self._example.past())
    @rule(pick=st.integers(0, 40), anew=st.booleans())
    def redeliver(self, pick: int, anew: bool) -> None:
        past = self._example.past()
        role, stored = past[pick % len(past)]

        async def work() -> None:
            await self._example.deliver(role, stored, anew=anew, forgetful=True)

        self._run(work())

    @precondition(lambda self: self._example.pending())
    @rule(pick=picks, point=st.sampled_from(STEP_POINTS), passage=passages)
    def crash_step(self, pick: int, point: str, passage: int) -> None:
        pending = self._example.pending()
        role, stored = pending[pick % len(pending)]
        self._run(self._example.crash_step(role, stored, point, passage))

    @rule(count=counts)
    def follow(self, count: int) -> None:
        self._run(self._example.follow(count))

    @rule(count=counts, point=st.sampled_from(INDEX_POINTS), passage=passages, loss=losses, with_engine=rarely)
    def crash_index(self, count: int, point: str, passage: int, loss: str, with_engine: bool) -> None:
        self._run(self._example.crash_index(count, point, passage, loss=loss, with_engine=with_engine))

    @invariant()
    def searches_find_what_is_in_force(self) -> None:
        self._run(self._example.check())

    def teardown(self) -> None:
        try:
            if not self._broken:
                self._run(self._settle())
        finally:
            self._servers.run(self._example.close())


@asynccontextmanager
async def _opened(system: System, url: str) -> AsyncIterator[Bus]:
    async with system.opened():
        reader = await Bus.connect(url, role="ingest")
        yield reader
        await reader.close()


@pytest.fixture
def servers(postgres_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """Roles on a log and a database of their own."""
    database = f"t{secrets.token_hex(6)}"
    with asyncio.Runner() as runner, owned(tmp_path / "nats-data") as folder:
        nats = NatsServer(folder)
        runner.run(nats.start())
        admin = runner.run(asyncpg.connect(postgres_server))
        runner.run(admin.execute(f"create database {database}"))
        chosen = NodeSettings(
            data_dir=tmp_path / "data",
            nats_url=nats.url,
            postgres_dsn=f"{postgres_server.rsplit('/', 1)[0]}/{database}",
            listen=f"127.0.0.1:{free_port()}",
        )
        system = System(settings=chosen, monkeypatch=monkeypatch)
        opened = _opened(system, nats.url)
        reader = runner.run(opened.__aenter__())
        yield Servers(runner=runner, system=system, reader=reader, folder=tmp_path)
        runner.run(opened.__aexit__(None, None, None))
        runner.run(admin.execute(f"drop database {database} with (force)"))
        runner.run(admin.close())
        nats.stop()


@pytest.mark.timeout(1_800)
def test_searches_find_what_is_in_force(servers: Servers) -> None:
    machine = functools.partial(Searchable, servers)
    run_state_machine_as_test(machine, settings=SETTINGS)  # type: ignore[arg-type]  # any factory of machines will do
