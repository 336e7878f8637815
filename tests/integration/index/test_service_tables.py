"""Rows of the projection on the real Postgres."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

import asyncpg
import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb

from services.index.adapters.chunks_postgres import PostgresChunkReader
from services.index.adapters.outbox_postgres import PostgresOutbox
from services.index.adapters.schema_postgres import MIGRATIONS
from services.index.adapters.tables_postgres import PostgresTables
from services.index.domain.content import ChunkKey, CrateRows, Description, RecordCounts, RevisionContent
from services.index.domain.documents import Embedded, Erased, Fact, Ingested, Plan, Retired, plan
from services.index.domain.force import Force, instant
from services.index.domain.generations import GenerationEnd, GenerationStart, GenerationStatus, serving
from services.index.domain.records import Form, RevisionKey
from services.kernel.db import Database
from services.kernel.errors import Corrupt, Unavailable
from services.kernel.runner import Context

DOC = "a" * 32
OTHER = "b" * 32
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
INCARNATION = b"i" * 16


class Rows:
    """Both ports on one schema."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.tables = PostgresTables(database=database, incarnation=INCARNATION)
        self.reader = PostgresChunkReader(database=database)
        self.outbox = PostgresOutbox(database=database)
        self.at = 0

    async def apply(self, *facts: Fact, crate: str = "main") -> Plan:
        states = await self.tables.states(
            crate, [fact.document_id for fact in facts], [fact.revision for fact in facts]
        )
        made = plan(states, facts)
        self.at = facts[-1].position
        await self.tables.commit([rows_of(crate, made, await self.forces(crate, made))], self.at, nothing)
        return made

    async def forces(self, crate: str, made: Plan) -> dict[RevisionKey, Force]:
        """Forces of all stored revisions of the plan's documents, of which only being current matters here."""
        known = await self.tables.known_revisions(crate, [state.document_id for state in made.states])
        stored = {(document, each.revision) for document, all_ in known.items() for each in all_ if each.stored}
        stored |= {(fact.document_id, fact.revision) for fact in made.stored}
        current = {(state.document_id, state.current_revision) for state in made.states}
        return {key: Force(effective_from=0, position=0, current=key in current) for key in stored}

    async def current(self, *keys: RevisionKey, crate: str = "main") -> list[int]:
        """Revisions among the keys that are current."""
        standing = await self.reader.standing(crate, keys)
        return [revision for (_, revision), force in standing.forces.items() if force.current]

    async def count(self, table: str) -> int:
        return int(await self.database.pool.fetchval(f"select count(*) from {table}"))  # noqa: S608  (test's own names)


@pytest.fixture
async def rows(context_for: Callable[[str], Awaitable[Context]]) -> Rows:
    context = await context_for("index")
    return Rows(await context.database(MIGRATIONS))


async def nothing() -> None:
    """Stands where the lanes are written."""


def rows_of(crate: str, made: Plan, forces: Mapping[RevisionKey, Force]) -> CrateRows:
    contents = {(fact.document_id, fact.revision): content(fact) for fact in made.stored}
    return CrateRows(crate_id=crate, plan=made, contents=contents, forces=forces)


def content(fact: Embedded) -> RevisionContent:
    chunks = tuple(
        chunker_pb.Chunk(ordinal=n, text=f"{fact.settings_digest} {n}").SerializeToString()
        for n in range(fact.chunk_count)
    )
    told = Description(
        title=f"title {fact.revision}",
        source_id="s",
        source_domain="d",
        media_type="text/plain",
        charset="utf-8",
        uri="u",
        headings=("one", "two"),
    )
    return RevisionContent(description=told, chunks=chunks, terms=tuple(f"t{n} word" for n in range(fact.chunk_count)))


def ingested(revision: int, position: int, *, digest: str = "d1", document: str = DOC) -> Ingested:
    return Ingested(
        document_id=document,
        revision=revision,
        settings_digest=digest,
        form=Form.STRUCTURED,
        effective_at=NOON,
        effective_from=instant(NOON) + revision,
        position=position,
    )


