"""How far a long task is: told over core NATS, kept in memory, gone after a restart until it is told again.

No event: progress follows from nothing but the clock, and nobody decides anything by it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from services import topology
from services.kernel import envelope, tasks
from services.kernel.bus import Bus

_log = logging.getLogger("affidavit.progress")
_EVERY_S = 0.5
# Told again although nothing moved, for those who have started meanwhile.
_AGAIN_S = 5.0
_KEPT = 10_000
_MAX_BYTES = 4_096


@dataclass(slots=True)
class Progress:
    """A task that is under way.

    Attributes:
        aggregate: Opaque id of the thing that it works on.
        task: Which task on that thing, as its reader knows it, such as revision and settings digest.
        done: Units of work that are done.
    """

    aggregate: str
    task: str
    done: int = 0


@contextlib.asynccontextmanager
async def telling(bus: Bus, crate: str, progress: Progress) -> AsyncIterator[None]:
    """Tell a task's progress twice a second while a block runs.

    Args:
        bus: Of the role that works.
        crate: Crate.
        progress: Changed by the block as it goes.
    """
    envelope.check_tokens(crate, bus.role, progress.aggregate)
    subject = f"{topology.PROGRESS_SUBJECT}.{crate}.{bus.role}.{progress.aggregate}"
    teller = asyncio.create_task(_tell(bus, subject, progress), name="progress")
    try:
        yield
    finally:
        await tasks.cancel([teller])


async def _tell(bus: Bus, subject: str, progress: Progress) -> None:
    told, quiet_s = -1, 0.0
    while True:
        if progress.done != told or quiet_s >= _AGAIN_S:
            told, quiet_s = progress.done, 0.0
            with contextlib.suppress(NatsError, OSError):  # told again soon
                await bus.nats.publish(subject, json.dumps({"task": progress.task, "done": told}).encode())
        await asyncio.sleep(_EVERY_S)
        quiet_s += _EVERY_S


@dataclass(slots=True)
class Listener:
    """Hears what the processes of one role tell.

    Attributes:
        role: Role that is listened to.
    """

    role: str
    _heard: OrderedDict[tuple[str, str], Progress] = field(default_factory=OrderedDict)

    def of(self, crate: str) -> Mapping[str, Progress]:
        """The last that was heard of a crate's tasks, by aggregate."""
        return {aggregate: heard for (known, aggregate), heard in self._heard.items() if known == crate}

    async def run(self, bus: Bus) -> None:
        """Listen until cancelled.

        Args:
            bus: Any role's.
        """
        subscription = await bus.nats.subscribe(f"{topology.PROGRESS_SUBJECT}.*.{self.role}.*")
        try:
            async for message in subscription.messages:
                self._hear(message)
        finally:
            with contextlib.suppress(NatsError, OSError):  # the connection was closed before
                await subscription.unsubscribe()

    def _hear(self, message: Msg) -> None:
        crate, _, aggregate = message.subject.rsplit(".", 3)[1:]
        try:
            told = json.loads(message.data[:_MAX_BYTES])
            heard = Progress(aggregate, str(told["task"]), int(told["done"]))
        except (ValueError, TypeError, KeyError) as error:
            _log.warning("progress on %s can't be read (%s)", message.subject, type(error).__name__)
            return
        self._heard.pop((crate, aggregate), None)
        self._heard[crate, aggregate] = heard
        if len(self._heard) > _KEPT:
            self._heard.popitem(last=False)
