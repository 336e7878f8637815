"""Entry of the vector engine: `python -m services.index.adapters.edge_engine --root DIR --socket PATH`.

It writes "ready" to its standard output once it serves, and ends when its standard input does: the process that started
it holds the other end, so the engine can't outlive it.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import TextIO

LOCKED_STATUS = 3

_log = logging.getLogger("affidavit.vector_engine")

_LOCK_TIMEOUT_S = 10.0


def main() -> int:
    """Serve until the standard input ends or a signal comes.

    Returns:
        0 after a clean stop, 3 when another engine has the folder.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True, help="folder of the lanes")
    parser.add_argument("--socket", type=Path, required=True, help="Unix socket to serve on")
    parser.add_argument(
        "--optimise-at", type=int, default=20_000, help="records without index that start an optimisation"
    )
    chosen = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, format="vector engine: %(message)s")
    chosen.root.mkdir(parents=True, exist_ok=True)
    with (chosen.root / ".engine.lock").open("a+") as lock:
        if not _locked(lock):
            lock.seek(0)
            _log.error(
                "engine %s serves %s already; stop it first",
                lock.read().partition(" ")[0] or "of another process",
                chosen.root,
            )
            return LOCKED_STATUS
        lock.truncate(0)
        # Whoever finds the folder taken learns where its engine listens.
        lock.write(f"{os.getpid()} {chosen.socket}")
        lock.flush()
        chosen.socket.unlink(missing_ok=True)
        os.umask(0o077)
        try:
            asyncio.run(_serve(chosen.root, chosen.socket, chosen.optimise_at))
        finally:
            chosen.socket.unlink(missing_ok=True)
    return 0


def _locked(lock: TextIO) -> bool:
    # An engine whose starter has died needs a moment to notice and to flush.
    until = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        else:
            return True


async def _serve(root: Path, socket: Path, optimise_at: int) -> None:
    from services.index.adapters.edge_engine.server import EngineServer

    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    # Ctrl-C reaches the whole group; when the engine is to end is for its owner to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine = EngineServer(root=root, optimise_at=optimise_at)
    server = await asyncio.start_unix_server(engine.serve, path=socket)
    starter = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(starter), sys.stdin)
    gone = asyncio.create_task(starter.read())
    gone.add_done_callback(lambda _: ending.set())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await ending.wait()
    server.close()
    gone.cancel()
    await engine.close()


if __name__ == "__main__":
    sys.exit(main())
