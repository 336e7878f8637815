"""The record of answers: signals in the log."""

from __future__ import annotations

from services.kernel.bus import Bus
from services.query.codec import outgoing
from services.query.domain.claims import AnswerFact


class LogAnswers:
    """See ports.Answers."""

    def __init__(self, *, bus: Bus) -> None:
        self._bus = bus

    async def record(self, crate_id: str, fact: AnswerFact) -> None:
        """See Answers."""
        message = outgoing.answer_issued(fact)
        await self._bus.append(crate=crate_id, aggregate=fact.answer_id, message=message, key=fact.answer_id)
