"""Digests of a node as it is, to be compared with those of another node.

Two nodes that were told the same in another order have other positions, times, packs and document ids, and must agree
in everything else. So a document is called by its source id here, and those columns are left out.
"""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from services.index.main import lanes_in_use
from services.kernel.db import Database, session
from services.kernel.digests import Digest, LogicalTable, Rows, digest, table_rows
from services.kernel.settings import NodeSettings

ROLES = ("ingest", "index", "receipt")
# Erased documents have no name any more: they count, and are told apart by nothing.
_NAME = """coalesce((select d.source_id from ingest.documents d
    where d.crate_id = t.{crate} and d.document_id = t.document_id), '') collate "C\""""
_NAMES = "select crate_id, document_id, coalesce(source_id, '') as name from ingest.documents"


async def node_digests(settings: NodeSettings) -> dict[str, Digest]:
    """Digest a node's tables and lanes so that histories don't matter.

    Args:
        settings: With the addresses of its servers, which run; nothing should be written meanwhile.

    Returns:
        Digest by role and table or lane. Tables of failures, submissions and receipts aren't among them.

    Raises:
        Unavailable: When Postgres or the vector engine doesn't answer.
    """
    found = {}
    snapshot = {"isolation": "repeatable_read", "readonly": True}
    async with session(settings.postgres_dsn) as connection, connection.transaction(**snapshot):
        for role in ROLES:
            tables: tuple[LogicalTable, ...] = importlib.import_module(f"services.{role}.main").TABLES
            for table in tables:
                if table.portable:
                    crate = "crate_id" if "crate_id" in table.key else "crate"
                    renamed = {"document_id": _NAME.format(crate=crate)}
                    found[f"{role}.{table.name}"] = await digest(table_rows(connection, role, table, renamed=renamed))
        names = {(row["crate_id"], row["document_id"]): row["name"] for row in await connection.fetch(_NAMES)}
    async with _lanes(settings) as lanes:
        for name, rows in lanes.items():
            found[f"index.{name}"] = await digest(_renamed(rows, names))
    return found


@contextlib.asynccontextmanager
async def _lanes(settings: NodeSettings) -> AsyncIterator[Mapping[str, Rows]]:
    database = await Database.attach(settings.postgres_dsn, schema="index")
    with tempfile.TemporaryDirectory(prefix="affidavit-digests-") as folder:
        lanes, close = lanes_in_use(settings, database, Path(folder))
        try:
            yield {name: read() for name, read in lanes.items()}
        finally:
            await close()
            await database.close()


async def _renamed(rows: Rows, names: Mapping[tuple[str, str], str]) -> Rows:
    """The same rows with names in place of document ids, in their order."""
    found = [
        (tuple(names.get((str(key[0]), part), part) if isinstance(part, str) else part for part in key), content)
        async for key, content in rows
    ]
    for row in sorted(found):
        yield row
