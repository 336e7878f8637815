"""Who may do what on which crate. A foreign crate and a missing one look the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

import asyncpg

from services import topology
from services.kernel.bus import Bus
from services.kernel.db import Database, answering
from services.kernel.errors import NotFound, Rejected

LOCAL_OWNER = "local-owner"
ANY_CRATE = "*"
# A grant that was taken away holds for this long at most.
_REMEMBERED_S = 5.0
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


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a caller shows of itself, at either edge.

    Attributes:
        metadata: gRPC metadata or NATS headers, names in lower case.
        certificate_names: Names in its verified client certificate; none without mutual TLS.
    """

    metadata: Mapping[str, str]
    certificate_names: tuple[str, ...] = ()


Identify: TypeAlias = Callable[[Credentials], Awaitable[Principal]]


async def local_owner(_: Credentials) -> Principal:
    """Who calls while only loopback is served: the machine's owner, whatever is shown."""
    return Principal(LOCAL_OWNER)


class Admit(Protocol):
    """Lets a call pass or refuses it, see `Grants.admit`."""

    async def __call__(self, credentials: Credentials, method: str, crate: str) -> None:
        """Check one call.

        Raises:
            Rejected: When no crate is named.
            NotFound: When the crate doesn't exist or isn't granted.
        """


class Grants:
    """Answers whether a principal may call an RPC on a crate."""

    def __init__(self, *, database: Database, bus: Bus, identify: Identify = local_owner) -> None:
        """Keep what the checks need.

        Args:
            database: Schema of the grants.
            bus: Log, which knows the crates.
            identify: Names the principal behind what a caller shows.
        """
        self._pool: asyncpg.Pool = database.pool
        self._bus = bus
        self._identify = identify
        self._known: set[str] = set()
        self._grants: dict[tuple[str, str], tuple[float, Grant]] = {}

    async def admit(self, credentials: Credentials, method: str, crate: str, *, creates: bool = False) -> None:
        """Let a call pass or refuse it, by what the caller shows, see `check`."""
        await self.check(await self._identify(credentials), method, crate, creates=creates)

    async def admit_unscoped(self, credentials: Credentials, method: str) -> None:
        """Let a call pass that names no crate, by what the caller shows, see `check_unscoped`."""
        await self.check_unscoped(await self._identify(credentials), method)

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
        now = asyncio.get_running_loop().time()
        until, grant = self._grants.get(key, (0.0, Grant.READER))
        if now < until:
            return grant
        with answering():
            role = await self._pool.fetchval("select role from grants where principal = $1 and crate = $2", *key)
        if role is None:
            self._grants.pop(key, None)
            return 0
        grant = Grant[role.upper()]
        self._grants[key] = (now + _REMEMBERED_S, grant)
        return grant

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
