"""The child of the engine that indexes a copied shard: `python -m services.index.adapters.edge_engine.optimiser`.

With `--source` it writes the points of that copy into a new shard first.
It runs on one thread and ends with its engine. Its priority is low, so that who waits for an answer is served first, but
not the lowest: beside an embedding model that keeps every core busy for hours, that would stop it altogether.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_NICENESS = 10


def main() -> int:
    """Index the shard that the command line names.

    Returns:
        0 when it is done, 1 when the engine is gone.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--shard", type=Path, required=True)
    parser.add_argument("--dimension", type=int, required=True)
    parser.add_argument("--engine", type=int, required=True)
    parser.add_argument("--source", type=Path)
    chosen = parser.parse_args()
    os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The engine's loop never ends before its process does, so the signal can't come too early.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != chosen.engine:
        return 1
    from services.index.adapters.edge_engine.shard import build_index, rewrite

    if chosen.source is None:
        build_index(chosen.shard, chosen.dimension)
    else:
        rewrite(chosen.source, chosen.shard, chosen.dimension)
    return 0


if __name__ == "__main__":
    sys.exit(main())
