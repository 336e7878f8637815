"""What each crate's chunks are evaluated for, and by which model, as the log has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.kernel.bus import LogReader
from services.kernel.errors import NotAvailableYet, NotFound, Rejected, Unavailable
from services.proposition import codec
from services.proposition.codec import Configured
from services.proposition.domain.evaluation import Policy
from services.proposition.domain.providers import Generation, Provider
from services.proposition.ports import Model

GENERATIONS = "generations"
CRATE = "crate"
# Spares a busy ingest a question to the log for each document.
_FRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class Bound:
    """What evaluates a crate's chunks.

    Attributes:
        provider: As the crate's settings name it.
        policy: What a failed evaluation means.
        model: Behind the provider.
    """

    provider: Provider
    policy: Policy
    model: Model


class CrateBindings:
    """Finds generation and model of a crate; each crate has a model of its own, so that no keys are mixed up."""

    def __init__(self, *, log: LogReader, connect: Callable[[Provider], Model], clock: Callable[[], float]) -> None:
        self._log = log
        self._connect = connect
        self._clock = clock
        self._generations: dict[str, tuple[float, Generation]] = {}
        self._models: dict[str, tuple[Provider, Model]] = {}

    async def generation(self, crate_id: str) -> Generation:
        """A crate's generation, as the log had it within the last second.

        Args:
            crate_id: Crate.

        Returns:
            The generation.

        Raises:
            Unavailable: When the crate has none yet, or the log doesn't answer.
        """
        until, held = self._generations.get(crate_id, (0.0, None))
        if held is not None and self._clock() < until:
            return held
        event = await self._log.last_named(
            crate=crate_id, service="index", aggregate=GENERATIONS, name="GenerationStarted"
        )
        if event is None:
            raise Unavailable(f"crate {crate_id} has no generation yet: the index starts one, wait a moment")
        found = codec.generation(event.message)
        self._generations[crate_id] = (self._clock() + _FRESH_S, found)
        return found

    async def bound(self, crate_id: str) -> Bound:
        """The model that a crate's settings name.

        Args:
            crate_id: Crate.

        Returns:
            It, and what a failure means.

        Raises:
            NotFound: When there is no such crate.
            Rejected: When it has no enabled answer provider.
            NotAvailableYet: When that is of a kind that isn't served.
            Unavailable: When the log doesn't answer.
        """
        event = await self._log.last_named(crate=crate_id, service="ingest", aggregate=CRATE, name="CrateConfigured")
        if event is None:
            raise NotFound(f"crate {crate_id!r} does not exist: create it with `affidavit crate create`")
        found = codec.configured(event.message)
        provider = _provider(crate_id, found)
        return Bound(provider, found.policy, await self._model(crate_id, provider))

    async def close(self) -> None:
        """Close all models."""
        for _, model in self._models.values():
            await model.close()

    async def _model(self, crate_id: str, provider: Provider) -> Model:
        held = self._models.get(crate_id)
        if held is not None and held[0] == provider:
            return held[1]
        model = self._connect(provider)
        self._models[crate_id] = (provider, model)
        if held is not None:
            # What still runs on the old connections fails and is tried again on the new ones.
            await held[1].close()
        return model


def _provider(crate_id: str, found: Configured) -> Provider:
    if not found.served:
        raise NotAvailableYet(
            f"the answer provider of crate {crate_id} is of a kind that is not available yet: use openai-compatible"
        )
    if found.provider is None:
        raise Rejected(
            f"crate {crate_id} has no enabled answer provider, which writes and grades its propositions: enable one "
            "with `affidavit crate set`, then retry"
        )
    return found.provider
