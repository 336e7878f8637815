"""What a replay is wired from can read and nothing else, and follows the same events as the roles in use."""

from __future__ import annotations

import importlib
from pathlib import Path
from unittest.mock import AsyncMock

import nats
import pytest
from affidavit.ingest.v1 import ingest_events_pb2 as pb
from nats.errors import TimeoutError as NatsTimeoutError

from services import topology
from services.embedded.children import free_port, reader_url
from services.embedded.replay import REPLAYED
from services.kernel import failures
from services.kernel.blobs import FolderBlobs, KeptBlobs
from services.kernel.bus import Bus, LogReader, decode_message
from services.kernel.db import Database, session
from services.kernel.deliveries import deliveries
from services.kernel.digests import LogicalTable, compare, digest, table_rows
from services.kernel.envelope import Event, Poison
from services.kernel.errors import Conflict, Corrupt, Unavailable
from services.kernel.failures import CountedFailures
from services.kernel.packs import PackStore
from services.kernel.projections import Projection, add_consumer
from services.kernel.replay import ReplayContext, Replayer
from services.kernel.settings import NodeSettings
from tests.conftest import ContextFactory


async def replay_context(settings: NodeSettings, role: str, blobs: FolderBlobs) -> ReplayContext:
    return ReplayContext(
        settings=settings,
        role=role,
        log=await LogReader.open(reader_url(settings.nats_url), role=role),
        packs=PackStore(blobs=KeptBlobs(blobs=blobs)),
        failures=CountedFailures(),
        folder=settings.data_dir / "replay",
    )


@pytest.mark.parametrize("role", topology.ROLE_NAMES)
async def test_replicas_follow_what_the_roles_follow(
    role: str, context_for: ContextFactory, node_settings: NodeSettings
) -> None:
    module = importlib.import_module(f"services.{role}.main")
    running = await module.wire(await context_for(role))
    for close in running.close:
        await close()
    assert bool(running.projections) == (role in REPLAYED)
    if role not in REPLAYED:
        return
    blobs = FolderBlobs(root=node_settings.blobs)
    context = await replay_context(node_settings, role, blobs)
    try:
        replica = await module.replica(context)
        followed = [(each.name, each.stream, each.events) for each in replica.projections]
        assert followed == [(each.name, each.stream, each.events) for each in running.projections]
        await no_table_is_forgotten(node_settings, role, replica.tables)
        for close in replica.close:
            await close()
    finally:
        await context.close()
        blobs.close()


# Work in hand, which no log knows of.
NOT_COMPARED = {"migrations", "positions", "outbox", "living_outbox", "intents", "scrubs"}
# Told by views on it.
VIEWED = {"living_timelines"}


async def no_table_is_forgotten(settings: NodeSettings, role: str, tables: tuple[LogicalTable, ...]) -> None:
    async with session(settings.postgres_dsn) as connection:
        found = await connection.fetch("select table_name from information_schema.tables where table_schema = $1", role)
        assert {row["table_name"] for row in found} - NOT_COMPARED - VIEWED == {table.name for table in tables}
        for table in tables:
            columns = await connection.fetch(
                "select column_name from information_schema.columns where table_schema = $1 and table_name = $2",
                role,
                table.name,
            )
            named = {*table.key, *table.history, *table.ignored, *table.views}
            assert named <= {row["column_name"] for row in columns}


async def test_a_reader_of_the_log_cannot_append(nats_url: str) -> None:
    bus = await Bus.connect(nats_url, role="ingest")
    await bus.append(crate="main", aggregate="a1", message=pb.DocumentIngested(document_id="a1"), key="1", expected=0)
    reader = await LogReader.open(reader_url(nats_url), role="ingest")
    assert not hasattr(reader, "append")
    last = await reader.last(crate="main", service="ingest", aggregate="a1")
    assert last is not None
    assert last.position == 1
    # Not even past this class: the server refuses.
    with pytest.raises(nats.errors.TimeoutError):
        await reader.js.publish("affidavit.k.main.ingest.a1.document_erased", b"", timeout=0.5)
    with pytest.raises(nats.errors.TimeoutError):
        await reader.js.delete_stream(topology.KNOWLEDGE)
    assert await bus.last_position() == 1
    await reader.close()
    await bus.close()


async def test_a_log_that_does_not_exist_is_not_made(nats_url: str) -> None:
    with pytest.raises(Unavailable, match="no stream KNOWLEDGE"):
        await LogReader.open(nats_url, role="ingest")


async def test_packs_stay_in_a_replay(tmp_path: Path) -> None:
    blobs = FolderBlobs(root=tmp_path)
    kept = PackStore(blobs=blobs)
    ref = await kept.write("main/a1/1/source", {"raw": b"x"})
    packs = PackStore(blobs=KeptBlobs(blobs=blobs))
    await packs.erase("main/a1")
    assert await packs.read("main/a1/1/source", ref.id) == {"raw": b"x"}
    assert await packs.ids("main/a1/1/source") == (ref.id,)
    with pytest.raises(Conflict, match="only reads"):
        await packs.write("main/a1/1/source", {"raw": b"y"})
    blobs.close()


