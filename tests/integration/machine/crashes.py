"""Crashes at chosen points: log, packs and lanes of the roles under test pass them on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLane
from services.index.adapters.tables_postgres import PostgresTables
from services.index.adapters.vector_engine_process import EngineConnection
from services.index.adapters.vector_lane_edge import EdgeVectorLane
from services.kernel.bus import Appended, Bus
from services.kernel.packs import PackRef, PackStore

COMMAND_POINTS = ("before pack", "after pack", "before event", "after event")
STEP_POINTS = (*COMMAND_POINTS, "before erasing", "after erasing")
INDEX_POINTS = (
    "before keyword",
    "after keyword",
    "before vector",
    "before vector commit",
    "after vector",
    "before rows",
    "after rows",
)


class Crash(BaseException):
    """The process is gone: no handler of failures may see this."""


class Fuse:
    """Ends a role at the nth passage of a point."""

    def __init__(self) -> None:
        self._point = ""
        self._left = 0
        self._flying = 0
        self._landed = asyncio.Event()
        self._landed.set()

    def arm(self, point: str, passage: int = 1) -> None:
        """Crash at a passage."""
        self._point, self._left = point, passage

    def disarm(self) -> None:
        """Crash no more."""
        self._point = ""

    def reach(self, point: str) -> None:
        """Pass a point, or crash at it."""
        if point == self._point:
            self._left -= 1
            if not self._left:
                self.disarm()
                raise Crash(point)

    async def fly(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do what may go on while its neighbour crashes."""
        self.reach(f"before {what}")
        self._flying += 1
        self._landed.clear()
        try:
            await work()
            self.reach(f"after {what}")
        finally:
            self._flying -= 1
            if not self._flying:
                self._landed.set()

    async def landed(self) -> None:
        """Wait until nothing goes on."""
        await self._landed.wait()


class CrashingBus(Bus):
    """A log that a role may not live to see confirm.

    Attributes:
        fuse: Of the role.
        forgetful: The dedup window has passed: the server knows no message id any more.
    """

    fuse: Fuse
    forgetful = False

    async def _publish(self, stream: str, subject: str, headers: dict[str, str], body: bytes) -> Appended:
        self.fuse.reach("before event")
        if self.forgetful:
            headers = {name: value for name, value in headers.items() if name != "Nats-Msg-Id"}
        appended = await super()._publish(stream, subject, headers, body)
        self.fuse.reach("after event")
        return appended


class CrashingPacks(PackStore):
    """A pack store around whose writes a role may end."""

    fuse: Fuse

    async def write(self, prefix: str, parts: Mapping[str, bytes]) -> PackRef:
        self.fuse.reach("before pack")
        ref = await super().write(prefix, parts)
        self.fuse.reach("after pack")
        return ref

    async def erase(self, prefix: str) -> None:
        self.fuse.reach("before erasing")
        await super().erase(prefix)
        self.fuse.reach("after erasing")


def crash_in_index(monkeypatch: pytest.MonkeyPatch, fuse: Fuse) -> None:
    """Let the index pass its points: lanes and rows."""
    keyword, vector = TantivyKeywordLane.replace, EdgeVectorLane.replace
    call, commit = EngineConnection.call, PostgresTables.commit

    async def replace_keyword(lane: TantivyKeywordLane, *arguments: Any) -> None:
        await fuse.fly("keyword", lambda: keyword(lane, *arguments))

    async def replace_vector(lane: EdgeVectorLane, *arguments: Any) -> None:
        await fuse.fly("vector", lambda: vector(lane, *arguments))

    async def call_engine(connection: EngineConnection, header: Any, *arguments: Any, **more: Any) -> Any:
        if header["op"] == "commit":
            fuse.reach("before vector commit")
        return await call(connection, header, *arguments, **more)

    async def commit_rows(tables: PostgresTables, rows: Any, position: int, before: Any) -> None:
        async def lanes() -> None:
            await before()
            fuse.reach("before rows")

        await commit(tables, rows, position, lanes)
        fuse.reach("after rows")

    monkeypatch.setattr(TantivyKeywordLane, "replace", replace_keyword)
    monkeypatch.setattr(EdgeVectorLane, "replace", replace_vector)
    monkeypatch.setattr(EngineConnection, "call", call_engine)
    monkeypatch.setattr(PostgresTables, "commit", commit_rows)
