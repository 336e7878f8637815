"""Commands on crates, their providers and their jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from affidavit.ingest.v1 import ingest_events_pb2 as pb

from services.ingest.codec import facts
from services.ingest.codec.content import SECRET_BYTES
from services.ingest.codec.facts import CRATE_AGGREGATE, OWN_SERVICE
from services.ingest.commands.log import ATTEMPTS, Decided, Journal, contended
from services.ingest.commands.outcomes import outcomes
from services.ingest.domain import chunking, providers, settings
from services.ingest.domain.chunking import ChunkPatch, ChunkSettings
from services.ingest.domain.documents import fact_key
from services.ingest.domain.providers import Provider, ProviderPolicy
from services.ingest.domain.settings import CrateSettings, RetrievalStrategy, SettingsPatch
from services.ingest.domain.values import CrateRow, JobRow
from services.ingest.ports import Sources
from services.kernel.errors import Conflict, NotFound

Change = Callable[[CrateRow], CrateRow]


class Crates:
    """Creates and configures crates and jobs."""

    def __init__(
        self,
        *,
        journal: Journal,
        sources: Sources,
        policy: ProviderPolicy,
        clock: Callable[[], datetime],
        random: Callable[[int], bytes],
    ) -> None:
        """Keep what the commands need.

        Args:
            journal: Log and own tables.
            sources: Packs.
            policy: Which providers are allowed.
            clock: Aware, UTC.
            random: Unguessable bytes, by number.
        """
        self._journal = journal
        self._log = journal.log
        self._sources = sources
        self._policy = policy
        self._clock = clock
        self._random = random

    async def create(self, crate_id: str, patch: SettingsPatch, wanted: tuple[Provider, ...]) -> int:
        """Create a crate.

        Args:
            crate_id: Its id.
            patch: Settings that differ from the defaults.
            wanted: Providers; none means the packaged model.

        Returns:
            Position of its CrateConfigured.

        Raises:
            Rejected: When the id, a setting or a provider can't be used.
            Conflict: When the crate exists.
        """
        with outcomes():
            settings.crate_id(crate_id)
            merged = settings.merge(CrateSettings(), patch)
            checked = providers.check_providers(wanted, self._policy)
            if merged.retrieval_strategy is RetrievalStrategy.PROPOSITION:
                providers.check_propositions(checked)
        taken = Conflict(f"crate {crate_id} exists already: change it with `affidavit crate set`")
        if await self._read_crate(crate_id) is not None:
            raise taken
        secret = await self._sources.write_secret(crate_id, self._random(SECRET_BYTES))
        row = CrateRow(
            crate_id=crate_id,
            revision=1,
            settings=merged,
            providers=checked,
            secret=secret,
            configured_at=self._clock(),
            position=0,
        )
        position = await self._record_crate(row, expected=0)
        if position is None:
            raise taken
        return position

    async def configure(self, crate_id: str, patch: SettingsPatch) -> int:
        """Change settings of a crate.

        Args:
            crate_id: The crate.
            patch: Wanted changes.

        Returns:
            Position of the CrateConfigured that holds now.

        Raises:
            Rejected: When a setting can't be used.
            NotFound: When there is no such crate.
            Conflict: When others keep changing it.
        """
        return await self._change(
            crate_id, lambda row: replace(row, settings=settings.reconfigure(row.settings, patch))
        )

    async def put_provider(self, crate_id: str, wanted: Provider) -> int:
        """Set the provider of a role, see `configure`."""
        policy = self._policy
        return await self._change(
            crate_id,
            lambda row: replace(
                row,
                providers=providers.put_provider(
                    row.providers,
                    wanted,
                    policy,
                    propositions=row.settings.retrieval_strategy is RetrievalStrategy.PROPOSITION,
                ),
            ),
        )

    async def put_job(self, crate_id: str, job_id: str, patch: ChunkPatch) -> tuple[JobRow, tuple[str, ...]]:
        """Create a job or change its chunk settings; documents put later under the job follow them.

        Args:
            crate_id: Crate.
            job_id: Its id.
            patch: Wanted changes of the settings, or of the defaults when the job is new.

        Returns:
            The job, and a notice for each value that was clamped.

        Raises:
            Rejected: When the id or the size can't be used.
            Conflict: When others keep changing it.
        """
        with outcomes():
            settings.job_id(job_id)
        async with self._journal.writing(crate_id, facts.job_aggregate(job_id)):
            return await self._put_job_in_turn(crate_id, job_id, patch)

    async def _put_job_in_turn(self, crate_id: str, job_id: str, patch: ChunkPatch) -> tuple[JobRow, tuple[str, ...]]:
        aggregate = facts.job_aggregate(job_id)
        for _ in range(ATTEMPTS):
            expected = await self._expected(crate_id, aggregate)
            held = await self._read_job(crate_id, aggregate)
            with outcomes():
                wanted, notices = chunking.configure(held.chunking if held else ChunkSettings(), patch)
            if held is not None and held.chunking == wanted:
                await self._journal.read_back(f"job {job_id}", held.position)
                return held, notices
            row = JobRow(
                crate_id=crate_id, job_id=job_id, chunking=wanted, configured_at=self._clock(), position=expected
            )
            # Settings can return to what they were, so that the key needs the position they replace.
            digest = chunking.settings_digest(wanted, after=expected)
            position = await self._journal.record(
                Decided(
                    crate_id=crate_id,
                    aggregate=aggregate,
                    message=facts.job_configured(row),
                    key=fact_key(aggregate, expected, "JobConfigured", digest),
                    expected=expected,
                )
            )
            if position is not None:
                await self._journal.read_back(f"job {job_id}", position)
                return replace(row, position=position), notices
        raise contended(f"job {job_id} of crate {crate_id}")

    async def _change(self, crate_id: str, change: Change) -> int:
        async with self._journal.writing(crate_id, CRATE_AGGREGATE):
            return await self._change_in_turn(crate_id, change)

    async def _change_in_turn(self, crate_id: str, change: Change) -> int:
        for _ in range(ATTEMPTS):
            expected = await self._expected(crate_id, CRATE_AGGREGATE)
            held = await self._read_crate(crate_id)
            if held is None:
                raise NotFound(f"crate {crate_id!r} does not exist: create it with `affidavit crate create`")
            with outcomes():
                wanted = change(held)
            if wanted == held:
                await self._journal.read_back(f"crate {crate_id}", held.position)
                return held.position
            row = replace(wanted, revision=held.revision + 1, configured_at=self._clock())
            position = await self._record_crate(row, expected=expected)
            if position is not None:
                return position
        raise contended(f"crate {crate_id}")

    async def _record_crate(self, row: CrateRow, *, expected: int) -> int | None:
        position = await self._journal.record(
            Decided(
                crate_id=row.crate_id,
                aggregate=CRATE_AGGREGATE,
                message=facts.crate_configured(row),
                key=fact_key(CRATE_AGGREGATE, row.revision, "CrateConfigured"),
                expected=expected,
            )
        )
        if position is not None:
            await self._journal.read_back(f"crate {row.crate_id}", position)
        return position

    async def _expected(self, crate_id: str, aggregate: str) -> int:
        # Always read before the content that a decision rests on: what is written in between then is a conflict.
        last = await self._log.last(crate=crate_id, service=OWN_SERVICE, aggregate=aggregate)
        return last.position if last else 0

    async def _read_crate(self, crate_id: str) -> CrateRow | None:
        event = await self._log.last_named(
            crate=crate_id, service=OWN_SERVICE, aggregate=CRATE_AGGREGATE, name="CrateConfigured"
        )
        if event is None or not isinstance(event.message, pb.CrateConfigured):
            return None
        return facts.crate_row(crate_id, event.position, event.message)

    async def _read_job(self, crate_id: str, aggregate: str) -> JobRow | None:
        event = await self._log.last_named(
            crate=crate_id, service=OWN_SERVICE, aggregate=aggregate, name="JobConfigured"
        )
        if event is None or not isinstance(event.message, pb.JobConfigured):
            return None
        return facts.job_row(crate_id, event.position, event.message)