def embedded(revision: int, position: int, *, digest: str = "d1", document: str = DOC, count: int = 2) -> Embedded:
    return Embedded(
        document_id=document,
        revision=revision,
        settings_digest=digest,
        generation=1,
        chunks_pack=b"c" * 32,
        vectors_pack=b"v" * 32,
        chunk_count=count,
        model_id="m",
        dimension=4,
        form=Form.STRUCTURED,
        position=position,
    )


def key(revision: int, ordinal: int, document: str = DOC) -> ChunkKey:
    return ChunkKey(document_id=document, revision=revision, ordinal=ordinal)


async def test_tables_of_an_older_release_are_filled_from_the_log_anew(
    context_for: Callable[[str], Awaitable[Context]],
) -> None:
    context = await context_for("index")
    old = await context.database(MIGRATIONS[:2])
    await old.pool.execute("insert into documents values ('main', 'd', 'searchable', 1, 'x', 1, 'x', 1, false, 0)")
    await old.pool.execute("insert into positions values ('lanes', 9, $1)", INCARNATION)
    rows = Rows(await context.database(MIGRATIONS))
    assert (await rows.count("documents"), await rows.tables.position()) == (0, 0)


async def test_an_empty_schema_stands_at_zero(rows: Rows) -> None:
    assert await rows.tables.position() == 0
    assert await rows.reader.position() == 0
    standing = await rows.reader.standing("main", [(DOC, 1)])
    assert (standing.position, dict(standing.forces)) == (0, {})
    fetched = await rows.reader.fetch("main", [key(1, 0)], with_terms=True)
    assert (fetched.position, fetched.chunks) == (0, ())
    assert await rows.reader.record_counts("main") == RecordCounts(chunks=0, documents=0)
    assert await rows.tables.crates() == ()


async def test_states_come_back_as_the_plan_left_them(rows: Rows) -> None:
    made = await rows.apply(ingested(1, 1), embedded(1, 2), ingested(2, 3, digest="d2"), ingested(1, 4, document=OTHER))
    found = await rows.tables.states("main", [DOC, DOC, OTHER, "c" * 32], [1, 2, 9, 1])
    assert set(found) == {DOC, OTHER}
    assert found[DOC].digests == {1: "d1", 2: "d2"}
    assert found[OTHER].digests == {}
    by_id = {state.document_id: state for state in made.states}
    assert (found[DOC].latest_revision, found[DOC].current_revision, found[DOC].current_count) == (2, 1, 2)
    assert found[DOC].current_digest == by_id[DOC].current_digest == "d1"
    assert await rows.tables.states("other", [DOC], [1]) == {}
    assert await rows.tables.position() == 4


async def test_chunks_are_fetched_in_the_order_asked_for(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2), ingested(1, 3, document=OTHER), embedded(1, 4, document=OTHER))
    fetched = await rows.reader.fetch(
        "main", [key(1, 1, OTHER), key(1, 0), key(1, 7), key(2, 0), key(1, 1, OTHER)], with_terms=True
    )
    assert [chunk.key for chunk in fetched.chunks] == [key(1, 1, OTHER), key(1, 0), key(1, 1, OTHER)]
    assert fetched.position == 4
    first = fetched.chunks[0]
    assert first.description.title == "title 1"
    assert first.form is Form.STRUCTURED
    assert first.effective_at == NOON
    assert first.ingested_position == 3
    assert first.terms == ("t1", "word")
    assert chunker_pb.Chunk.FromString(first.encoded).text == "d1 1"
    bare = await rows.reader.fetch("main", [key(1, 0)], with_terms=False)
    assert bare.chunks[0].terms == ()


async def test_chunks_of_another_crate_are_not_fetched(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2))
    assert (await rows.reader.fetch("other", [key(1, 0)], with_terms=False)).chunks == ()
    assert (await rows.reader.standing("other", [(DOC, 1)])).forces == {}
    assert await rows.reader.page("other", DOC, 0, 0, 10) is None