async def test_a_replay_stops_at_its_position_and_counts_what_it_gives_up(
    nats_url: str, node_settings: NodeSettings, tmp_path: Path
) -> None:
    bus = await Bus.connect(nats_url, role="ingest")
    for number in range(1, 8):
        message = pb.DocumentIngested(document_id=f"a{number}", revision=number)
        await bus.append(crate="main", aggregate=f"a{number}", message=message, key=str(number), expected=0)
    await bus.js.publish("affidavit.k.main.ingest.a8.document_ingested", b"\xff", headers={"ce-id": "8"})
    blobs = FolderBlobs(root=tmp_path)
    context = await replay_context(node_settings, "ingest", blobs)
    seen: list[int] = []

    async def apply(events: list[Event]) -> None:
        if any(event.position == 3 for event in events):
            raise Corrupt("made up by a test")
        seen.extend(event.position for event in events)

    async def position() -> int:
        return 0

    projection = Projection(name="test", events=("DocumentIngested",), apply=apply, position=position)  # type: ignore[arg-type]  # a list is a sequence
    replayer = Replayer(context=context, projection=projection)
    await replayer.run(5)
    assert (seen, replayer.reached, replayer.events) == ([1, 2, 4, 5], 5, 5)
    assert context.failures.positions == [(topology.KNOWLEDGE, 3)]
    await replayer.run(4)
    assert replayer.reached == 5
    await replayer.run(8)
    assert seen == [1, 2, 4, 5, 6, 7]
    assert context.failures.positions == [(topology.KNOWLEDGE, 3), (topology.KNOWLEDGE, 8)]
    # Neither of the two was written down once more.
    assert await bus.last_position() == 8
    await context.close()
    await bus.close()
    blobs.close()


async def test_what_is_delivered_comes_whole_and_in_order_however_it_is_asked_for(nats_url: str) -> None:
    bus = await Bus.connect(nats_url, role="ingest")
    for number in range(1, 8):
        message = pb.DocumentIngested(document_id=f"a{number}", revision=number)
        await bus.append(crate="main", aggregate=f"a{number}", message=message, key=str(number), expected=0)
    projection = Projection(name="test", events=("DocumentIngested",), apply=AsyncMock(), position=AsyncMock())
    info = await add_consumer(bus, projection, after=0)
    async with deliveries(bus, projection.stream, info.name) as delivered:
        taken: list[list[int]] = []
        for _ in range(3):
            await delivered.ask(3, 2.0)
            messages = await delivered.take(2.0)
            taken.append([found.position for found in map(decode_message, messages)])
        # The last batch isn't waited for until it is full: the server says that nothing is left.
        assert taken == [[1, 2, 3], [4, 5, 6], [7]]
        await delivered.ask(3, 0.1)
        with pytest.raises(NatsTimeoutError):
            await delivered.take(5.0)
    async with deliveries(bus, projection.stream, "gone") as delivered:
        await delivered.ask(3, 2.0)
        with pytest.raises(NatsTimeoutError):
            await delivered.take(5.0)
    await bus.close()


async def test_the_running_roles_do_write_failures_down(nats_url: str) -> None:
    bus = await Bus.connect(nats_url, role="ingest")
    written = failures.LoggedFailures(bus=bus)
    await bus.append(crate="main", aggregate="a1", message=pb.DocumentIngested(), key="1", expected=0)
    event = await bus.last(crate="main", service="ingest", aggregate="a1")
    assert event is not None
    await written.record(event, Corrupt("made up by a test"))
    await written.record_poison(
        Poison(stream="KNOWLEDGE", subject="a.b.main.ingest.a2.x", position=2, reason="made up")
    )
    assert await bus.last_position() == 3
    await bus.close()


TABLE = LogicalTable(
    name="things", key=("crate", "id"), history=("position",), ignored=("number",), views={"note": "upper(t.note)"}
)


async def test_digests_follow_what_counts(postgres_dsn: str) -> None:
    create = (
        """create table things (crate text collate "C", id text collate "C", number int, position bigint, note text)"""
    )
    one = await Database.open(postgres_dsn, schema="one", migrations=(create,))
    two = await Database.open(postgres_dsn, schema="two", migrations=(create,))
    await one.pool.execute(
        "insert into things values ('m', 'b', 1, 10, 'x'), ('m', 'a', 2, 20, 'y'), ('m', 'c', 3, 30, null)"
    )
    await two.pool.execute(
        "insert into things values ('m', 'a', 5, 20, 'Y'), ('m', 'b', 6, 10, 'x'), ('m', 'c', 7, 30, null)"
    )
    async with session(postgres_dsn) as connection:

        async def differences() -> tuple[str, ...]:
            async with connection.transaction():
                return (
                    await compare("things", table_rows(connection, "one", TABLE), table_rows(connection, "two", TABLE))
                ).differences

        assert await differences() == ()
        await two.pool.execute("update things set note = '' where id = 'c'")
        assert await differences() == ("m/c: differs",)
        await two.pool.execute(
            "update things set note = null where id = 'c'; update things set position = position + 1"
        )
        assert await differences() == ("m/a: differs", "m/b: differs", "m/c: differs")
        async with connection.transaction():
            # Two histories: positions don't count, and neither do ids.
            renamed = {"id": "lower(t.note)"}
            digests = [
                await digest(table_rows(connection, schema, TABLE, renamed=renamed)) for schema in ("one", "two")
            ]
        assert digests[0] == digests[1]
        assert digests[0].rows == 3
    await one.close()
    await two.close()
    with pytest.raises(Unavailable, match="Postgres doesn't answer"):
        await Database.attach(f"postgresql://affidavit@127.0.0.1:{free_port()}/postgres", schema="one")
