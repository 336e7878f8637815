"""`affidavit up` and `affidavit run`: the same roles, in one process or in eight."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence

import grpc
from affidavit.ingest.v1 import ingest_service_pb2, ingest_service_pb2_grpc

from services import topology
from services.embedded.children import Child, NatsServer, Postgres, RoleProcess, free_port
from services.embedded.folder import DataFolder, Endpoints
from services.kernel import addresses, channels, tasks
from services.kernel.errors import Conflict, Unavailable
from services.kernel.runner import Node, Wire
from services.kernel.settings import NodeSettings

_log = logging.getLogger("affidavit.node")
FIRST_CRATE = "main"
_WATCH_S = 0.5
_READY_S = 120.0
_PATIENCE_S = 45.0
# A role whose node was killed drains for ten seconds.
_LEAVING_S = 15.0
# From the signal on, whatever runs; the servers stop after the roles.
_ROLES_END_S = 8.0
_NODE_ENDS_S = 9.7
# Steps that keep no tables: as many processes as there are cores may share them.
_WORKING = ("chunker", "proposition", "embedder")


def wires(roles: Sequence[str]) -> Mapping[str, Wire]:
    """Composition roots of some roles.

    Args:
        roles: Names from the topology.

    Returns:
        `wire` by role.

    Raises:
        KeyError: When there is no such role.
    """
    return {role: importlib.import_module(f"services.{topology.role(role).name}.main").wire for role in roles}


async def up(settings: NodeSettings, *, workers: int, apart: bool, announce: Callable[[Endpoints], None]) -> None:
    """Run the servers and all roles until SIGTERM or SIGINT.

    Args:
        settings: The node's settings; the addresses of the servers are filled in here.
        workers: Processes that cut and embed in place of the one that does the rest; 0 for none.
        apart: One process per role instead of one for all.
        announce: Called once, when everything answers.

    Raises:
        Conflict: When the folder or the address belongs to somebody else.
        Failure: When something can't start; the message says what to do.
    """
    stopping = _stop_event(_NODE_ENDS_S)
    folder = DataFolder(settings.data_dir)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(folder.release)
        await _claim(folder, settings.listen)
        nats, postgres = NatsServer(folder), Postgres(folder)
        children: list[Child] = [nats, postgres]
        stack.callback(_stop_all, children)
        await _start_all(children)
        watchers = _watch(children)
        stack.push_async_callback(tasks.cancel, watchers)
        await _patiently(postgres.sweep)
        endpoints = Endpoints(nats.url, postgres.dsn, _addresses(settings.listen, apart=apart), os.getpid())
        endpoints.write(folder)
        stack.callback((folder / "run" / "endpoints.json").unlink, missing_ok=True)
        if apart:
            children += (RoleProcess([role], folder=folder, address=at) for role, at in endpoints.roles.items())
        else:
            placed = _placed(settings, endpoints, endpoints.listen)
            node = Node(settings=placed, wires=wires(topology.ROLE_NAMES), without_steps=_WORKING if workers else ())
            await _patiently(node.start)
            stack.push_async_callback(node.stop)
            children += (
                RoleProcess(_WORKING, folder=folder, address=f"127.0.0.1:{free_port()}", name=f"worker-{number}")
                for number in range(1, workers + 1)
            )
        await _start_all(children[2:])
        # While this process finishes its own work, the others do theirs.
        stack.callback(_tell_all, children[2:])
        watchers += _watch(children[2:])
        # Before anything is told to stop: it would be started again.
        stack.push_async_callback(tasks.cancel, watchers)
        await _create_first_crate(endpoints)
        _freeze()
        announce(endpoints)
        await stopping.wait()


async def run(settings: NodeSettings, roles: Sequence[str], *, listen: str | None) -> None:
    """Run some roles against servers that run elsewhere, until SIGTERM or SIGINT.

    Args:
        settings: The node's settings.
        roles: Names from the topology.
        listen: Address to serve on; None takes the one that the data folder's node assigned, or any free one of
            loopback while another process has that.

    Raises:
        Failure: When something can't start.
    """
    stopping = _stop_event(_ROLES_END_S)
    if (settings.data_dir / "run" / "endpoints.json").exists():
        endpoints = Endpoints.read(settings.data_dir)
        settings = _placed(settings, endpoints, listen or _free_address(endpoints.roles[roles[0]]))
    elif listen:
        settings = settings.model_copy(update={"listen": listen})
    await _wait_for_address(settings.listen, DataFolder(settings.data_dir))
    node = Node(settings=settings, wires=wires(roles))
    starting = asyncio.create_task(_patiently(node.start))
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait({starting, stop}, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        _freeze()
        await stop
        await node.stop()
    await tasks.cancel([starting])


async def _patiently(start: Callable[[], Awaitable[None]]) -> None:
    """Start what needs the servers; those that are on their way up are waited for."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_S
    while True:
        try:
            await start()
        except Unavailable as error:
            if asyncio.get_running_loop().time() > deadline:
                raise
            sys.stderr.write(f"waiting: {error.message}\n")
            await asyncio.sleep(_WATCH_S)
        else:
            return