async def test_a_superseded_revision_keeps_its_chunks_and_says_when_it_counted(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2), ingested(2, 3), embedded(2, 4))
    (chunk,) = (await rows.reader.fetch("main", [key(1, 0)], with_terms=True)).chunks
    past = Force(effective_from=0, position=1, current=False)
    assert (chunk.force, chunk.terms) == (past, ("t0", "word"))
    page = await rows.reader.page("main", DOC, 1, 0, 10)
    assert page is not None
    assert len(page.chunks) == 2
    standing = await rows.reader.standing("main", [(DOC, 1), (DOC, 2), (OTHER, 1)])
    assert standing.forces == {(DOC, 1): past, (DOC, 2): Force(effective_from=0, position=3)}


async def test_new_chunk_settings_replace_the_rows_of_the_revision(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2, count=3))
    await rows.apply(ingested(1, 3, digest="d2"))
    kept = await rows.reader.fetch("main", [key(1, 2)], with_terms=False)
    assert chunker_pb.Chunk.FromString(kept.chunks[0].encoded).text == "d1 2"
    await rows.apply(embedded(1, 4, digest="d2", count=1))
    assert await rows.count("chunks") == 1
    replaced = await rows.reader.fetch("main", [key(1, 0), key(1, 2)], with_terms=False)
    assert [chunker_pb.Chunk.FromString(chunk.encoded).text for chunk in replaced.chunks] == ["d2 0"]
    assert replaced.chunks[0].ingested_position == 1


async def test_erasure_leaves_only_the_tombstone(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2), ingested(1, 3, document=OTHER), embedded(1, 4, document=OTHER))
    await rows.apply(Erased(document_id=DOC, revision=1, position=5))
    assert await rows.reader.page("main", DOC, 1, 0, 10) is None
    assert await rows.count("chunks") == 2
    assert await rows.count("revisions") == 1
    status = await rows.database.pool.fetchval("select status from documents where document_id = $1", DOC)
    assert status == "erased"
    # A replay of older facts must not bring anything back.
    await rows.apply(ingested(1, 6), embedded(1, 7))
    assert await rows.count("revisions") == 1
    await rows.apply(ingested(2, 8), embedded(2, 9))
    assert len((await rows.reader.fetch("main", [key(2, 0)], with_terms=False)).chunks) == 1


async def test_retirement_keeps_rows_and_shows_none(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2))
    await rows.apply(Retired(document_id=DOC, revision=1, position=3))
    assert await rows.reader.page("main", DOC, 0, 0, 10) is None
    page = await rows.reader.page("main", DOC, 1, 0, 10)
    assert page is not None
    assert await rows.reader.record_counts("main") == RecordCounts(chunks=0, documents=0)


async def test_pages_begin_where_they_are_told_to(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2, count=5))
    page = await rows.reader.page("main", DOC, 0, 3, 10)
    assert page is not None
    assert [chunk.key.ordinal for chunk in page.chunks] == [3, 4]
    assert (page.revision, page.chunk_count, page.headings) == (1, 5, ("one", "two"))
    beyond = await rows.reader.page("main", DOC, 1, 5, 10)
    assert beyond is not None
    assert beyond.chunks == ()


async def test_a_batch_that_comes_again_changes_nothing(rows: Rows) -> None:
    facts = (ingested(1, 1), embedded(1, 2), ingested(2, 3), embedded(2, 4))
    await rows.apply(*facts)
    before = [await rows.database.pool.fetch(f"select * from {table} order by 1, 2, 3") for table in ("documents", "revisions", "chunks")]  # noqa: S608  # fmt: skip
    made = plan({}, facts)
    await rows.tables.commit([rows_of("main", made, await rows.forces("main", made))], 4, nothing)
    again = [await rows.database.pool.fetch(f"select * from {table} order by 1, 2, 3") for table in ("documents", "revisions", "chunks")]  # noqa: S608  # fmt: skip
    assert again == before


async def test_more_chunks_than_a_statement_has_parameters(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2, count=40_000))
    assert await rows.count("chunks") == 40_000
    page = await rows.reader.page("main", DOC, 0, 39_999, 10)
    assert page is not None
    assert [chunk.key.ordinal for chunk in page.chunks] == [39_999]
    counts = await rows.reader.record_counts("main")
    assert counts == RecordCounts(chunks=40_000, documents=1)


