"""`affidavit replay`: projections built anew from the log beside those in use, and compared with them.

The tables in use go on meanwhile. What is compared is one moment of theirs: a snapshot of all of them is held open, the
replay goes on to the positions that the snapshot shows and no further, and then both are read. Lanes have no snapshot:
they are read again as long as they change while they differ.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from services import topology
from services.embedded.children import NatsServer, Postgres, reader_url
from services.embedded.folder import DataFolder, Endpoints
from services.kernel import telemetry
from services.kernel.blobs import FolderBlobs, KeptBlobs
from services.kernel.bus import LogReader
from services.kernel.db import Session, session
from services.kernel.digests import Comparison, compare, table_rows
from services.kernel.errors import Conflict, NotFound, Rejected, Unavailable
from services.kernel.failures import CountedFailures
from services.kernel.packs import PackStore
from services.kernel.replay import SUFFIX, ReplayContext, Replayer, Replica
from services.kernel.settings import NodeSettings

# Roles that keep projections.
REPLAYED = ("ingest", "index", "receipt")
_MODEL_CALLS = "affidavit_embedder_batch_seconds"
# One replay of a node at a time: they would build the same schemas.
_LOCK = 0x7265706C
_LANE_ATTEMPTS = 20
_LANE_PAUSE_S = 1.0
# Objects that a garbage collection waits for: a batch holds many, and hardly any of them in cycles.
_YOUNG_OBJECTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How one projection was replayed.

    Attributes:
        name: Role and projection.
        position: Stream position that both were compared at.
        events: How many events it was given.
        seconds: How long it took.
        given_up: Positions of events that the replay could not apply, as the live projection perhaps couldn't either.
    """

    name: str
    position: int
    events: int
    seconds: float
    given_up: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a replay found.

    Attributes:
        projections: How each was replayed.
        comparisons: Tables and lanes beside each other.
        model_calls: Calls of a model that this process made.
        seconds: From the first event to the last one applied.
    """

    projections: tuple[Followed, ...]
    comparisons: tuple[Comparison, ...]
    model_calls: int
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is equal."""
        return all(one.equal for one in self.comparisons)


class _Built:
    """One role's replica and how far it is."""

    def __init__(self, *, context: ReplayContext, replica: Replica) -> None:
        self.context = context
        self.replica = replica
        self.replayers = tuple(Replayer(context=context, projection=each) for each in replica.projections)
        self.seconds = dict.fromkeys(self.replayers, 0.0)

    async def advance(self, positions: dict[str, int]) -> None:
        """Bring every projection to a role's positions."""
        await asyncio.gather(*(self._advance(each, positions) for each in self.replayers))

    def followed(self) -> tuple[Followed, ...]:
        """What the report says of it."""
        given_up = self.context.failures.positions
        return tuple(
            Followed(
                name=f"{self.replica.name}.{each.projection.name}",
                position=each.reached,
                events=each.events,
                seconds=self.seconds[each],
                given_up=tuple(at for stream, at in given_up if stream == each.projection.stream),
            )
            for each in self.replayers
        )

    async def _advance(self, replayer: Replayer, positions: dict[str, int]) -> None:
        began = time.perf_counter()
        await replayer.run(positions.get(replayer.projection.name, 0))
        self.seconds[replayer] += time.perf_counter() - began


async def replay(settings: NodeSettings, *, roles: Sequence[str] = REPLAYED, keep: bool = False) -> Report:
    """Replay a node's projections and compare them with those in use.

    Args:
        settings: The node's settings. A running node is found by its data folder; otherwise the servers are started.
        roles: Whose projections; of `REPLAYED`.
        keep: Whether the new tables and lanes stay, to be looked at.

    Returns:
        What was found.

    Raises:
        Rejected: When a role keeps no projections.
        NotFound: When the data folder holds no node.
        Conflict: When another replay of the node runs.
        Unavailable: When a server doesn't answer, or lanes change too fast to be compared.
    """
    for role in roles:
        if role not in REPLAYED:
            raise Rejected(f"{role!r} keeps no projections: choose from {', '.join(REPLAYED)}")
    async with contextlib.AsyncExitStack() as stack:
        placed = await stack.enter_async_context(_servers(settings))
        snapshots = await stack.enter_async_context(session(placed.postgres_dsn))
        if not await snapshots.fetchval("select pg_try_advisory_lock($1)", _LOCK):
            raise Conflict("another replay of this node runs: wait until it has ended")
        await _clear(snapshots, placed)
        if not keep:
            stack.push_async_callback(_clear, snapshots, placed)
        calls = _model_calls()
        built = [await _build(stack, placed, role) for role in roles]
        stack.enter_context(_few_collections())
        began = time.perf_counter()
        await _catch_up(snapshots, built)
        comparisons, seconds = await _compare(snapshots, placed, built, began)
        followed = tuple(each for one in built for each in one.followed())
        return Report(
            projections=followed, comparisons=comparisons, model_calls=_model_calls() - calls, seconds=seconds
        )


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage rarely, and not through what was there before: that took a tenth of a replay."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@contextlib.asynccontextmanager
async def _servers(settings: NodeSettings) -> AsyncIterator[NodeSettings]:
    folder = DataFolder(settings.data_dir)
    if not (folder / "nats").is_dir():
        raise NotFound(f"{folder.path} is no data folder of a node: name one with --data-dir")
    try:
        folder.claim()
    except Conflict:
        endpoints = Endpoints.read(folder.path)
        yield _at(settings, endpoints.nats_url, endpoints.postgres_dsn)
        return
    nats, postgres = NatsServer(folder), Postgres(folder)
    try:
        await asyncio.gather(nats.start(), postgres.start())
        yield _at(settings, nats.url, postgres.dsn)
    finally:
        postgres.stop()
        nats.stop()
        folder.release()


