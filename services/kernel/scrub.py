"""Scrubs: what an erasure deleted leaves the disk too.

A deleted row stays in its page, its index entry, the sample values of the planner's statistics and the write-ahead log
until these are rewritten. Rewriting costs as much for one erased document as for a thousand, so it follows the erasure,
in batches. What is still to be scrubbed is noted in the transaction that deletes the rows: a crash at any moment leaves
either both or none, and the next start goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import asyncpg

from services.kernel import erasures
from services.kernel.db import DATABASE_FAULTS, Database, answering
from services.kernel.erasures import Aggregates
from services.kernel.errors import Failure, Unavailable

_log = logging.getLogger("affidavit.scrub")
# Rest between scrubs, in multiples of what the last one took: a storm of erasures leaves four fifths of the time.
_SHARE = 4.0
_RETRY_S = 5.0
# Readers queue behind whoever waits for a table: never for longer than this.
_LOCK_TIMEOUT = "1s"
_LOCK_ATTEMPTS = 20
_LOCK_PAUSE_S = 0.5
_READERS_S = 60.0
_POLL_S = 0.05
_NOTE = "insert into scrubs (crate, document_id, revision) values ($1, $2, $3)"
# Rows that a snapshot still sees are copied by a rewrite, so those who began before must have ended.
_BEGAN_BEFORE = """
select count(*) from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and xact_start < $1
"""
_OWNERLESS = """
select path from (
    select 'base/' || d.oid || '/' || f path, substring(f from '^[0-9]+')::bigint filenode
    from pg_database d, pg_ls_dir('base/' || d.oid) f
    where d.datname = current_database() and f ~ '^[0-9]+(_(fsm|vm|init))?([.][0-9]+)?$'
) files
where filenode not in (select pg_relation_filenode(oid) from pg_class where pg_relation_filenode(oid) is not null)
"""


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure whose content isn't off the disk yet.

    Attributes:
        number: Of the note.
        crate: Crate.
        document_id: Erased document.
        revision: Last revision that was erased.
    """

    number: int
    crate: str
    document_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an erasure is in one role.

    Attributes:
        gone: Whether the content is off this role's part of the disk.
        waiting: Erasures of all crates that wait for the next scrub.
        problem: What the last scrub failed of; empty when it didn't.
    """

    gone: bool
    waiting: int = 0
    problem: str = ""


async def note(connection: asyncpg.pool.PoolConnectionProxy, crate: str, erased: Sequence[tuple[str, int]]) -> None:
    """Remember that a scrub is due; call it in the transaction that deletes the rows.

    Args:
        connection: Inside the transaction.
        crate: Crate.
        erased: Documents and the last erased revision of each.
    """
    await connection.executemany(_NOTE, [(crate, document_id, revision) for document_id, revision in erased])


async def ownerless(dsn: str) -> tuple[str, ...]:
    """Find table files that no table owns: what a crash in the middle of a rewrite leaves, and Postgres never removes.

    Args:
        dsn: Postgres address. Nobody may create or rewrite a table meanwhile.

    Returns:
        Paths relative to the cluster's folder.

    Raises:
        Unavailable: When Postgres doesn't answer.
    """
    with answering():
        connection = await asyncpg.connect(dsn, timeout=10)
        try:
            return tuple(row["path"] for row in await connection.fetch(_OWNERLESS))
        finally:
            await connection.close()


class Scrubber:
    """Rewrites what erasures left on disk, a role's tables last.

    Attributes:
        problem: What the last scrub failed of; empty when it didn't.
    """

    def __init__(
        self,
        *,
        database: Database,
        tables: Sequence[str],
        position: Callable[[], Awaitable[int]],
        before: Callable[[Sequence[Erasure]], Awaitable[None]],
        log: Aggregates | None = None,
    ) -> None:
        """Keep what is scrubbed.

        Args:
            database: The role's schema.
            tables: Tables of it that hold content.
            position: KNOWLEDGE position that the rows have applied.
            before: Removes what else the role keeps of erased documents. It may be called again for the same ones.
            log: Tells which documents there are and were erased; without it an unknown one isn't told apart.
        """
        self._database = database
        self._tables = tables
        self._position = position
        self._before = before
        self._log = log
        self._waiting = asyncio.Event()
        self._rests_until = 0.0
        self.problem = ""

    def wake(self) -> None:
        """Say that erasures may have been noted."""
        self._waiting.set()

    async def run(self) -> None:
        """Scrub whenever erasures were noted, until cancelled."""
        while True:
            self._waiting.clear()
            try:
                if not await self._pending():
                    await self._waiting.wait()
                    continue
                await asyncio.sleep(max(0.0, self._rests_until - _now()))
                await self._scrub()
                self.problem = ""
            except (Failure, *DATABASE_FAULTS) as error:
                self.problem = error.message if isinstance(error, Failure) else _told(error)
                _log.warning("erased content is still on disk: %s", self.problem)
                await asyncio.sleep(_RETRY_S)

    async def standing(self, crate: str, document_id: str, position: int) -> Standing:
        """Tell whether an erased document's content has left this role's part of the disk.

        Args:
            crate: Crate.
            document_id: Document.
            position: KNOWLEDGE position of its erasure, 0 for its last one.

        Returns:
            How far it is; not gone when the document was never erased.

        Raises:
            Rejected: When no document is named.
            NotFound: When there is no such document.
            Unavailable: When tables or log don't answer.
        """
        if self._log is None:
            erasures.check_document_id(document_id)
        else:
            erased_at = await erasures.erased_at(self._log, crate, document_id)
            if not erased_at:
                return Standing(gone=False)
            position = max(position, erased_at)
        with answering():
            applied = await self._position()
            pending = await self._pending()
        named = any((one.crate, one.document_id) == (crate, document_id) for one in pending)
        return Standing(applied >= position and not named, len(pending), self.problem)

    async def _pending(self) -> tuple[Erasure, ...]:
        rows = await self._database.pool.fetch(
            "select number, crate, document_id, revision from scrubs order by number"
        )
        return tuple(Erasure(**row) for row in rows)

    async def _scrub(self) -> None:
        began = _now()
        pending = await self._pending()
        try:
            await self._readers_gone()
            await self._before(pending)
            await self._rewrite()
            await self._database.pool.execute(
                "delete from scrubs where number = any($1::bigint[])", [one.number for one in pending]
            )
        finally:
            self._rests_until = _now() + _SHARE * (_now() - began)
        _log.info("%d erasures scrubbed in %.1f s", len(pending), _now() - began)

    async def _readers_gone(self) -> None:
        """Wait until nobody sees the deleted rows any more; whoever begins later doesn't."""
        pool = self._database.pool
        since = await pool.fetchval("select clock_timestamp()")
        deadline = _now() + _READERS_S
        while await pool.fetchval(_BEGAN_BEFORE, since):
            if _now() > deadline:
                raise Unavailable("a transaction of Postgres that is older than the erasure doesn't end")
            await asyncio.sleep(_POLL_S)

    async def _rewrite(self) -> None:
        async with self._database.pool.acquire() as connection:
            await connection.execute(f"set lock_timeout = '{_LOCK_TIMEOUT}'")
            try:
                for table in self._tables:
                    await _rewrite_table(connection, f'"{self._database.schema}"."{table}"')
            finally:
                await connection.execute("reset lock_timeout")
            # The log of the deleted rows' making ends in a file of its own, which the checkpoint removes.
            await connection.execute("select pg_switch_wal()")
            await connection.execute("checkpoint")


async def _rewrite_table(connection: asyncpg.pool.PoolConnectionProxy, table: str) -> None:
    """Rewrite heap, TOAST and indexes without the deleted rows. Readers wait while it lasts; what they see is the same."""
    for _ in range(_LOCK_ATTEMPTS):
        try:
            await connection.execute(f"vacuum (full) {table}")
        except asyncpg.LockNotAvailableError:
            await asyncio.sleep(_LOCK_PAUSE_S)
        else:
            return
    raise Unavailable(f"{table} is never free for a moment: it is rewritten as soon as it is")


def _told(error: Exception) -> str:
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return "Postgres refuses a checkpoint: grant pg_checkpoint, and execute on pg_switch_wal(), to its user"
    return f"Postgres doesn't carry it out ({type(error).__name__}); it is tried again"


def _now() -> float:
    return asyncio.get_running_loop().time()