async def test_the_position_moves_with_the_rows_or_not_at_all(rows: Rows) -> None:
    await rows.apply(ingested(1, 1))
    made = plan(await rows.tables.states("main", [DOC], [1]), [embedded(1, 2)])
    broken = CrateRows(
        crate_id="main",
        plan=made,
        contents={(DOC, 1): RevisionContent(description=Description(title="nul \0"), chunks=())},
        forces=await rows.forces("main", made),
    )
    with pytest.raises(asyncpg.CharacterNotInRepertoireError):
        await rows.tables.commit([broken], 2, nothing)
    assert await rows.tables.position() == 1
    assert await rows.current((DOC, 1)) == []


async def test_a_batch_whose_lanes_fail_writes_no_row(rows: Rows) -> None:
    async def fail() -> None:
        assert await rows.tables.position() == 0
        raise Unavailable("the engine is away")

    made = plan({}, [ingested(1, 1), embedded(1, 2)])
    with pytest.raises(Unavailable, match="engine is away"):
        await rows.tables.commit([rows_of("main", made, await rows.forces("main", made))], 2, fail)
    assert await rows.tables.position() == 0
    assert await rows.count("chunks") == 0


async def test_another_log_is_refused(rows: Rows) -> None:
    await rows.apply(ingested(1, 1))
    with pytest.raises(Corrupt, match="another log"):
        await PostgresTables(database=rows.database, incarnation=b"x" * 16).position()


async def test_generations_live_through_their_facts(rows: Rows) -> None:
    start = GenerationStart(
        generation=1,
        model_id="m",
        dimension=4,
        model_fingerprint="f",
        retrieval_strategy="standard",
        prompt_version="",
        started_at=NOON,
        position=1,
    )
    end = GenerationEnd(generation=1, status=GenerationStatus.ACTIVE, position=2)
    batch = CrateRows(crate_id="main", plan=Plan(), contents={}, generations=(start, end), lanes_changed=(1,))
    await rows.tables.commit([batch], 2, nothing)
    (found,) = await rows.tables.generations("main")
    assert found.start == start
    assert found.lane_position == 2
    assert serving([found]) == found
    assert await rows.reader.generations("main") == (found,)
    assert await rows.reader.generations("other") == ()
    assert await rows.tables.crates() == ("main",)
    failed = GenerationEnd(generation=1, status=GenerationStatus.FAILED, position=3)
    await rows.tables.commit(
        [CrateRows(crate_id="main", plan=Plan(), contents={}, generations=(failed, start, end))], 4, nothing
    )
    (found,) = await rows.tables.generations("main")
    assert found.status is GenerationStatus.FAILED
    assert found.lane_position == 2


async def test_signals_wait_until_they_are_forgotten(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), embedded(1, 2), ingested(1, 3, document=OTHER), embedded(1, 4, document=OTHER))
    first, second = await rows.outbox.signals(10)
    assert (first.document_id, first.revision, first.record_count, first.position) == (DOC, 1, 2, 2)
    assert (first.crate_id, first.settings_digest, first.generation) == ("main", "d1", 1)
    assert len(await rows.outbox.signals(1)) == 1
    await rows.outbox.forget([first.number])
    assert await rows.outbox.signals(10) == (second,)


async def test_shown_revisions_come_in_the_order_of_the_log(rows: Rows) -> None:
    await rows.apply(ingested(1, 1), ingested(1, 2, document=OTHER), embedded(1, 3, document=OTHER), embedded(1, 4))
    first, second = await rows.tables.shown("main", 1, 0, 10)
    assert (first.fact.document_id, second.fact.document_id) == (OTHER, DOC)
    assert first.fact == embedded(1, 3, document=OTHER)
    assert first.description == content(embedded(1, 3)).description
    assert await rows.tables.shown("main", 1, 3, 10) == (second,)
    assert await rows.tables.shown("main", 2, 0, 10) == ()
    chunks = await rows.tables.chunks_of("main", DOC, 1)
    assert [chunker_pb.Chunk.FromString(chunk).text for chunk in chunks] == ["d1 0", "d1 1"]


async def test_a_closed_pool_is_told_as_unavailable(rows: Rows) -> None:
    await rows.database.pool.close()
    with pytest.raises(Unavailable, match="Postgres doesn't answer"):
        await rows.reader.position()
