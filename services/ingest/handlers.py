"""Edge 1: the log's events into tables, and publishers' events into commands."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final

from affidavit.event.v1.envelope_pb2 import TaskRetried
from affidavit.ingest.v1 import ingest_events_pb2 as pb

from services.ingest.codec import facts, submissions
from services.ingest.codec.facts import OWN_SERVICE
from services.ingest.codec.submissions import Submission, SubmissionKind
from services.ingest.commands.documents import Documents
from services.ingest.commands.outcomes import outcomes
from services.ingest.commands.relations import Relations
from services.ingest.domain import effect, settings
from services.ingest.domain.documents import Manifest, PutOutcome, Status
from services.ingest.domain.values import EndResult, Placed, PutResult, SourceAddress
from services.ingest.ports import HandedOver, History, Sources, Tables
from services.kernel.auth import Admit, Credentials
from services.kernel.envelope import Event
from services.kernel.errors import Failure

_log = logging.getLogger("affidavit.ingest")
DOCUMENTS: Final = "documents"
INDEXED: Final = "indexed"
EMBEDDED: Final = "RecordsEmbedded"
_READS_AT_ONCE: Final = 16
_LARGE_BATCH: Final = 100
_LONGEST_REST_S: Final = 0.05
_SERVICE: Final = "/affidavit.ingest.v1.IngestService"
# A submission needs the grant of the RPC that does the same.
_METHODS: Final = {
    SubmissionKind.PUT: f"{_SERVICE}/PutDocument",
    SubmissionKind.RETIRE: f"{_SERVICE}/RetireDocument",
    SubmissionKind.ERASE: f"{_SERVICE}/EraseDocument",
    SubmissionKind.RELATE: f"{_SERVICE}/DeclareRelation",
}


class Pace:
    """Lets a projection rest between small batches, so that under load they grow instead of costing a core.

    A batch of one event costs nearly as much as one of fifty. Who writes now and then never waits: only a batch that
    follows the one before at once does, for at most twice as long as that took.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Keep clock and sleep.

        Args:
            clock: Seconds that only grow.
            sleep: Waits for seconds.
        """
        self._clock = clock
        self._sleep = sleep
        self._rests_until = 0.0

    @asynccontextmanager
    async def batch(self, size: int) -> AsyncIterator[None]:
        """Surround the handling of a batch.

        Args:
            size: Its events; a large one never waits.
        """
        rest = self._rests_until - self._clock()
        if size < _LARGE_BATCH and rest > 0:
            await self._sleep(rest)
        started = self._clock()
        yield
        ended = self._clock()
        self._rests_until = ended + min(_LONGEST_REST_S, 2 * (ended - started))


class Projections:
    """Follows the log: crates, jobs, documents and failures as tables."""

    def __init__(
        self,
        *,
        tables: Tables,
        sources: Sources,
        log: History,
        handed_over: HandedOver,
        erased: Callable[[], None] = lambda: None,
    ) -> None:
        """Keep what the projections need.

        Args:
            tables: Where rows go.
            sources: Where content comes from.
            log: Asked whether an erasure is the last that is known of a document.
            handed_over: Finds the event that a TaskRetried of ingest is about.
            erased: Told that rows of erased documents were deleted.
        """
        self._tables = tables
        self._sources = sources
        self._log = log
        self._handed_over = handed_over
        self._erased = erased
        self._reads = asyncio.Semaphore(_READS_AT_ONCE)
        self._paces = {DOCUMENTS: Pace(), INDEXED: Pace()}

    async def documents(self, events: Sequence[Event]) -> None:
        """Apply events of KNOWLEDGE.

        Args:
            events: In log order.
        """
        async with self._paces[DOCUMENTS].batch(len(events)):
            await self._documents(events)

    async def indexed(self, events: Sequence[Event]) -> None:
        """Apply events of SIGNALS.

        Args:
            events: In log order.
        """
        async with self._paces[INDEXED].batch(len(events)):
            with outcomes():
                read = [Placed(event.place, facts.fact(event)) for event in events]
            await self._tables.apply(INDEXED, events[-1].position, read)

    async def _documents(self, read_events: Sequence[Event]) -> None:
        events = await self._with_retried(read_events)
        puts = [event for event in events if isinstance(event.message, pb.DocumentIngested)]
        positions = [event.position for event in puts]
        manifests = dict(zip(positions, await asyncio.gather(*map(self._manifest, puts)), strict=True))
        with outcomes():
            read = [Placed(event.place, facts.fact(event, manifests.get(event.position))) for event in events]
        erasures = [(event, event.message) for event in events if isinstance(event.message, pb.DocumentErased)]
        for event, message in erasures:
            await self._erase(event, message)
        await self._tables.apply(DOCUMENTS, read_events[-1].position, read)
        if erasures:
            self._erased()

    async def _with_retried(self, events: Sequence[Event]) -> list[Event]:
        """Events, and with each TaskRetried of ingest the one that it hands over: both are facts."""
        found = []
        for event in events:
            handed = await self._handed_over(event) if isinstance(event.message, TaskRetried) else None
            found += [event] if handed is None else await self._with_neighbours(event, handed)
        return found

    async def _with_neighbours(self, retried: Event, handed: Event) -> list[Event]:
        """A retry and its event, after the failure that moved the aggregate and before what followed from the event.

        The other roles went on with a revision while its first fact could not be applied here.
        """
        if not isinstance(handed.message, pb.DocumentIngested):
            return [retried, handed]
        steps = [
            await self._log.last_named(crate=handed.crate, service=service, aggregate=handed.aggregate, name=name)
            for service, name in ((OWN_SERVICE, "TaskFailed"), ("chunker", "DocumentChunked"), ("embedder", EMBEDDED))
        ]
        failed, *followed = [
            replace(step, retry=handed.retry) if step and handed.position < step.position < handed.retry else None
            for step in steps
        ]
        return [event for event in (failed, retried, handed, *followed) if event is not None]

    async def _manifest(self, event: Event) -> Manifest | None:
        message = event.message
        if not isinstance(message, pb.DocumentIngested):
            return None
        async with self._reads:
            return await self._sources.manifest(
                SourceAddress(event.crate, message.document_id, message.revision), facts.pack(message.source)
            )

    async def _erase(self, event: Event, message: pb.DocumentErased) -> None:
        # Before the rows say so: a put that follows the erasure writes its pack only after it has read those rows.
        # When tables are built again, later revisions exist already and must stay.
        last = await self._log.last_named(
            crate=event.crate, service=OWN_SERVICE, aggregate=event.aggregate, name="DocumentIngested"
        )
        whole = last is None or last.position < event.position
        await self._sources.erase(event.crate, message.document_id, message.revision, whole=whole)


class Submissions:
    """Answers publishers."""

    def __init__(
        self, *, documents: Documents, relations: Relations, admit: Admit, clock: Callable[[], datetime]
    ) -> None:
        """Keep what answering needs.

        Args:
            documents: Commands on documents.
            relations: Commands on relations.
            admit: Checks the publisher's grant on the crate: what a gRPC caller would need for the same.
            clock: Aware, UTC.
        """
        self._documents = documents
        self._relations = relations
        self._clock = clock
        self._admit = admit

    async def answer(self, crate_id: str, payload: bytes, headers: Mapping[str, str]) -> bytes:
        """Carry out a publisher's event.

        Args:
            crate_id: Crate, from the subject.
            payload: CloudEvents JSON.
            headers: Of the NATS message, names in lower case: what the publisher shows of itself.

        Returns:
            JSON: what it came to, or the code and message of what went wrong.
        """
        try:
            with outcomes():
                settings.crate_id(crate_id)
            shown = Credentials(metadata=headers)
            # Before the payload is looked at: a foreign crate answers as a missing one does, whatever is sent to it.
            await self._admit(shown, _METHODS[SubmissionKind.PUT], crate_id)
            with outcomes():
                submission = submissions.submission(payload)
            await self._admit(shown, _METHODS[submission.kind], crate_id)
            return await self._carry_out(crate_id, submission)
        except Failure as error:
            return submissions.refusal(error.code, error.message)
        except Exception as error:  # noqa: BLE001  (a publisher must get an answer, and the others theirs)
            _log.exception("a submission to crate %s failed unexpectedly", crate_id)
            return submissions.refusal(
                "internal", f"an unexpected fault ({type(error).__name__}); the server's log has the details"
            )

    async def _carry_out(self, crate_id: str, submission: Submission) -> bytes:
        commands = self._documents
        header, name = submission.header, submission.header.source_id
        noted = effect.ahead(submission.sent_at, self._clock())
        submission_id = await commands.submission_id(crate_id, submission.source, submission.event_id)
        if submission.statement is not None:
            stated = await self._relations.declare(crate_id, submission.statement, submission_id)
            return submissions.relation_reply(stated, noted)
        if submission.kind is SubmissionKind.PUT:
            return _put_reply(await commands.put(crate_id, header, submission.body, submission_id, noted))
        document_id = await commands.identify(crate_id, name)
        if submission.kind is SubmissionKind.RETIRE:
            return _end_reply(await commands.retire(crate_id, document_id, name, submission_id), Status.RETIRED, noted)
        return _end_reply(await commands.erase(crate_id, document_id, name, submission_id), Status.ERASED, noted)


def _put_reply(result: PutResult) -> bytes:
    return submissions.reply(
        position=result.position,
        revision=result.revision,
        outcome=result.outcome,
        document_id=result.document_id,
        notices=result.notices,
        repeats=result.repeats,
    )


def _end_reply(result: EndResult, done: Status, notices: tuple[str, ...]) -> bytes:
    return submissions.reply(
        position=result.position,
        revision=result.revision,
        outcome=result.repeats or (PutOutcome.UNCHANGED if result.unchanged else done),
        document_id=result.document_id,
        notices=notices,
        repeats=result.repeats is not None,
    )
