"""A Postgres that is away is told as something to repeat, wherever it is met."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import pytest

from services.kernel.auth import Grants, Principal
from services.kernel.db import answering
from services.kernel.errors import Unavailable

AWAY = [
    ConnectionRefusedError(),
    asyncpg.CannotConnectNowError("the database system is starting up"),
    asyncpg.AdminShutdownError("terminating connection"),
    asyncpg.CrashShutdownError("terminating connection"),
    asyncpg.ConnectionDoesNotExistError("closed in the middle"),
    asyncpg.InterfaceError("the underlying connection is closed"),
    asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
    asyncpg.DiskFullError("no space left on device"),
]


@pytest.mark.parametrize("error", AWAY, ids=lambda error: type(error).__name__)
def test_what_passes_is_unavailable(error: Exception) -> None:
    with pytest.raises(Unavailable, match=f"Postgres doesn't answer \\({type(error).__name__}\\)"), answering():
        raise error


async def test_a_call_is_not_refused_for_good_while_postgres_starts() -> None:
    async def starting(*_: object) -> None:
        raise asyncpg.CannotConnectNowError("the database system is starting up")

    database = SimpleNamespace(pool=SimpleNamespace(fetchval=starting))
    grants = Grants(database=cast("Any", database), bus=cast("Any", None))
    with pytest.raises(Unavailable):
        await grants.check(Principal("local-owner"), "/affidavit.ingest.v1.IngestService/GetCrate", "main")
