"""Tables are projections: built again, built in other batches, or built by two processes, they are the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb

from services import topology
from services.ingest.adapters.schema_postgres import MIGRATIONS
from services.ingest.adapters.sources_packs import PackSources
from services.ingest.adapters.tables_postgres import PostgresTables
from services.ingest.codec.facts import KNOWLEDGE_EVENTS, SIGNAL_EVENTS
from services.ingest.handlers import DOCUMENTS, INDEXED, Projections
from services.kernel import retries
from services.kernel.blobs import FolderBlobs, blob_names
from services.kernel.db import Database
from services.kernel.envelope import Event
from services.kernel.errors import Unavailable
from services.kernel.failures import LoggedFailures
from services.kernel.packs import PackStore
from services.kernel.projections import Projection, ProjectionRunner
from tests.integration.ingest.ingest_world import Client, Pipeline, World

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEXT = b"The west gate opens at 06:00."
TABLES = ("crates", "jobs", "documents", "revisions", "reported", "failures", "submissions")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Tables in a schema of their own, and what follows the log into them."""

    database: Database
    tables: PostgresTables
    projections: Projections
    log: dict[str, list[Event]]

    @classmethod
    @asynccontextmanager
    async def open(cls, world: World, schema: str) -> AsyncIterator[Rebuilt]:
        """Empty tables."""
        database = await Database.open(world.settings.postgres_dsn, schema=schema, migrations=MIGRATIONS)
        bus = world.buses["ingest"]
        blobs = FolderBlobs(root=world.settings.blobs)
        tables = PostgresTables(
            database=database,
            incarnations={
                DOCUMENTS: bus.incarnation(topology.KNOWLEDGE),
                INDEXED: bus.incarnation(topology.SIGNALS),
            },
        )
        sources = PackSources(packs=PackStore(blobs=blobs))
        handed_over = partial(retries.handed_over, bus, LoggedFailures(bus=bus))
        projections = Projections(tables=tables, sources=sources, log=bus, handed_over=handed_over)
        yield cls(database, tables, projections, {DOCUMENTS: [], INDEXED: []})
        await database.close()
        blobs.close()

    async def collect(self, world: World) -> None:
        """Read the whole log."""
        for name, events, stream in (
            (DOCUMENTS, KNOWLEDGE_EVENTS, topology.KNOWLEDGE),
            (INDEXED, SIGNAL_EVENTS, topology.SIGNALS),
        ):
            kept = self.log[name]

            async def keep(batch: Sequence[Event], kept: list[Event] = kept) -> None:
                kept.extend(batch)

            async def start() -> int:
                return 0

            projection = Projection(name=name, events=events, stream=stream, apply=keep, position=start)
            runner = ProjectionRunner(bus=world.buses["ingest"], projection=projection)
            await runner.start()
            while not runner.progress.caught_up:  # noqa: ASYNC110  (a projection tells nobody when it has read all)
                await asyncio.sleep(0.05)
            await runner.stop()

    async def apply(self, name: str, batch: Sequence[Event]) -> None:
        """Apply events of one stream."""
        await (self.projections.documents if name == DOCUMENTS else self.projections.indexed)(batch)

    async def rows(self) -> dict[str, list[Any]]:
        """All rows."""
        return await rows_of(self.database, self.database.schema)


async def rows_of(database: Database, schema: str) -> dict[str, list[Any]]:
    found = {}
    for table in TABLES:
        rows = await database.pool.fetch(f'select to_jsonb(t) r from "{schema}".{table} t')  # noqa: S608
        found[table] = sorted(row["r"] for row in rows)
    return found


async def history(client: Client, pipeline: Pipeline) -> None:
    """A bit of everything."""
    await client.job("fine", size=100, overlap=10)
    for name in ("a", "b", "c", "d", "e"):
        await client.put(name, TEXT + name.encode(), metadata={"name": name})
    ids = {name: (await client.get(name)).document_id for name in ("a", "b", "c", "d", "e")}
    await pipeline.finish(ids["a"])
    await client.put("a", TEXT)
    await pipeline.finish(ids["a"], chunks=2)
    await client.put("b", TEXT + b"b", job="fine")
    await pipeline.chunk(ids["b"], 4)
    await client.retire("c")
    await client.erase("d")
    await client.put("d", TEXT)
    await pipeline.finish(ids["d"], chunks=0)
    await pipeline.fail(ids["e"], "the pack is damaged", position=1)
    result = await client.put("f", TEXT)
    await client.erase("f")
    await published(pipeline, "erase", "f")
    await published(pipeline, "put", "g")
    await published(pipeline, "put", "g", again=True)
    await client.put("g", TEXT)
    await client.retire("c")
    await published(pipeline, "retire", "c")
    await pipeline.fail(result.document_id, "too late", position=2)
    await client.until("a", pb.DOCUMENT_STATUS_SEARCHABLE)
    await client.until("d", pb.DOCUMENT_STATUS_EMPTY)


