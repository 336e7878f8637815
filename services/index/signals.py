"""Sends the signals that the tables hold."""

from __future__ import annotations

import asyncio

from services.index.codec import facts as codec
from services.index.codec.living import state_changed
from services.index.domain.content import Signal, StateSignal
from services.index.ports import Outbox
from services.kernel.bus import Bus

_AT_ONCE = 256


class SignalSender:
    """Sends what the tables say is still to be sent. A crash sends a signal again, under its old key."""

    def __init__(self, *, bus: Bus, outbox: Outbox) -> None:
        self._bus = bus
        self._outbox = outbox
        self._waiting = asyncio.Event()

    def wake(self) -> None:
        """Say that signals were noted."""
        self._waiting.set()

    async def run(self) -> None:
        """Send until cancelled.

        Raises:
            Unavailable: When log or tables don't answer; nothing is lost, call it again.
        """
        while True:
            self._waiting.clear()
            found = await self._outbox.signals(_AT_ONCE)
            states = await self._outbox.state_signals(_AT_ONCE)
            if not found and not states:
                await self._waiting.wait()
                continue
            await asyncio.gather(*map(self._send, found), *map(self._send_state, states))
            if found:
                await self._outbox.forget([signal.number for signal in found])
            if states:
                await self._outbox.forget_states([signal.number for signal in states])

    async def _send(self, signal: Signal) -> None:
        await self._bus.append(
            crate=signal.crate_id,
            aggregate=signal.document_id,
            message=codec.revision_indexed(signal),
            key=":".join(
                (
                    signal.document_id,
                    str(signal.revision),
                    "indexed",
                    str(signal.generation),
                    signal.settings_digest,
                    str(signal.position),
                )
            ),
        )

    async def _send_state(self, signal: StateSignal) -> None:
        change = signal.change
        await self._bus.append(
            crate=signal.crate_id,
            aggregate=change.document_id,
            message=state_changed(change),
            key=f"{change.document_id}:{change.revision}:state:{change.after}:{change.position}",
        )
