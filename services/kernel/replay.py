"""Replays: a role's projections built anew from the log, beside those in use.

A replay can't change anything but its own tables and lanes: it has a reader of the log, packs that can't be written or
erased, no channel to other roles, and it counts failures instead of writing them to the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nats.errors import Error as NatsError

from services.kernel.bus import LogReader, decode_message
from services.kernel.db import Database
from services.kernel.deliveries import Deliveries, deliveries
from services.kernel.digests import LogicalTable, Rows
from services.kernel.errors import Unavailable
from services.kernel.failures import CountedFailures
from services.kernel.packs import PackStore
from services.kernel.projections import Applier, Projection, add_consumer
from services.kernel.settings import NodeSettings

SUFFIX = "_replay"
# More than a projection in use takes at once: a commit costs about the same for one event as for a thousand.
_BATCH = 2_000
_FETCH_S = 2.0
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """Rows outside the tables, of the build in use and of the new one.

    Attributes:
        name: What they are.
        live: Reads those in use.
        replayed: Reads those that were built anew.
    """

    name: str
    live: Callable[[], Rows]
    replayed: Callable[[], Rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """What a service's `replica` gives a replay.

    Attributes:
        name: One of topology's roles.
        projections: The same as those in use, into other tables.
        tables: What is compared of them.
        lanes: What is compared beside the tables.
        close: Called last, in order.
    """

    name: str
    projections: tuple[Projection, ...]
    tables: tuple[LogicalTable, ...]
    lanes: tuple[RowSource, ...] = ()
    close: tuple[Callable[[], Awaitable[None]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayContext:
    """What a role's replica is wired from.

    Attributes:
        settings: The node's settings.
        role: The role.
        log: The log, to read.
        packs: Content, to read.
        failures: Where what is given up is counted.
        folder: Folder of what the replay builds outside the tables.
    """

    settings: NodeSettings
    role: str
    log: LogReader
    packs: PackStore
    failures: CountedFailures
    folder: Path
    databases: list[Database] = field(default_factory=list)

    @property
    def schema(self) -> str:
        """Schema that the replay builds."""
        return self.role + SUFFIX

    async def database(self, migrations: Sequence[str], *, max_connections: int = 4) -> Database:
        """Open the schema that the replay builds.

        Args:
            migrations: SQL scripts in order.
            max_connections: Upper bound of the pool.

        Returns:
            The database; `close` closes it.
        """
        database = await Database.open(
            self.settings.postgres_dsn, schema=self.schema, migrations=migrations, max_connections=max_connections
        )
        self.databases.append(database)
        return database

    async def close(self) -> None:
        """Close tables and log."""
        for database in self.databases:
            await database.close()
        await self.log.close()


class Replayer:
    """Brings one projection of a replica up to a position, and no further.

    Attributes:
        projection: What it applies events to.
        reached: Stream position up to which everything was handed over.
        events: How many events that were.
    """

    def __init__(self, *, context: ReplayContext, projection: Projection) -> None:
        self._log = context.log
        self._applier = Applier(projection=projection, role=context.role, failures=context.failures)
        self.projection = projection
        self.reached = 0
        self.events = 0

    async def run(self, until: int) -> None:
        """Apply events in log order.

        Args:
            until: Position of the last event wanted.

        Raises:
            Unavailable: When log, packs, tables or lanes don't answer.
        """
        for _ in range(_ATTEMPTS):
            if self.reached >= until:
                return
            try:
                info = await add_consumer(self._log, self.projection, after=self.reached)
                async with deliveries(self._log, self.projection.stream, info.name) as delivered:
                    await self._read(delivered, until)
            except (NatsError, OSError):
                continue
        if self.reached < until:
            raise Unavailable(f"the log doesn't give event {until} of {self.projection.stream}: retry")

    async def _read(self, delivered: Deliveries, until: int) -> None:
        await delivered.ask(_BATCH, _FETCH_S)
        while self.reached < until:
            messages = await delivered.take(_FETCH_S)
            # The server looks for the next ones while these are applied.
            await delivered.ask(_BATCH, _FETCH_S)
            batch = [event for event in map(decode_message, messages) if event.position <= until]
            await self._applier.apply(batch)
            self.events += len(batch)
            self.reached = max([self.reached, *(event.position for event in batch)])