def _at(settings: NodeSettings, nats_url: str, postgres_dsn: str) -> NodeSettings:
    return settings.model_copy(update={"nats_url": nats_url, "postgres_dsn": postgres_dsn})


async def _clear(connection: Session, settings: NodeSettings) -> None:
    for role in REPLAYED:
        await connection.execute(f'drop schema if exists "{role}{SUFFIX}" cascade')
    await asyncio.to_thread(shutil.rmtree, settings.data_dir / "replay", ignore_errors=True)


async def _build(stack: contextlib.AsyncExitStack, settings: NodeSettings, role: str) -> _Built:
    blobs = FolderBlobs(root=settings.blobs)
    stack.callback(blobs.close)
    context = ReplayContext(
        settings=settings,
        role=role,
        log=await LogReader.open(reader_url(settings.nats_url), role=role),
        packs=PackStore(blobs=KeptBlobs(blobs=blobs)),
        failures=CountedFailures(),
        folder=settings.data_dir / "replay",
    )
    stack.push_async_callback(context.close)
    replica: Replica = await importlib.import_module(f"services.{topology.role(role).name}.main").replica(context)
    for close in reversed(replica.close):
        stack.push_async_callback(close)
    return _Built(context=context, replica=replica)


async def _positions(connection: Session, role: str) -> dict[str, int]:
    rows = await connection.fetch(f'select projection, position from "{role}".positions')  # noqa: S608  (our own schema)
    return {row["projection"]: row["position"] for row in rows}


async def _catch_up(connection: Session, built: Sequence[_Built]) -> None:
    """Apply most of the log before the snapshot is taken: a long one would keep the tables from being cleaned."""
    positions = [await _positions(connection, one.replica.name) for one in built]
    await asyncio.gather(*(one.advance(each) for one, each in zip(built, positions, strict=True)))


async def _compare(
    connection: Session, settings: NodeSettings, built: Sequence[_Built], began: float
) -> tuple[tuple[Comparison, ...], float]:
    before: Any = None
    for _ in range(_LANE_ATTEMPTS):
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            positions = [await _positions(connection, one.replica.name) for one in built]
            await asyncio.gather(*(one.advance(each) for one, each in zip(built, positions, strict=True)))
            seconds = time.perf_counter() - began
            lanes = [each for one in built for each in await _compare_lanes(one)]
            differing = [one for one in lanes if not one.equal]
            # Lanes are written before their rows: only what differs twice, with nothing written between, differs.
            if not differing or before == (positions, differing):
                tables = [each for one in built for each in await _compare_tables(connection, settings, one)]
                return (*tables, *lanes), seconds
            before = (positions, differing)
        await asyncio.sleep(_LANE_PAUSE_S)
    raise Unavailable("the lanes change faster than they can be compared: stop ingesting for a while, then retry")


async def _compare_lanes(built: _Built) -> list[Comparison]:
    name = built.replica.name
    return [await compare(f"{name}.{lane.name}", lane.live(), lane.replayed()) for lane in built.replica.lanes]


async def _compare_tables(live: Session, settings: NodeSettings, built: _Built) -> list[Comparison]:
    name, schema = built.replica.name, built.context.schema
    async with session(settings.postgres_dsn) as new, new.transaction(isolation="repeatable_read", readonly=True):
        return [
            await compare(f"{name}.{table.name}", table_rows(live, name, table), table_rows(new, schema, table))
            for table in built.replica.tables
        ]


def _model_calls() -> int:
    """Calls of embedding models that this process has made: the embedder counts them."""
    samples = (sample for metric in telemetry.REGISTRY.collect() for sample in metric.samples)
    return int(sum(sample.value for sample in samples if sample.name == f"{_MODEL_CALLS}_count"))