async def published(pipeline: Pipeline, kind: str, subject: str, *, again: bool = False) -> None:
    """Publish an event; some change nothing."""
    event = {
        "specversion": "1.0",
        "id": f"{kind}-{subject}-{again}",
        "source": "/tests",
        "type": f"dev.affidavit.document.{kind}",
        "subject": subject,
        **({"data": "The east gate opens at 07:00.", "datacontenttype": "text/plain"} if kind == "put" else {}),
    }
    bus = pipeline.buses["chunker"]
    reply = await bus.nats.request(f"affidavit.submit.{pipeline.crate}", json.dumps(event).encode(), timeout=10)
    unchanged = again or kind != "put"
    assert json.loads(reply.data)["outcome"] == ("unchanged" if unchanged else "created")


async def settled(world: World, database: Database) -> dict[str, list[Any]]:
    """Rows of the running node, once it has read everything."""
    bus = world.buses["ingest"]
    async with asyncio.timeout(10):
        while True:
            rows = await database.pool.fetch("select projection, position from ingest.positions")
            positions = {row["projection"]: row["position"] for row in rows}
            last = await bus.last_position(topology.SIGNALS)
            failures = await database.pool.fetchval("select count(*) from ingest.failures")
            if positions.get(INDEXED, 0) >= last and failures:
                return await rows_of(database, "ingest")
            await asyncio.sleep(0.05)


async def test_tables_that_are_built_again_are_the_same_and_later_revisions_keep_their_content(
    world: World, client: Client, pipeline: Pipeline
) -> None:
    await history(client, pipeline)
    async with Rebuilt.open(world, "again") as again, Rebuilt.open(world, "single") as single:
        wanted = await settled(world, again.database)
        await again.collect(world)
        # The signals first, and all at once.
        for name in (INDEXED, DOCUMENTS):
            await again.apply(name, again.log[name])
        assert await again.rows() == wanted
        assert sum('"outcome": "unchanged"' in row for row in wanted["submissions"]) >= 3
        # One by one, the facts first; and everything twice.
        for name in (DOCUMENTS, INDEXED):
            for event in again.log[name]:
                await single.apply(name, [event])
                await single.apply(name, [event])
        assert await single.rows() == wanted
        for name in (DOCUMENTS, INDEXED):
            await single.apply(name, again.log[name])
        assert await single.rows() == wanted
    request = pb.ReadDocumentRequest(crate_id=client.crate, document_id=(await client.get("d")).document_id)
    assert [reply.body async for reply in client.stub.ReadDocument(request)] == [TEXT]


async def test_two_processes_that_apply_the_same_events_at_once_do_no_harm(
    world: World, client: Client, pipeline: Pipeline
) -> None:
    await history(client, pipeline)
    async with Rebuilt.open(world, "twins") as twins:
        wanted = await settled(world, twins.database)
        await twins.collect(world)
        log = twins.log
        cuts = {name: len(events) // 3 for name, events in log.items()}
        for part in range(4):
            batches = [
                (name, events[part * cuts[name] : None if part == 3 else (part + 1) * cuts[name]])
                for name, events in log.items()
            ]
            await asyncio.gather(*(twins.apply(name, batch) for name, batch in batches * 2 if batch))
        assert await twins.rows() == wanted


async def test_a_node_that_was_away_catches_up(world: World, client: Client, pipeline: Pipeline) -> None:
    result = await client.put("x", TEXT)
    await world.node.stop()
    await pipeline.finish(result.document_id)
    await world.restart_stopped()
    async with Client.connect(world.address, crate=client.crate) as after:
        document = await after.until("x", pb.DOCUMENT_STATUS_SEARCHABLE)
        assert document.revisions[0].size_bytes == len(TEXT)
        packs = PackStore(blobs=FolderBlobs(root=world.settings.blobs))
        for step in ("chunks", "vectors"):
            # What is searchable has packs of both steps; one that was lost is made again.
            assert (await after.put("x", TEXT)).outcome == pb.PUT_OUTCOME_RECHUNKED
            await pipeline.finish(result.document_id)
            await after.until("x", pb.DOCUMENT_STATUS_SEARCHABLE)
            await packs.write(f"{client.crate}/{result.document_id}/1/{step}", {step: b"made"})
        assert (await after.put("x", TEXT)).outcome == pb.PUT_OUTCOME_UNCHANGED


async def test_a_pack_without_its_event_is_erased_with_the_document(world: World, client: Client) -> None:
    first = await client.put("x", TEXT)
    blobs = FolderBlobs(root=world.settings.blobs)
    packs = PackStore(blobs=blobs)
    # What a crash between pack and event leaves behind.
    await packs.write(f"{client.crate}/{first.document_id}/2/source", {"raw": b"an orphan"})
    second = await client.put("x", TEXT + b" Changed.")
    assert second.revision == 2
    await packs.write(f"{client.crate}/{first.document_id}/3/source", {"raw": b"another"})
    await client.erase("x")
    assert not [name for name in blob_names(world.settings.blobs) if first.document_id in name]
    blobs.close()


async def test_tables_that_are_away_are_unavailable_and_not_a_fault(world: World) -> None:
    async with Rebuilt.open(world, "away") as away:
        await away.database.pool.close()
        with pytest.raises(Unavailable, match="Postgres doesn't answer"):
            await away.tables.crate("main")
        with pytest.raises(Unavailable, match="Postgres doesn't answer"):
            await away.tables.apply(DOCUMENTS, 1, [])
