"""One run: a node apart in its processes, documents, and a killer."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from services.embedded.folder import Endpoints
from tests.e2e.commands import children_of, up
from tests.storm.driver import Driver
from tests.storm.histories import histories
from tests.storm.state import State, read

CRATE = "storm"
_SENDERS = 8
_LOOK_S = 0.05
_SETTLE_S = 180.0
_LONGEST_PAUSE_S = 6.0


@dataclass(frozen=True, slots=True)
class Run:
    """What a run came to.

    Attributes:
        state: Afterwards.
        kills: By process.
        repeated: Calls that the client had to make again.
        seconds: From the first document until nothing was on its way.
        stuck: True when that didn't happen.
    """

    state: State
    kills: Counter[str]
    repeated: int
    seconds: float
    stuck: bool


class Killer:
    """Kills processes of a node with SIGKILL, each kind in turn, at random moments.

    Attributes:
        kills: By process.
    """

    def __init__(self, *, data_dir: Path, count: int, seed: int) -> None:
        self._data_dir = data_dir
        self._count = count
        self._choice = random.Random(seed)
        self.kills: Counter[str] = Counter()

    @property
    def share(self) -> float:
        """How far it is, from 0 to 1."""
        return self.kills.total() / self._count if self._count else 1.0

    def run(self) -> None:
        """Kill until all kills are done."""
        while self.kills.total() < self._count:
            time.sleep(self._choice.uniform(0, _LONGEST_PAUSE_S))
            alive = children_of(self._data_dir)
            if not alive:
                continue
            # Whoever was killed least, so that a process that is slow to come back isn't spared.
            fewest = min(self.kills[name] for name in alive)
            name = self._choice.choice(sorted(name for name in alive if self.kills[name] == fewest))
            with contextlib.suppress(ProcessLookupError):
                os.kill(alive[name], signal.SIGKILL)
                self.kills[name] += 1


def run(data_dir: Path, *, documents: int, kills: int, seed: int) -> Run:
    """Run a storm, or a calm with no kills.

    Args:
        data_dir: Folder of the node, empty.
        documents: How many.
        kills: How many, spread over the documents.
        seed: Of both.

    Returns:
        What it came to.
    """
    with up(data_dir, "--apart"):
        endpoints = Endpoints.read(data_dir)
        driver = Driver(address=endpoints.listen, crate=CRATE)
        driver.create()
        killer = Killer(data_dir=data_dir, count=kills, seed=seed)
        began = time.monotonic()
        thread = threading.Thread(target=killer.run, daemon=True)
        thread.start()

        def hold_back(number: int) -> None:
            while killer.share < number / documents:
                time.sleep(_LOOK_S)

        driver.carry_out(histories(documents, seed), senders=_SENDERS, before=hold_back)
        thread.join()
        stuck = not driver.settle(_SETTLE_S)
        seconds = time.monotonic() - began
        return Run(read(endpoints, driver, CRATE), killer.kills, driver.repeated, seconds, stuck)
