"""Who may do what on which crate. A foreign crate and a missing one look the same."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import asyncpg

from services import topology
from services.kernel.bus import Bus
from services.kernel.db import Database
from services.kernel.errors import NotFound, Rejected

LOCAL_OWNER = "local-owner"
ANY_CRATE = "*"
MIGRATIONS = (
    """
    create table grants (principal text, crate text, role text not null, primary key (principal, crate));
    insert into grants values ('local-owner', '*', 'owner');
    """,
)


class Grant(IntEnum):
    """Roles of a principal on a crate; a higher one includes the lower ones."""

    READER = 1
    WRITER = 2
    OWNER = 3


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever calls.

    Attributes:
        name: Stable name in the grants table.
    """

    name: str


class Grants:
    """Answers whether a principal may call an RPC on a crate."""

    def __init__(self, *, database: Database, bus: Bus) -> None:
        self._pool: asyncpg.Pool = database.pool
        self._bus = bus
        self._known: set[str] = set()
        self._grants: dict[tuple[str, str], Grant] = {}

    async def check(self, principal: Principal, method: str, crate: str, *, creates: bool = False) -> None:
        """Let a call pass or refuse it.

        Args:
            principal: Who calls.
            method: Full RPC name, "/package.Service/Method".
            crate: Crate in field 1 of the request.
            creates: True for the one RPC whose crate doesn't exist yet.

        Raises:
            Rejected: When the request names no crate.
            NotFound: When the crate doesn't exist or isn't granted: the caller can't tell which.
        """
        if not crate:
            raise Rejected("crate_id is empty: every request names its crate, the server never assumes one")
        if await self._granted(principal.name, crate) < Grant[topology.rpc_grant(method).upper()]:
            raise _missing(crate)
        if not creates and not await self._exists(crate):
            raise _missing(crate)

    async def check_unscoped(self, principal: Principal, method: str) -> None:
        """Let a call pass that names no crate, such as the list of crates.

        Raises:
            NotFound: When the principal has no grant over all crates.
        """
        if await self._granted(principal.name, ANY_CRATE) < Grant[topology.rpc_grant(method).upper()]:
            raise NotFound(f"{method} is not granted to {principal.name}")

    async def _granted(self, principal: str, crate: str) -> int:
        best = 0
        # The grant over all crates first: who owns everything, as on loopback, costs no query per call.
        for scope in (ANY_CRATE, crate):
            best = max(best, await self._grant(principal, scope))
            if best == Grant.OWNER:
                break
        return best

    async def _grant(self, principal: str, scope: str) -> int:
        key = (principal, scope)
        if key not in self._grants:
            role = await self._pool.fetchval("select role from grants where principal = $1 and crate = $2", *key)
            if role is None:
                return 0
            self._grants[key] = Grant[role.upper()]
        return self._grants[key]

    async def _exists(self, crate: str) -> bool:
        # Crates are never removed, so one that was seen stays known; the log itself is asked about the others.
        if crate not in self._known:
            try:
                found = await self._bus.last_named(
                    crate=crate, service="ingest", aggregate="crate", name="CrateConfigured"
                )
            except ValueError:
                return False
            if found is None:
                return False
            self._known.add(crate)
        return True


def _missing(crate: str) -> NotFound:
    return NotFound(f"crate {crate[:64]!r} does not exist: create it with `affidavit crate create`")