async def _claim(folder: DataFolder, listen: str) -> None:
    # Who owns the folder is the better answer where both are taken; a new folder is made only when it can be used.
    if folder.exists:
        folder.claim()
    await _wait_for_address(listen, folder)
    folder.claim()


async def _wait_for_address(listen: str, folder: DataFolder) -> None:
    """Make sure that an address is free; only our own processes that are about to end are waited for.

    Raises:
        Rejected: When it is no loopback address with a port.
        Conflict: When it is taken.
    """
    deadline = asyncio.get_running_loop().time() + _LEAVING_S
    while True:
        try:
            addresses.check_free(listen)
        except Conflict:
            holder = addresses.holder(addresses.parse(listen)[1])
            leaving = holder is not None and str(folder.path) in holder.command and not folder.owned
            if not leaving or asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(_WATCH_S)
        else:
            return


def _free_address(assigned: str) -> str:
    """The assigned address, or one of its own for a process that runs beside the one that has it."""
    holder = addresses.holder(addresses.parse(assigned)[1])
    if holder is None:
        return assigned
    own = f"127.0.0.1:{free_port()}"
    sys.stderr.write(f"serving on {own}: {assigned} belongs to {holder}\n")
    return own


def _freeze() -> None:
    """Keep what the start left out of garbage collection: full collections went through all of it, and calls waited."""
    gc.collect()
    gc.freeze()


def _addresses(listen: str, *, apart: bool) -> dict[str, str]:
    host, _, port = listen.rpartition(":")
    by_role = dict.fromkeys(topology.ROLE_NAMES, f"{host}:{free_port()}" if port == "0" else listen)
    if apart:
        for role in topology.ROLE_NAMES[1:]:
            by_role[role] = f"127.0.0.1:{free_port()}"
    return by_role


def _placed(settings: NodeSettings, endpoints: Endpoints, listen: str) -> NodeSettings:
    return settings.model_copy(
        update={
            "nats_url": endpoints.nats_url,
            "postgres_dsn": endpoints.postgres_dsn,
            "addresses": endpoints.roles,
            "listen": listen,
        }
    )


def _stop_event(within_s: float) -> asyncio.Event:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not stopping.is_set():
            stopping.set()
            last = threading.Timer(within_s, _leave)
            last.daemon = True
            last.start()

    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    return stopping


def _leave() -> None:
    """The end of a process that still waits for threads: all that was confirmed is on disk, and children end with us."""
    sys.stderr.write("not everything ended in time; what was in work is done again after the next start\n")
    sys.stderr.flush()
    os._exit(0)


async def _start_all(children: Sequence[Child]) -> None:
    starting = [asyncio.create_task(child.start()) for child in children]
    try:
        await asyncio.gather(*starting)
    finally:
        # Where one fails, nobody may go on with the others while they are stopped.
        await tasks.cancel(starting)


def _watch(children: Sequence[Child]) -> list[asyncio.Task[None]]:
    """Keep each alive on its own: a role that waits for a server must not keep the server from starting."""
    return [asyncio.create_task(_keep_alive(child)) for child in children]


async def _keep_alive(child: Child) -> None:
    while True:
        await asyncio.sleep(_WATCH_S)
        if not child.alive:
            _log.warning("%s ended; it is started again", child.name)
            try:
                await child.start()
            except Unavailable as error:
                sys.stderr.write(f"{error.message}\n")


async def _create_first_crate(endpoints: Endpoints) -> None:
    async with channels.channel(endpoints.listen) as channel:
        stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
        deadline = asyncio.get_running_loop().time() + _READY_S
        while True:
            try:
                await stub.CreateCrate(ingest_service_pb2.CreateCrateRequest(crate_id=FIRST_CRATE))
            except grpc.aio.AioRpcError as error:
                if error.code() in (grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.ABORTED):
                    return
                if asyncio.get_running_loop().time() > deadline:
                    raise Unavailable(f"the roles did not become ready: {error.details()}") from error
                await asyncio.sleep(0.2)
            else:
                return


def _tell_all(children: Sequence[Child]) -> None:
    for child in children:
        child.tell()


def _stop_all(children: Sequence[Child]) -> None:
    # Roles first, then tables, then the log: nobody loses what it still wants to write.
    for child in reversed(children):
        child.stop()
