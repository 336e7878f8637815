"""Commands on failures: retry and drop; and the record of a pack that was found gone or damaged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from google.protobuf.message import Message

from services.ingest.codec import settlements
from services.ingest.codec.facts import OWN_SERVICE
from services.ingest.commands.log import ATTEMPTS, Decided, Journal, contended
from services.ingest.domain.documents import Status
from services.ingest.domain.lifecycle import Failed, FailureState, RevisionState
from services.ingest.domain.values import DocumentView, EndResult, FailureView, SourceAddress
from services.ingest.ports import Sources, Tables
from services.kernel.errors import Conflict, Failure, NotFound, Rejected

Write = Callable[[Failed, datetime], Message]


class Failures:
    """Settles failures, log first. The first fact about a failure stands: it was retried, or it was dropped."""

    def __init__(self, *, journal: Journal, tables: Tables, sources: Sources, clock: Callable[[], datetime]) -> None:
        """Keep what the commands need.

        Args:
            journal: Log and own tables.
            tables: Projected rows.
            sources: Packs.
            clock: Aware, UTC.
        """
        self._journal = journal
        self._tables = tables
        self._sources = sources
        self._clock = clock

    async def retry(self, crate_id: str, failure_id: int) -> EndResult:
        """Hand the event that was given up to its role again.

        Args:
            crate_id: Crate.
            failure_id: Position of the TaskFailed.

        Returns:
            Position of the retry; unchanged when it had been retried already.

        Raises:
            NotFound: When there is no such failure.
            Rejected: When the source pack that was lost isn't back yet.
            Conflict: When the failure was dropped.
            Unavailable: When log, packs or tables don't answer.
        """
        return await self._settle(crate_id, failure_id, FailureState.RETRIED, settlements.task_retried)

    async def drop(self, crate_id: str, failure_id: int) -> EndResult:
        """Say that a task isn't wanted any more; its document keeps its status.

        Args:
            crate_id: Crate.
            failure_id: Position of the TaskFailed.

        Returns:
            Position of the drop; unchanged when it had been dropped already.

        Raises:
            NotFound: When there is no such failure.
            Conflict: When the failure was retried.
            Unavailable: When log or tables don't answer.
        """
        return await self._settle(crate_id, failure_id, FailureState.DROPPED, settlements.task_dropped)

    async def report(self, crate_id: str, view: DocumentView, revision: RevisionState, error: Failure) -> None:
        """Record that the source pack of a revision was found gone or damaged, unless that is known or expected.

        Args:
            crate_id: Crate.
            view: The document.
            revision: Which revision.
            error: What reading the pack came to.

        Raises:
            Unavailable: When log or tables don't answer.
        """
        now = await self._tables.document(crate_id, view.document_id)
        if now is None or now.status in (Status.ERASED, Status.FAILED) or revision.revision not in _numbers(now):
            return
        message = settlements.pack_lost(
            view.document_id,
            revision.revision,
            position=revision.position,
            code=error.code,
            reason=f"{error.message}; ingest the document again, or restore the pack from a backup and retry",
            now=self._clock(),
        )
        key = f"{view.document_id}:{revision.revision}:lost:{revision.position}:{revision.settings_digest}"
        appended = await self._journal.log.append(crate=crate_id, aggregate=view.document_id, message=message, key=key)
        await self._journal.read_back(f"the loss of a pack of document {view.document_id}", appended.position)

    async def _settle(self, crate_id: str, failure_id: int, wanted: FailureState, write: Write) -> EndResult:
        aggregate = settlements.failure_aggregate(failure_id)
        for _ in range(ATTEMPTS):
            view = await self._tables.failure(crate_id, failure_id)
            if view is None:
                raise NotFound(
                    f"failure {failure_id} does not exist in crate {crate_id}: see `affidavit failures list`"
                )
            if view.state is not FailureState.OPEN:
                return _settled(view, wanted)
            if wanted is FailureState.RETRIED:
                await self._check_pack(crate_id, view.failure)
            position = await self._journal.record(
                Decided(
                    crate_id=crate_id,
                    aggregate=aggregate,
                    message=write(view.failure, self._clock()),
                    key=f"{aggregate}:{wanted}",
                    expected=0,
                )
            )
            if position is not None:
                await self._journal.read_back(f"failure {failure_id}", position)
                return _result(view, position, unchanged=False)
            await self._journal.catch_up(crate_id, aggregate)
        raise contended(f"failure {failure_id}")

    async def _check_pack(self, crate_id: str, failed: Failed) -> None:
        """A lost source pack has no step that would find it missing again."""
        if failed.service != OWN_SERVICE or not failed.document_id:
            return
        view = await self._tables.document(crate_id, failed.document_id)
        for revision in view.revisions if view else ():
            if revision.revision == failed.revision and revision.damaged:
                address = SourceAddress(crate_id, failed.document_id, failed.revision)
                if not await self._sources.intact(address, revision.source):
                    raise Rejected(
                        f"the source pack of revision {failed.revision} of document {failed.document_id} is still gone "
                        "or damaged: restore it from a backup first, or ingest the document again"
                    )


def _numbers(view: DocumentView) -> set[int]:
    return {revision.revision for revision in view.revisions}


def _settled(view: FailureView, wanted: FailureState) -> EndResult:
    if view.state is not wanted:
        raise Conflict(
            f"failure {view.failure.position} was {view.state} at position {view.settled_position}: see what came of "
            "that with `affidavit failures list`, or ingest its document again"
        )
    return _result(view, view.settled_position, unchanged=True)


def _result(view: FailureView, position: int, *, unchanged: bool) -> EndResult:
    failed = view.failure
    return EndResult(document_id=failed.document_id, revision=failed.revision, position=position, unchanged=unchanged)
