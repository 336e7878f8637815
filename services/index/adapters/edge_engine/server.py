"""Serves lanes on a local socket. One thread, one event loop: what is one step to the engine is one step to all."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np

from services.index.adapters.edge_engine import frames
from services.index.adapters.edge_engine.conditions import SEARCH_FIELDS, Search
from services.index.adapters.edge_engine.frames import FrameError, Header
from services.index.adapters.edge_engine.served_lane import LaneError, ServedLane

_CRATE = re.compile(r"[a-z0-9-]{1,40}")
_OPTIMISER = "services.index.adapters.edge_engine.optimiser"

LaneKey = tuple[str, int]
Operation = Callable[[Header, bytes], Awaitable[Header]]


class EngineServer:
    """Lanes below one folder, opened when they are first named."""

    def __init__(self, *, root: Path, optimise_at: int) -> None:
        self._root = root
        self._optimise_at = optimise_at
        self._lanes: dict[LaneKey, ServedLane] = {}
        # One lane after the other: each optimisation takes memory for a whole shard.
        self._turn = asyncio.Semaphore(1)
        self._operations: dict[str, Operation] = {
            "ping": self._ping,
            "open": self._open,
            "steps": self._steps,
            "commit": self._commit,
            "search": self._search,
            "count": self._count,
            "stored": self._stored,
            "status": self._status,
            "optimise": self._optimise,
            "rewrite": self._rewrite,
            "close": self._close,
            "drop": self._drop,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the frames of one connection, one after the other, until it ends."""
        try:
            while True:
                header, body = await frames.read(reader)
                for piece in frames.encode(await self._answer(header, body)):
                    writer.write(piece)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, FrameError):
            # The client is gone, or isn't one of ours.
            pass
        except asyncio.CancelledError:
            # The engine ends. Nobody awaits this task, and asyncio would report a cancelled one as a fault.
            pass
        finally:
            writer.close()

    async def close(self) -> None:
        """Close every lane."""
        for key in list(self._lanes):
            await self._lanes.pop(key).close()

    async def _answer(self, header: Header, body: bytes) -> Header:
        operation = self._operations.get(str(header.get("op")))
        if operation is None:
            return {"error": "rejected", "message": f"the engine has no operation {header.get('op')!r}"}
        try:
            return await operation(header, body)
        except LaneError as error:
            return {"error": error.code, "message": str(error)}
        except Exception as error:  # noqa: BLE001  (Qdrant Edge raises bare Exception for everything)
            return {"error": _code(error), "message": f"{header.get('op')} failed: {error}"}

    async def _ping(self, _header: Header, _body: bytes) -> Header:
        return {"pid": os.getpid()}

    async def _open(self, header: Header, _body: bytes) -> Header:
        return {"position": self._lane(header).position}

    async def _steps(self, header: Header, body: bytes) -> Header:
        await self._lane(header).apply(header, body)
        return {}

    async def _commit(self, header: Header, _body: bytes) -> Header:
        await self._lane(header).commit(header["position"])
        return {}

    async def _search(self, header: Header, body: bytes) -> Header:
        search = Search(**{name: header[name] for name in SEARCH_FIELDS if name in header})
        return {"hits": self._lane(header).search(np.frombuffer(body, dtype="<f4"), search)}

    async def _count(self, header: Header, _body: bytes) -> Header:
        return {"count": self._lane(header).count(header["kind"])}

    async def _stored(self, header: Header, _body: bytes) -> Header:
        if not (self._folder(header) / "current.json").exists():
            # Whoever only reads must not make a lane.
            return {"records": [], "next": None}
        records, following = self._lane(header).stored(header["after"], header["limit"])
        return {"records": records, "next": following}

    async def _status(self, header: Header, _body: bytes) -> Header:
        lane = self._lane(header)
        return {"unindexed": lane.unindexed(), "optimising": lane.optimising, "position": lane.position}

    async def _optimise(self, header: Header, _body: bytes) -> Header:
        return {"optimised": await self._lane(header).optimise()}

    async def _rewrite(self, header: Header, _body: bytes) -> Header:
        await self._lane(header).rewrite()
        return {}

    async def _close(self, header: Header, _body: bytes) -> Header:
        lane = self._lanes.pop((header["crate"], header["generation"]), None)
        if lane is not None:
            await lane.close()
        return {}

    async def _drop(self, header: Header, _body: bytes) -> Header:
        lane = self._lane(header)
        del self._lanes[(header["crate"], header["generation"])]
        await lane.drop()
        return {}

    def _folder(self, header: Header) -> Path:
        crate, generation = header["crate"], header["generation"]
        if not _CRATE.fullmatch(crate) or generation < 1:
            raise LaneError("rejected", f"no lane for crate {crate!r}, generation {generation}")
        return Path(self._root, crate, str(generation), "vector")

    def _lane(self, header: Header) -> ServedLane:
        folder = self._folder(header)
        crate, generation, dimension = header["crate"], header["generation"], header["dimension"]
        lane = self._lanes.get((crate, generation))
        if lane is None:
            lane = ServedLane(
                folder,
                dimension=dimension,
                optimise_at=self._optimise_at,
                build_index=_in_child,
                turn=self._turn,
            )
            self._lanes[(crate, generation)] = lane
            lane.optimise_if_due()
        if lane.dimension != dimension:
            raise LaneError(
                "conflict",
                f"generation {generation} of crate {crate} has vectors of {lane.dimension} components, not {dimension}",
            )
        return lane


async def _in_child(folder: Path, dimension: int, source: Path | None) -> None:
    arguments = ["--shard", str(folder), "--dimension", str(dimension), "--engine", str(os.getpid())]
    arguments += ["--source", str(source)] if source else []
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        _OPTIMISER,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        env={**os.environ, "RAYON_NUM_THREADS": "1"},
    )
    try:
        status = await child.wait()
    except asyncio.CancelledError:
        child.kill()
        await child.wait()
        raise
    if status:
        raise LaneError("unavailable", f"the optimiser of {folder} ended with status {status}")


def _code(error: Any) -> str:
    text = str(error).lower()
    if "dimension" in text or "expected dim" in text:
        return "rejected"
    unreadable = ("corrupt", "deserialize", "failed to load", "failed to read", "illegal segment", "doesn't describe")
    if isinstance(error, ValueError) or any(words in text for words in unreadable):
        return "corrupt"
    return "unavailable"
