"""After an erasure no file of the node holds anything of the document.

A byte search can't see into compressed data, so what may be compressed is checked by other means: the tables' files
must all be new ones (Postgres compresses long values with pglz), the keyword lane's dictionaries are asked for the terms
(tantivy keeps them in automata), and the streams' configuration must say that NATS compresses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import nats
import pytest
import tantivy
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1.query_service_pb2 import AskResponse

from services.embedded.folder import Endpoints
from services.index.adapters import schema_postgres as index_schema
from services.ingest.adapters import schema_postgres as ingest_schema
from services.kernel.packs import parse
from tests.e2e.commands import let_through, result, run, up
from tests.e2e.crate import ANSWERED, LEXICAL, SEMANTIC, Crate
from tests.e2e.remains import forms, remains

# Letters that no stemmer shortens, and that stand nowhere else.
WORDS = {
    "source id": "wexolquzbanif",
    "title": "zworblaxumik",
    "metadata": "quvondrazelk",
    "source domain": "krovalixtemu",
    "heading": "plumvexorrak",
    "body": "blentrofizaq",
    "body of revision 1": "yiprandoxumel",
}
QUESTION = "What is the access phrase of the north vault?"
NEIGHBOURS = 240
CRATE = "papers"


@dataclass(frozen=True, slots=True)
class World:
    """A crate with neighbours and one document that was changed and cited."""

    crate: Crate
    document_id: str
    answer: AskResponse
    vectors: tuple[bytes, ...]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    let_through(tmp_path)
    return tmp_path / "data"


def neighbour(number: int) -> bytes:
    return f"# Depot {number}\n\nDepot number {number} opens at {number % 12} and stores {number % 7} kinds.\n".encode()


def put_neighbours(crate: Crate, numbers: range) -> None:
    def put(number: int) -> None:
        header = pb.DocumentHeader(source_id=f"depots/{number}.md", metadata={"keeper": f"k{number}"})
        crate.ingest.PutDocument(pb.PutDocumentRequest(crate_id=crate.id, header=header, body=neighbour(number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, numbers))


def put_secret(crate: Crate, phrase: str) -> str:
    header = pb.DocumentHeader(
        source_id=f"vaults/{WORDS['source id']}.md",
        title=f"The {WORDS['title']} plan",
        # Long enough for Postgres to compress it.
        metadata={"owner": WORDS["metadata"], "note": "more of the same " * 100},
        source_domain=f"{WORDS['source domain']}.example",
    )
    body = f"# Vaults {WORDS['heading']}\n\nThe access phrase of the north vault is {phrase}.\n"
    reply = crate.ingest.PutDocument(pb.PutDocumentRequest(crate_id=crate.id, header=header, body=body.encode()))
    return reply.document_id


def seeded(data_dir: Path) -> World:
    crate = Crate(address=Endpoints.read(data_dir).listen, crate_id=CRATE)
    lexical = settings_pb2.CrateSettings(retrieval_mode=LEXICAL)
    crate.ingest.ConfigureCrate(pb.ConfigureCrateRequest(crate_id=CRATE, settings=lexical))
    put_neighbours(crate, range(NEIGHBOURS // 2))
    put_secret(crate, WORDS["body of revision 1"])
    crate.settle()
    document_id = put_secret(crate, WORDS["body"])
    put_neighbours(crate, range(NEIGHBOURS // 2, NEIGHBOURS))
    crate.settle()
    answer = crate.ask(QUESTION)
    assert answer.status == ANSWERED
    assert WORDS["body"] in answer.text
    assert answer.citations[0].document_id == document_id
    # So that the planner has looked at every table and each page has been on disk.
    sql(data_dir, "analyze")
    sql(data_dir, "checkpoint")
    packs = [parse(path.read_bytes()) for path in data_dir.rglob(f"{document_id},*,vectors,*")]
    # Cosines don't care for length, but lanes keep the vectors of unit length as they are.
    vectors = tuple(part[400:440] for pack in packs for part in pack.values() if len(part) > 1000)
    assert vectors
    return World(crate, document_id, answer, vectors)


def sql(data_dir: Path, query: str) -> list[asyncpg.Record]:
    async def ask() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(Endpoints.read(data_dir).postgres_dsn)
        try:
            return list(await connection.fetch(query))
        finally:
            await connection.close()

    return asyncio.run(ask())


def files_of_content(data_dir: Path) -> set[str]:
    """Files of heaps, TOAST and indexes of all tables that hold content."""
    named = [f"'{role}.{table}'" for role, tables in CONTENT.items() for table in tables]
    rows = sql(
        data_dir,
        f"""with t as (select unnest(array[{",".join(named)}]::regclass[]) id),
        h as (select id from t union select reltoastrelid from pg_class join t on oid = id where reltoastrelid <> 0)
        select pg_relation_filepath(id) f from h
        union select pg_relation_filepath(indexrelid) from pg_index join h on indrelid = id""",  # noqa: S608
    )
    return {row["f"] for row in rows}


CONTENT = {"ingest": ingest_schema.CONTENT, "index": index_schema.CONTENT}


def terms_in_lanes(data_dir: Path) -> set[str]:
    """Which words the keyword lane's dictionaries hold, those of deleted records included."""
    found = set()
    for folder in (data_dir / "lanes" / CRATE / "1" / "keyword").iterdir():
        if folder.is_dir():
            searcher = tantivy.Index.open(str(folder)).searcher()
            for name, word in WORDS.items():
                if any(searcher.doc_freq(field, word) for field in ("body", "title", "entities")):
                    found.add(name)
    return found


