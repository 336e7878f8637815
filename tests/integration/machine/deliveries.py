"""The log of one crate, and consumers that the test plays: it says which event comes when and how often."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from nats.aio.msg import Msg

from services import topology
from services.kernel.bus import Bus, decode_message
from services.kernel.envelope import Event, subject_token
from services.kernel.steps import Step, _Pool


@dataclass(frozen=True, slots=True)
class Stored:
    """An event as the log holds it."""

    subject: str
    headers: dict[str, str]
    body: bytes
    position: int

    @property
    def name(self) -> str:
        return self.subject.rsplit(".", 1)[-1]

    def delivered(self, times: int) -> Delivery:
        """A delivery of it."""
        reply = f"$JS.ACK.{topology.KNOWLEDGE}.played.{times}.{self.position}.{self.position}.0.0"
        return Delivery(None, self.subject, reply, self.body, dict(self.headers))  # type: ignore[arg-type]  # no client

    def event(self, times: int = 1) -> Event:
        """What it says."""
        found = decode_message(self.delivered(times))
        assert isinstance(found, Event)
        return found


class Delivery(Msg):
    """A delivered message that keeps how it was settled."""

    settled = ""

    async def ack(self) -> None:
        self.settled = "ack"

    async def nak(self, delay: float | None = None) -> None:  # noqa: ARG002  (the test says when it comes again)
        self.settled = "nak"

    async def term(self) -> None:
        self.settled = "term"


class CrateLog:
    """What KNOWLEDGE holds about one crate, in order."""

    def __init__(self, *, bus: Bus, crate: str) -> None:
        self._bus = bus
        self._subject = f"{topology.SUBJECT_ROOTS[topology.KNOWLEDGE]}.{crate}.>"
        self.events: list[Stored] = []
        self.facts: list[Event] = []

    async def read(self, start: int) -> int:
        """Read on from a position or from behind the last event; returns how many were new."""
        after = self.events[-1].position if self.events else start
        known = len(self.events)
        while True:
            ask = {"seq": after + 1, "next_by_subj": self._subject}
            reply = await self._bus.nats.request(
                f"$JS.API.DIRECT.GET.{topology.KNOWLEDGE}", json.dumps(ask).encode(), timeout=10
            )
            headers = dict(reply.headers or {})
            if headers.get("Status") == "404":
                return len(self.events) - known
            after = int(headers["Nats-Sequence"])
            stored = Stored(headers["Nats-Subject"], headers, reply.data, after)
            self.events.append(stored)
            self.facts.append(stored.event())

    def named(self, names: tuple[str, ...]) -> list[Stored]:
        """Events of some kinds."""
        tokens = {subject_token(name) for name in names}
        return [stored for stored in self.events if stored.name in tokens]


class Consumer:
    """A durable consumer of a step: it may give any event that isn't acknowledged, and any other once more."""

    def __init__(self, *, log: CrateLog, names: tuple[str, ...]) -> None:
        self._log = log
        self._names = names
        self._done: set[int] = set()
        self._times: dict[int, int] = {}

    def pending(self) -> list[Stored]:
        """Events that weren't acknowledged yet, oldest first."""
        return [stored for stored in self._log.named(self._names) if stored.position not in self._done]

    def past(self) -> list[Stored]:
        """Events that were acknowledged."""
        return [stored for stored in self._log.named(self._names) if stored.position in self._done]

    async def deliver(self, stored: Stored, *, bus: Bus, step: Step, anew: bool = False) -> str:
        """Have a step handle an event, with the kernel's own settlement.

        Args:
            stored: The event.
            bus: Of the step's role.
            step: The step.
            anew: The consumer was lost and made again, so that it counts from one.

        Returns:
            How it was settled.
        """
        times = 1 if anew else self._times.get(stored.position, 0) + 1
        self._times[stored.position] = times
        delivery = stored.delivered(times)
        await _Pool(bus=bus, step=step, crate=stored.event().crate, running=asyncio.Semaphore())._run(delivery)
        if delivery.settled in ("ack", "term"):
            self._done.add(stored.position)
        return delivery.settled
