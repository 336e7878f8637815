"""What proposition needs from the outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.proposition.domain.evaluation import Evaluation, PackAt, Revision, Source
from services.proposition.domain.prompts import Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a model answered.

    Attributes:
        text: As it wrote it.
        truncated: Whether it ended at the limit of output tokens.
        request_id: As the provider tells it; may be empty.
        model_id: As the provider tells it; may be empty.
    """

    text: str
    truncated: bool = False
    request_id: str = ""
    model_id: str = ""


class Model(Protocol):
    """A model that answers messages."""

    @property
    def calls_at_once(self) -> int:
        """Calls that are worth running side by side."""

    async def complete(self, messages: Sequence[Message], schema: Schema) -> Completion:
        """Ask once; every call is a context of its own.

        Args:
            messages: All that the model is told.
            schema: Form that the answer should have; nothing promises that it has.

        Returns:
            The answer.

        Raises:
            ProviderRefused: When the provider will never answer this.
            ProviderAway: When it doesn't answer now.
            Rejected: When the provider can't be asked as it is configured; nothing was sent.
            Unavailable: When its credential can't be read; nothing was sent.
        """

    async def close(self) -> None:
        """Give back connections."""


class Evaluations(Protocol):
    """Chunks, and what was found out about them."""

    async def sources(self, revision: Revision, chunks: PackAt, count: int) -> tuple[Source, ...]:
        """Read the chunks of a revision.

        Args:
            revision: Which.
            chunks: Where they lie.
            count: How many there must be.

        Returns:
            The chunks in order.

        Raises:
            NotFound: When the pack is gone.
            Corrupt: When it isn't what was written, or the chunks don't add up.
            Unavailable: When the store doesn't answer.
        """

    async def write(self, revision: Revision, evaluations: Sequence[Evaluation]) -> PackAt:
        """Store the evaluations of a whole revision.

        Raises:
            Unavailable: When the store doesn't answer.
        """

    async def read(self, revision: Revision, pack_id: bytes) -> tuple[Evaluation, ...]:
        """Read the evaluations of a revision.

        Raises:
            NotFound: When the pack is gone.
            Corrupt: When it isn't what was written.
            Unavailable: When the store doesn't answer.
        """

    async def keep(self, revision: Revision, evaluation: Evaluation) -> None:
        """Store one evaluation of a revision that isn't finished, so that a crash doesn't cost it.

        Raises:
            Unavailable: When the store doesn't answer.
        """

    async def kept(self, revision: Revision) -> tuple[Evaluation, ...]:
        """What was kept of a revision by an attempt that was interrupted; damage is left out.

        Raises:
            Unavailable: When the store doesn't answer.
        """

    async def settle(self, revision: Revision) -> None:
        """Delete what was kept of a revision that is finished; none there is fine."""

    async def remove(self, revision: Revision, pack_id: bytes) -> None:
        """Delete one pack that no event names; none there is fine."""

    async def erase(self, revision: Revision) -> None:
        """Delete everything of one revision; none there is fine."""
