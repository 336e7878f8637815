"""Runs roles: one process may run one of them or all eight, with the same code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import grpc

from services import topology
from services.kernel import auth, channels, rpc, tasks, telemetry
from services.kernel.blobs import FolderBlobs
from services.kernel.bus import Bus
from services.kernel.db import Database
from services.kernel.packs import PackStore
from services.kernel.projections import Projection, ProjectionRunner
from services.kernel.settings import NodeSettings
from services.kernel.steps import Step, StepRunner

_log = logging.getLogger("affidavit.runner")
_DRAIN_S = 6.0
_READINESS_S = 1.0

Check = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a service's `wire` gives the runner.

    Attributes:
        name: One of topology's roles.
        servicers: Its gRPC services.
        steps: Its step consumers.
        projections: Its projections.
        background: Loops that run until cancelled.
        checks: Readiness by dependency: each returns "" or what is wrong.
        close: Called last, in order.
    """

    name: str
    servicers: tuple[rpc.Servicer, ...] = ()
    steps: tuple[Step, ...] = ()
    projections: tuple[Projection, ...] = ()
    background: tuple[Callable[[], Awaitable[None]], ...] = ()
    checks: Mapping[str, Check] = field(default_factory=dict)
    close: tuple[Callable[[], Awaitable[None]], ...] = ()


class Context:
    """What a role is wired from.

    Attributes:
        settings: The node's settings.
        bus: Log, as this role.
        packs: Content.
        admit: Checks callers that come another way than by gRPC.
    """

    def __init__(self, *, settings: NodeSettings, role: str, bus: Bus, packs: PackStore, admit: auth.Admit) -> None:
        self.settings = settings
        self.role = role
        self.bus = bus
        self.packs = packs
        self.admit = admit
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._databases: list[Database] = []
        self._projections: dict[str, ProjectionRunner] = {}

    async def database(self, migrations: Sequence[str], *, max_connections: int = 4) -> Database:
        """Open this role's schema.

        Args:
            migrations: SQL scripts in order.
            max_connections: Upper bound of the pool.

        Returns:
            The database; the runner closes it.
        """
        database = await Database.open(
            self.settings.postgres_dsn, schema=self.role, migrations=migrations, max_connections=max_connections
        )
        self._databases.append(database)
        return database

    def channel(self, role: str) -> grpc.aio.Channel:
        """Channel to another role, by the node's address table; the runner closes it.

        Args:
            role: One of topology's roles.

        Returns:
            A shared channel.
        """
        address = self.settings.addresses.get(role, self.settings.listen)
        if address not in self._channels:
            self._channels[address] = channels.channel(address)
        return self._channels[address]

    async def applied(self, projection: str, position: int, timeout_s: float = 10.0) -> bool:
        """Wait until one of this role's projections has applied a position: read your own writes.

        Args:
            projection: Its name.
            position: Stream sequence of an event that it wants.
            timeout_s: Seconds.

        Returns:
            False when the time ran out.
        """
        return await self._projections[projection].wait_for(position, timeout_s)

    def caught_up(self, projection: str) -> bool:
        """True when a projection has nothing left to apply."""
        return self._projections[projection].progress.caught_up

    def adopt(self, runners: Sequence[ProjectionRunner]) -> None:
        """Make running projections known to `applied` and `caught_up`."""
        self._projections = {runner.name: runner for runner in runners}

    async def close(self) -> None:
        """Close channels, tables and log."""
        for channel in self._channels.values():
            await channel.close()
        for database in self._databases:
            await database.close()
        await self.bus.close()


Wire = Callable[[Context], Awaitable[Role]]


