"""Steps: idempotent handlers that turn an event into the next one, fed by pull consumers, one for each crate.

A crate that is slow, or that has a long queue, holds up itself only: its events wait in its own consumer, and handlers
are counted by crate. At least once, concurrent, one at a time per aggregate. A failure that may pass is redelivered
with growing delays; one that can't, or that lasts too long, becomes TaskFailed. Nothing loops and nothing vanishes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError

from services import topology
from services.kernel import envelope, retries, streams, tasks, telemetry
from services.kernel.bus import Bus, decode_message
from services.kernel.crates import Crates
from services.kernel.envelope import Event, Poison
from services.kernel.errors import Settlement, outcome
from services.kernel.failures import LoggedFailures
from services.kernel.ids import utc_now
from services.kernel.turns import KeyedTurns

_log = logging.getLogger("affidavit.steps")
ACK_WAIT_S = 30.0
MAX_ATTEMPTS = 12
# More than we ever use: the server must never drop a message that we still mean to handle.
_SERVER_MAX_DELIVER = 1000
_HELD_PER_HANDLER = 4
_DELAYS_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_FETCH_TIMEOUT_S = 2.0
# A crate in which nothing happens asks less often. What arrives is delivered at once all the same: only a consumer that
# was lost, or a server that was started again, is noticed so much later.
_IDLE_TIMEOUT_S = 8.0
# Handlers of all crates together, in multiples of what one crate may have: bounds memory, not turns.
_CRATES_AT_ONCE = 16
_RESUBSCRIBE_S = 0.5
_BODY_LEFT_OUT = "Nats-Msg-Size"
# A consumer that always has something to give is looked at all the same.
_LOOK_S = 30.0
# Half of it: the clocks of broker and role may differ.
_REMEMBERED = timedelta(seconds=streams.DEDUP_WINDOW_S / 2)
_UNKNOWN = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A consumer of facts.

    Attributes:
        name: Name of its durable consumer, unique within the role.
        events: Names of KNOWLEDGE events.
        handle: Handles one event; returning acknowledges it.
        concurrency: Events of one crate in work at once in this process.
    """

    name: str
    events: tuple[str, ...]
    handle: Callable[[Event], Awaitable[None]]
    concurrency: int = 8


def filters(events: tuple[str, ...], stream: str = topology.KNOWLEDGE, crate: str = "*") -> list[str]:
    """Subject filters of a set of events within one stream, of one crate or of all."""
    rows = [row for row in topology.EVENTS if row.name in events and row.stream == stream]
    if topology.TASK_FAILED in events:
        failed = (topology.task_failed(service) for service in topology.ROLE_NAMES)
        rows += [row for row in failed if row.stream == stream]
    return sorted(
        f"{topology.SUBJECT_ROOTS[row.stream]}.{crate}.{row.service}.*.{envelope.subject_token(row.name)}"
        for row in rows
    )


def consumer_config(role: str, step: Step, crate: str) -> api.ConsumerConfig:
    """The one configuration of a step's durable consumer for a crate, applied at start against drift."""
    return api.ConsumerConfig(
        durable_name=f"{role}-{step.name}-{crate}",
        filter_subjects=filters((*step.events, topology.TASK_RETRIED), crate=crate),
        deliver_policy=api.DeliverPolicy.ALL,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT_S,
        max_deliver=_SERVER_MAX_DELIVER,
        max_ack_pending=max(64, step.concurrency * _HELD_PER_HANDLER),
    )