def compressed_streams(data_dir: Path) -> list[str]:
    async def ask() -> list[str]:
        client = await nats.connect(Endpoints.read(data_dir).nats_url)
        try:
            streams = await client.jetstream().streams_info()
        finally:
            await client.close()
        return [one.config.name or "" for one in streams if one.config.compression not in (None, "none")]

    return asyncio.run(ask())


def sought(world: World) -> dict[str, tuple[bytes, ...]]:
    return {name: forms(word) for name, word in WORDS.items()} | {"vectors": world.vectors}


def place(path: str) -> str:
    """The part of a node that a file belongs to."""
    parts = path.split("/")
    return "/".join(parts[3:5] if parts[0] == "lanes" else parts[2:3] if parts[0] == "postgres" else parts[:1])


def snapshot(crate: Crate) -> dict[str, object]:
    """What is to be had of the neighbours: bytes, and what searches say."""
    sample = range(0, NEIGHBOURS, 31)
    shown: dict[str, object] = {}
    for number in sample:
        name = f"depots/{number}.md"
        shown[name] = crate.original(crate.document(name).document_id)
        for mode in (LEXICAL, SEMANTIC):
            found = crate.found(f"Depot number {number}", mode, limit=6)
            shown[f"{name} {mode}"] = [one for one in found if one.startswith("depots/")][:5]
    return shown


def check_gone(world: World, data_dir: Path) -> None:
    assert remains(data_dir, sought(world)) == {}
    assert terms_in_lanes(data_dir) == set()


def check_history(world: World, data_dir: Path) -> None:
    shown = result("documents", world.document_id, "--crate", CRATE, data_dir=data_dir)
    assert (shown["status"], shown["source_id"], shown["title"]) == ("DOCUMENT_STATUS_ERASED", "", "")
    receipt = result("receipt", "show", world.answer.receipt_id, "--crate", CRATE, data_dir=data_dir)
    assert not receipt["disclosed"]
    assert WORDS["body"] not in receipt["view_json"]


def test_an_erased_document_leaves_no_byte(data_dir: Path) -> None:
    with up(data_dir):
        world = seeded(data_dir)
        before, files, neighbours = remains(data_dir, sought(world)), files_of_content(data_dir), snapshot(world.crate)
        places = {place(path) for path in before}
        # Each place is searched where the words are known to be, or the search would prove nothing.
        assert places >= {"blobs", "base", "pg_wal", "vector/shard-1"}
        assert {name for names in before.values() for name in names} == set(sought(world))
        assert terms_in_lanes(data_dir) == {"title", "heading", "body", "body of revision 1"}
        assert compressed_streams(data_dir) == []

        report = result("erase", world.document_id, "--yes", "--wait", "--crate", CRATE, data_dir=data_dir)
        assert (report["gone"], report["remaining"], report["unchanged"]) == (True, [], False)
        check_gone(world, data_dir)
        assert not files & files_of_content(data_dir)
        assert snapshot(world.crate) == neighbours
        check_history(world, data_dir)
        sql(data_dir, "analyze")
        # The lanes and rows that were written anew take changes and erasures as before.
        world.crate.put("depots/0.md", "The depot of Quillby opens at noon.")
        assert world.crate.found("Quillby", LEXICAL) == ["depots/0.md"]
        again = result("erase", world.document_id, "--yes", "--crate", CRATE, data_dir=data_dir)
        assert (again["gone"], again["unchanged"]) == (True, True)
        told = run("erase", world.document_id, "--yes", "--crate", CRATE, data_dir=data_dir).stdout
        assert told.splitlines() == ["was erased already", "its content is off the disk"]
        check_gone(world, data_dir)
    check_gone(world, data_dir)


def test_a_scrub_that_was_killed_is_finished_after_the_next_start(data_dir: Path) -> None:
    with up(data_dir) as node:
        world = seeded(data_dir)
        # A snapshot that still sees the rows keeps the scrub from ending.
        with old_snapshot(data_dir):
            report = result("erase", world.document_id, "--yes", "--crate", CRATE, data_dir=data_dir)
            assert not report["gone"]
            assert {one["service"] for one in report["remaining"]} >= {"index", "ingest"}
            told = run("erase", world.document_id, "--yes", "--crate", CRATE, data_dir=data_dir).stdout
            assert "goes with the next scrub of: ingest, index" in told
            assert "--wait" in told
            os.kill(node.pid, signal.SIGKILL)
            node.wait()
    assert remains(data_dir, sought(world))
    # As a kill in the middle of a rewrite would leave it.
    database = max((data_dir / "postgres" / "cluster" / "base").iterdir(), key=lambda path: int(path.name))
    (database / "99999999").write_text(WORDS["body"])
    with up(data_dir):
        report = result("erase", world.document_id, "--yes", "--wait", "--crate", CRATE, data_dir=data_dir)
        assert (report["gone"], report["unchanged"]) == (True, True)
        check_gone(world, data_dir)
        check_history(world, data_dir)


@contextlib.contextmanager
def old_snapshot(data_dir: Path) -> Iterator[None]:
    """A transaction that began before what follows and doesn't end."""
    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(asyncpg.connect(Endpoints.read(data_dir).postgres_dsn))
    loop.run_until_complete(
        connection.execute("begin isolation level repeatable read; select count(*) from index.chunks")
    )
    try:
        yield
    finally:
        connection.terminate()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