class Node:
    """A process that runs some roles.

    Attributes:
        server: Its gRPC server, once started.
    """

    def __init__(
        self,
        *,
        settings: NodeSettings,
        wires: Mapping[str, Wire],
        without_steps: Collection[str] = (),
        identify: auth.Identify = auth.local_owner,
    ) -> None:
        """Keep what to run.

        Args:
            settings: The node's.
            wires: Composition roots by role.
            without_steps: Roles whose steps run in other processes.
            identify: Names the principal behind what a caller shows.
        """
        self._settings = settings
        self._wires = wires
        self._without_steps = without_steps
        self._identify = identify
        self._stack = contextlib.AsyncExitStack()
        self._drains: list[Callable[[float], Awaitable[None]]] = []
        self._roles: list[tuple[Role, list[ProjectionRunner]]] = []
        self.server: rpc.Server

    async def start(self) -> None:
        """Connect, wire every role, follow the log and serve. After a failure it may be tried again.

        Raises:
            Failure: When a dependency is missing; the message says which and what to do.
        """
        try:
            await self._start()
        except BaseException:
            await self.stop()
            self._roles.clear()
            raise

    async def stop(self) -> None:
        """Drain: refuse calls, finish work in hand, close. All roles have the same few seconds, not one after the other."""
        drains, self._drains = self._drains, []
        await asyncio.gather(*(drain(_DRAIN_S) for drain in drains))
        await self._stack.aclose()

    async def problems(self) -> dict[str, str]:
        """What keeps this node from being ready, by "role/dependency"; empty when ready."""
        found = {}
        for role, runners in self._roles:
            for runner in runners:
                if runner.progress.problem:
                    found[f"{role.name}/projection {runner.name}"] = runner.progress.problem
                telemetry.applied_position.labels(role.name, runner.name).set(runner.progress.applied)
            for name, check in role.checks.items():
                try:
                    problem = await check()
                except Exception as error:  # noqa: BLE001  (a failing check is an answer, not a crash)
                    problem = f"{type(error).__name__}: {error}"
                if problem:
                    found[f"{role.name}/{name}"] = problem
        return found

    async def _start(self) -> None:
        settings = self._settings
        blobs = FolderBlobs(root=settings.blobs)
        self._stack.callback(blobs.close)
        packs = PackStore(blobs=blobs)
        grants = await self._open_grants()
        servicers: list[rpc.Servicer] = []
        for name in topology.ROLE_NAMES:
            if name in self._wires:
                servicers += await self._start_role(name, packs, grants)
        self.server = rpc.Server(listen=settings.listen, grants=grants, servicers=tuple(servicers))
        await self.server.start()
        self._drains.append(self.server.stop)
        readiness = asyncio.create_task(self._publish_readiness(), name="readiness")
        self._stack.push_async_callback(tasks.cancel, [readiness])

    async def _open_grants(self) -> auth.Grants:
        bus = await Bus.connect(self._settings.nats_url, role="kernel", replicas=self._settings.stream_replicas)
        self._stack.push_async_callback(bus.close)
        database = await Database.open(
            self._settings.postgres_dsn, schema="access", migrations=auth.MIGRATIONS, max_connections=2
        )
        self._stack.push_async_callback(database.close)
        return auth.Grants(database=database, bus=bus, identify=self._identify)

    async def _start_role(self, name: str, packs: PackStore, grants: auth.Grants) -> tuple[rpc.Servicer, ...]:
        bus = await Bus.connect(self._settings.nats_url, role=name, replicas=self._settings.stream_replicas)
        context = Context(settings=self._settings, role=name, bus=bus, packs=packs, admit=grants.admit)
        self._stack.push_async_callback(context.close)
        role = await self._wires[name](context)
        for close in reversed(role.close):
            self._stack.push_async_callback(close)
        runners = [ProjectionRunner(bus=bus, projection=projection) for projection in role.projections]
        context.adopt(runners)
        for runner in runners:
            await runner.start()
            self._stack.push_async_callback(runner.stop)
        for loop in role.background:
            task = asyncio.create_task(_supervise(name, loop), name=f"{name}-background")
            self._stack.push_async_callback(tasks.cancel, [task])
        if role.steps and name not in self._without_steps:
            steps = StepRunner(bus=bus, steps=role.steps)
            self._drains.append(steps.stop)
            await steps.start()
        self._roles.append((role, runners))
        return role.servicers

    async def _publish_readiness(self) -> None:
        while True:
            problems = await self.problems()
            ready = {"": not problems}
            for role, _ in self._roles:
                own = not any(key.startswith(f"{role.name}/") for key in problems)
                ready |= {servicer.name: own for servicer in role.servicers}
            await self.server.set_ready(ready)
            await asyncio.sleep(_READINESS_S)


async def _supervise(role: str, loop: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await loop()
        except Exception:  # noqa: BLE001  (a loop that dies unseen would stop its part of the service for good)
            _log.exception("a background loop of %s failed; it starts again", role)
        else:
            return
        await asyncio.sleep(1)
