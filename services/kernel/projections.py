"""Projections: tables and lanes that follow a stream in strict order.

A projection's own position, stored in the transaction of its rows, is the only truth: it reads from there through a
consumer without acknowledgements that is made anew whenever anything goes wrong. Acknowledgements that a crash loses,
consumers that are gone and configuration drift can't matter to it.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from nats.errors import Error as NatsError
from nats.js import JetStreamContext, api

from services import topology
from services.kernel import tasks, telemetry
from services.kernel.bus import Bus, LogReader, decode_message
from services.kernel.envelope import Event, Poison
from services.kernel.errors import Settlement, outcome
from services.kernel.failures import Failures, LoggedFailures
from services.kernel.steps import MAX_ATTEMPTS, filters

_log = logging.getLogger("affidavit.projections")
BATCH = 500
_IDLE_S = 2.0
_RETRY_S = (0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A follower of one stream.

    Attributes:
        name: Unique within the role.
        events: Names of the events that it wants.
        stream: KNOWLEDGE or SIGNALS.
        apply: Applies events in log order and stores the last one's position with its rows, in one transaction.
        position: The position stored last.
    """

    name: str
    events: tuple[str, ...]
    apply: Callable[[Sequence[Event]], Awaitable[None]]
    position: Callable[[], Awaitable[int]]
    stream: str = topology.KNOWLEDGE


@dataclass(slots=True)
class Progress:
    """How far a projection is, for readiness and metrics."""

    applied: int = 0
    caught_up: bool = False
    problem: str = "starting"
    waiters: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)


class Applier:
    """Hands batches to a projection; what fails as a whole is tried event by event, where the outcome decides."""

    def __init__(self, *, projection: Projection, role: str, failures: Failures) -> None:
        self._projection = projection
        self._role = role
        self._failures = failures

    async def apply(self, batch: Sequence[Event | Poison]) -> None:
        """Apply a batch.

        Args:
            batch: In log order, with what can't be read.

        Raises:
            Exception: What keeps an event from being applied now; a Failure that is final is recorded instead.
        """
        events = []
        for event in batch:
            if isinstance(event, Poison):
                await self._failures.record_poison(event)
            else:
                events.append(event)
        if not events:
            return
        try:
            await self._projection.apply(events)
        except Exception:  # noqa: BLE001  (retried one by one, where the outcome decides)
            if len(events) > 1:
                _log.exception("projection %s retries a batch one by one", self._projection.name)
                for event in events:
                    await self._apply_one(event)
                return
            await self._apply_one(events[0])

    async def _apply_one(self, event: Event) -> None:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                with telemetry.handling(self._role, event):
                    await self._projection.apply([event])
            except Exception as error:
                final = outcome(error).settlement is Settlement.GIVE_UP
                telemetry.failed(self._role, event, error, final=final)
                if final:
                    await self._failures.record(event, error)
                    return
                if attempt == MAX_ATTEMPTS:
                    # Skipping would lose a fact because a server is away: start over and keep order instead.
                    raise
                await asyncio.sleep(_RETRY_S[min(attempt - 1, len(_RETRY_S) - 1)])
            else:
                return


class ProjectionRunner:
    """Runs one projection until it is stopped.

    Attributes:
        progress: How far it is.
    """

    def __init__(self, *, bus: Bus, projection: Projection) -> None:
        self._bus = bus
        self._projection = projection
        self._applier = Applier(projection=projection, role=bus.role, failures=LoggedFailures(bus=bus))
        self._task: asyncio.Task[None] | None = None
        self.progress = Progress()

    @property
    def name(self) -> str:
        """Name of the projection."""
        return self._projection.name

    async def start(self) -> None:
        """Read the stored position and start to follow.

        Raises:
            Corrupt: When the stored position belongs to another log.
        """
        self.progress.applied = await self._projection.position()
        self._task = asyncio.create_task(self._follow(), name=f"projection-{self._projection.name}")

    async def stop(self) -> None:
        """Stop after the batch in hand, or in the middle of it: both are safe."""
        if self._task is not None:
            await tasks.cancel([self._task])

    async def wait_for(self, position: int, timeout_s: float) -> bool:
        """Wait until a position is applied.

        Args:
            position: Stream sequence of an event that this projection wants.
            timeout_s: Seconds.

        Returns:
            False when the time ran out.
        """
        if self.progress.applied >= position:
            return True
        reached = asyncio.get_running_loop().create_future()
        # A heap by position, so that a batch wakes those whose turn it is and not everybody who waits.
        heapq.heappush(self.progress.waiters, (position, id(reached), reached))
        try:
            async with asyncio.timeout(timeout_s):
                await reached
        except TimeoutError:
            return False
        return True

    async def _follow(self) -> None:
        attempt = 0
        while True:
            try:
                await self._read(await self._subscribe())
                attempt = 0
            except (NatsError, OSError) as error:
                self.progress.problem = f"the log doesn't answer ({type(error).__name__})"
            except Exception as error:  # noqa: BLE001  (a projection never dies: it says so and starts over)
                self.progress.problem = f"{type(error).__name__}: not applied beyond {self.progress.applied}"
                _log.exception("projection %s stopped at %s", self._projection.name, self.progress.applied)
            await asyncio.sleep(_RETRY_S[min(attempt, len(_RETRY_S) - 1)])
            attempt += 1

    async def _subscribe(self) -> JetStreamContext.PullSubscription:
        self.progress.applied = await self._projection.position()
        info = await add_consumer(self._bus, self._projection, after=self.progress.applied)
        if not info.num_pending:
            self._note(self.progress.applied, caught_up=True)
        return await self._bus.js.pull_subscribe_bind(consumer=info.name, stream=self._projection.stream)

    async def _read(self, subscription: JetStreamContext.PullSubscription) -> None:
        try:
            while True:
                try:
                    messages = await subscription.fetch(BATCH, timeout=_IDLE_S)
                except TimeoutError:
                    # Also proves that the consumer is still there: a lost one raises another error.
                    await subscription.consumer_info()
                    self._note(self.progress.applied, caught_up=True)
                    continue
                if not messages:
                    # A fetch that only met status messages.
                    continue
                pending = messages[-1].metadata.num_pending
                await self._applier.apply([decode_message(message) for message in messages])
                self._note(messages[-1].metadata.sequence.stream, caught_up=not pending)
        finally:
            await _forget(subscription)

    def _note(self, position: int, *, caught_up: bool) -> None:
        progress = self.progress
        progress.applied = max(progress.applied, position)
        progress.caught_up = caught_up
        progress.problem = ""
        while progress.waiters and progress.waiters[0][0] <= progress.applied:
            reached = heapq.heappop(progress.waiters)[-1]
            if not reached.done():
                reached.set_result(None)


async def add_consumer(log: LogReader, projection: Projection, *, after: int) -> api.ConsumerInfo:
    """Make a consumer without acknowledgements that gives a projection its events in strict order.

    Args:
        log: Log.
        projection: Who reads.
        after: Stream position to begin after.

    Returns:
        What the server says of it.
    """
    config = api.ConsumerConfig(
        filter_subjects=filters(projection.events, projection.stream),
        deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=api.AckPolicy.NONE,
        inactive_threshold=60,
        mem_storage=True,
        num_replicas=1,
    )
    return await log.js.add_consumer(projection.stream, config)


async def _forget(subscription: JetStreamContext.PullSubscription) -> None:
    try:
        await subscription.unsubscribe()
    except (NatsError, OSError):
        _log.debug("the subscription was gone already")
