"""The model of each crate, as the log has it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from services.embedder import codec
from services.embedder.domain.models import Generation, Provider, ProviderKind, mismatch
from services.embedder.ports import EmbeddingModel
from services.embedder.scheduler import BatchScheduler
from services.kernel.bus import Bus
from services.kernel.errors import NotAvailableYet, NotFound, Rejected, Unavailable

_log = logging.getLogger("affidavit.embedder")
GENERATIONS = "generations"
CRATE = "crate"
# Spares a busy ingest two questions to the log for each document.
_FRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A crate's model and what it embeds for.

    Attributes:
        generation: That the vectors are for.
        scheduler: Of the model.
    """

    generation: Generation
    scheduler: BatchScheduler


class CrateModels:
    """Finds the model of a crate.

    One scheduler serves the local model for all crates, so that they share it fairly; a provider elsewhere has one per
    crate.
    """

    def __init__(
        self,
        *,
        bus: Bus,
        local: EmbeddingModel,
        remote: Callable[[Provider], EmbeddingModel],
        clock: Callable[[], float],
    ) -> None:
        self._bus = bus
        self._remote = remote
        self._clock = clock
        self._local = BatchScheduler(model=local)
        self._by_crate: dict[str, tuple[Provider, BatchScheduler]] = {}
        self._drifts: set[tuple[str, int, str]] = set()
        self._bound: dict[str, tuple[float, BoundModel]] = {}

    @property
    def local(self) -> BatchScheduler:
        """Scheduler of the local model."""
        return self._local

    async def configured(self, crate_id: str) -> BatchScheduler:
        """The model that a crate's settings name, whether or not a generation stands on it already.

        Args:
            crate_id: Crate.

        Returns:
            Its scheduler.

        Raises:
            NotFound: When there is no such crate.
            Rejected: When it has no embedding provider of a kind that is served.
            Unavailable: When the log doesn't answer.
        """
        event = await self._bus.last_named(crate=crate_id, service="ingest", aggregate=CRATE, name="CrateConfigured")
        if event is None:
            raise NotFound(f"crate {crate_id!r} does not exist: create it with `affidavit crate create`")
        provider = codec.embedding_provider(event.message)
        if provider is None:
            raise Rejected(f"crate {crate_id} has no enabled embedding provider: enable one with `affidavit crate set`")
        if provider.kind is ProviderKind.LOCAL:
            return self._local
        if provider.kind is ProviderKind.OTHER:
            raise NotAvailableYet(
                f"the embedding provider of crate {crate_id} is of a kind that is not available yet: "
                "use local-onnx or openai-compatible"
            )
        return await self._of_provider(crate_id, provider)

    async def bound(self, crate_id: str) -> BoundModel:
        """The model of a crate's generation, as the log had it within the last second.

        Args:
            crate_id: Crate.

        Returns:
            It, and the generation.

        Raises:
            Unavailable: When the crate has no generation yet, or the log doesn't answer.
            NotFound: When there is no such crate.
            Rejected: When the model that is configured isn't the one that the generation is built on.
        """
        until, held = self._bound.get(crate_id, (0.0, None))
        if held is not None and self._clock() < until:
            return held
        found = await self._look_up(crate_id)
        self._bound[crate_id] = (self._clock() + _FRESH_S, found)
        return found

    async def close(self) -> None:
        """Close all models."""
        for scheduler in (self._local, *(scheduler for _, scheduler in self._by_crate.values())):
            await scheduler.model.close()

    async def _look_up(self, crate_id: str) -> BoundModel:
        event = await self._bus.last_named(
            crate=crate_id, service="index", aggregate=GENERATIONS, name="GenerationStarted"
        )
        if event is None:
            raise Unavailable(f"crate {crate_id} has no generation yet: the index starts one, wait a moment")
        generation = codec.generation(event.message)
        scheduler = await self.configured(crate_id)
        model = scheduler.model
        problem = mismatch(generation, model.model_id, model.dimension)
        if problem:
            raise Rejected(f"crate {crate_id}: {problem}; set the former model again, or ingest into another crate")
        self._note_drift(crate_id, generation, model.fingerprint)
        return BoundModel(generation, scheduler)

    def _note_drift(self, crate_id: str, generation: Generation, fingerprint: str) -> None:
        """Say once that the same model runs on other software than before: its last digits may differ."""
        drift = (crate_id, generation.number, fingerprint)
        if generation.fingerprint in ("", fingerprint) or drift in self._drifts:
            return
        self._drifts.add(drift)
        _log.warning(
            "generation %s of crate %s was started with model fingerprint %s, now it is %s: "
            "new vectors may differ from old ones in their last digits",
            generation.number,
            crate_id,
            generation.fingerprint,
            fingerprint,
        )

    async def _of_provider(self, crate_id: str, provider: Provider) -> BatchScheduler:
        held = self._by_crate.get(crate_id)
        if held is not None and held[0] == provider:
            return held[1]
        scheduler = BatchScheduler(model=self._remote(provider))
        self._by_crate[crate_id] = (provider, scheduler)
        if held is not None:
            # What still runs on the old connections fails as unavailable and is tried again on the new ones.
            await held[1].model.close()
        return scheduler