class StepRunner:
    """Runs the steps of one role, for every crate that the log knows."""

    def __init__(self, *, bus: Bus, steps: tuple[Step, ...]) -> None:
        self._bus = bus
        self._steps = steps
        self._running = {step.name: asyncio.Semaphore(step.concurrency * _CRATES_AT_ONCE) for step in steps}
        self._pools: dict[str, list[_Pool]] = {}
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start to read, crate by crate."""
        crates = Crates(bus=self._bus, found=self._serve)
        self._watcher = asyncio.create_task(crates.follow(), name=f"{self._bus.role}-crates")

    async def stop(self, grace_s: float) -> None:
        """Stop reading, let work in hand finish, give the rest back.

        Args:
            grace_s: Seconds to wait for work in hand.
        """
        if self._watcher is not None:
            await tasks.cancel([self._watcher])
        await asyncio.gather(*(pool.drain(grace_s) for pools in self._pools.values() for pool in pools))

    def _serve(self, crate: str) -> None:
        if crate in self._pools:
            return
        self._pools[crate] = [
            _Pool(bus=self._bus, step=step, crate=crate, running=self._running[step.name]) for step in self._steps
        ]
        for pool in self._pools[crate]:
            pool.start()


# What passed a consumer by while one of these was another, it never gives again.
_DECIDES_WHAT_COMES = (
    "filter_subjects",
    "max_deliver",
    "ack_policy",
    "deliver_policy",
    "opt_start_seq",
    "headers_only",
)
_OURS = (*_DECIDES_WHAT_COMES, "ack_wait", "max_ack_pending", "backoff", "rate_limit_bps", "inactive_threshold")


def _drift(found: api.ConsumerConfig, wanted: api.ConsumerConfig) -> tuple[str, ...]:
    """Settings of ours that somebody changed; the server leaves out what is zero."""
    changed = [name for name in _OURS if (getattr(found, name) or None) != (getattr(wanted, name) or None)]
    # Before several filters were possible a single one stood elsewhere.
    if found.filter_subject and "filter_subjects" not in changed:
        changed.append("filter_subjects")
    return tuple(changed)


async def _ensure_consumer(js: JetStreamContext, config: api.ConsumerConfig) -> datetime:
    """Make a consumer, or make it ours again; returns when it was made."""
    name = str(config.durable_name)
    try:
        found = await js.consumer_info(topology.KNOWLEDGE, name)
    except NotFoundError:
        found = await js.add_consumer(topology.KNOWLEDGE, config)
    drift = _drift(found.config, config)
    if drift:
        _log.warning("consumer %s was changed (%s); it is changed back", name, ", ".join(drift))
    if set(drift) & set(_DECIDES_WHAT_COMES):
        # From the start of the log: handlers pass over what stands, and nothing is left out.
        await js.delete_consumer(topology.KNOWLEDGE, name)
    if drift:
        found = await js.add_consumer(topology.KNOWLEDGE, config)
    made: datetime = found.created
    return made


class _Pool:
    """Handlers of one step and crate: some run, as many again and more wait, and heartbeats go out for all."""

    def __init__(self, *, bus: Bus, step: Step, crate: str, running: asyncio.Semaphore) -> None:
        self._bus = bus
        self._failures = LoggedFailures(bus=bus)
        self._step = step
        self._config = consumer_config(bus.role, step, crate)
        self._running = asyncio.Semaphore(step.concurrency)
        self._running_in_all = running
        self._capacity = step.concurrency * _HELD_PER_HANDLER
        self._room = asyncio.Event()
        self._draining = False
        # When the consumer was made, by the broker's clock: what is older may have been handled by one before it.
        self._made = _UNKNOWN
        self._looked = 0.0
        self._turns = KeyedTurns()
        self._held: dict[int, Msg] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._loops = [asyncio.create_task(self._read()), asyncio.create_task(self._beat())]

    async def drain(self, grace_s: float) -> None:
        await tasks.cancel(self._loops)
        self._draining = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        await tasks.cancel(self._tasks)

    async def _read(self) -> None:
        while True:
            try:
                self._made = await _ensure_consumer(self._bus.js, self._config)
                subscription = await self._bus.js.pull_subscribe_bind(
                    consumer=str(self._config.durable_name), stream=topology.KNOWLEDGE
                )
                await self._fetch(subscription)
            except (NatsError, OSError) as error:
                # The server is away or the consumer was removed: both are mended by starting over.
                _log.warning("step %s lost the log (%s)", self._step.name, type(error).__name__)
                await asyncio.sleep(_RESUBSCRIBE_S)
            except Exception:  # noqa: BLE001  (a step that stops reading unseen would stop its part of the service)
                _log.exception("step %s failed while reading; it starts over", self._step.name)
                await asyncio.sleep(_RESUBSCRIBE_S)

    async def _fetch(self, subscription: JetStreamContext.PullSubscription) -> None:
        timeout_s = _FETCH_TIMEOUT_S
        while True:
            if _now() - self._looked > _LOOK_S:
                await self._look(subscription)
            # Half of them at once: a fetch costs the same for one message as for many.
            while len(self._held) > self._capacity // 2:
                self._room.clear()
                await self._room.wait()
            try:
                messages = await subscription.fetch(self._capacity - len(self._held), timeout=timeout_s)
            except TimeoutError:
                # Also proves that the consumer is still there: a lost one raises another error.
                await self._look(subscription)
                timeout_s = min(2 * timeout_s, _IDLE_TIMEOUT_S)
                continue
            if not messages:
                # A status message, such as that the consumer was deleted: another one may be there by now.
                await self._look(subscription)
            timeout_s = _FETCH_TIMEOUT_S
            for message in messages:
                self._held[id(message)] = message
                task = asyncio.create_task(self._run(message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _look(self, subscription: JetStreamContext.PullSubscription) -> None:
        """Compare the consumer with what it should be: somebody may have changed it, or made another one."""
        self._looked = _now()
        found = await subscription.consumer_info()
        self._made = found.created
        if _drift(found.config, self._config):
            self._made = await _ensure_consumer(self._bus.js, self._config)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(ACK_WAIT_S / 3)
            try:
                for message in tuple(self._held.values()):
                    await message.in_progress()
            except NatsError as error:
                _log.warning("step %s could not send heartbeats (%s)", self._step.name, type(error).__name__)

    async def _run(self, message: Msg) -> None:
        try:
            if _BODY_LEFT_OUT in (message.headers or {}):
                # Somebody changed the consumer: it comes whole once that is changed back.
                self._looked = 0.0
                await message.nak(delay=_FETCH_TIMEOUT_S)
                return
            event = decode_message(message)
            if isinstance(event, Poison):
                await self._failures.record_poison(event)
                await message.term()
                return
            if self._old(message):
                event = replace(event, old=True)
            async with self._running, self._running_in_all:
                if self._draining:
                    await message.nak()
                    return
                await self._handle(event, message)
        except asyncio.CancelledError:
            await message.nak()
            raise
        except Exception:  # noqa: BLE001  (the last edge before the task would die unseen)
            # Only settling itself can fail here (the log is away): the message comes again after ack_wait.
            _log.exception("step %s could not settle position %s", self._step.name, message.metadata.sequence.stream)
        finally:
            self._held.pop(id(message), None)
            self._room.set()

    def _old(self, message: Msg) -> bool:
        stored = message.metadata.timestamp
        return stored < self._made or utc_now() - stored > _REMEMBERED

    async def _handle(self, read: Event, message: Msg) -> None:
        event = read
        try:
            handed = await retries.handed_over(self._bus, self._failures, read)
            if handed is None or handed.name not in self._step.events:
                await message.ack()
                return
            event = handed
            async with self._turns.of(f"{event.crate}/{event.aggregate}"):
                with telemetry.handling(self._bus.role, event):
                    await self._step.handle(event)
            await message.ack()
        except Exception as error:  # noqa: BLE001  (every failure must be settled, whatever it is)
            await self._settle(event, message, error)

    async def _settle(self, event: Event, message: Msg, error: Exception) -> None:
        give_up = outcome(error).settlement is Settlement.GIVE_UP or event.deliveries >= MAX_ATTEMPTS
        telemetry.failed(self._bus.role, event, error, final=give_up)
        if give_up:
            await self._failures.record(event, error)
            await message.term()
            return
        delay = _DELAYS_S[min(event.deliveries, len(_DELAYS_S)) - 1]
        await message.nak(delay=delay)


def _now() -> float:
    return asyncio.get_running_loop().time()
