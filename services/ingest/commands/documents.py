"""Commands on documents: put, retire, erase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from google.protobuf.message import Message

from services.ingest.codec import facts
from services.ingest.commands.log import ATTEMPTS, Decided, Journal, contended
from services.ingest.commands.outcomes import outcomes
from services.ingest.commands.quotas import Quotas
from services.ingest.domain import documents, effect, headers, relations
from services.ingest.domain.chunking import ChunkSettings, limited
from services.ingest.domain.documents import Held, Manifest, Prepared, PutDecision, PutOutcome, Status
from services.ingest.domain.headers import Header
from services.ingest.domain.relations import Edge
from services.ingest.domain.values import EndResult, PutResult, PutState, SourceAddress, Submitted, Usage
from services.ingest.ports import Preparer, Sources, Tables
from services.kernel.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class _Put:
    """A put whose body was read."""

    crate_id: str
    document_id: str
    header: Header
    submission: str
    body: bytes
    prepared: Prepared
    manifest: Manifest
    digest: bytes
    effective_at: datetime | None


class Documents:
    """Puts, retires and erases documents, log first."""

    def __init__(
        self,
        *,
        journal: Journal,
        tables: Tables,
        sources: Sources,
        preparer: Preparer,
        clock: Callable[[], datetime],
        quotas: Quotas,
    ) -> None:
        """Keep what the commands need.

        Args:
            journal: Log and own tables.
            tables: Projected rows.
            sources: Packs.
            preparer: Reads bodies.
            clock: Aware, UTC.
            quotas: Of each crate; they also share out the turns.
        """
        self._journal = journal
        self._tables = tables
        self._sources = sources
        self._preparer = preparer
        self._clock = clock
        self._quotas = quotas
        self._secrets: dict[str, bytes] = {}

    async def identify(self, crate_id: str, source_id: str) -> str:
        """Id of the document of that name.

        Args:
            crate_id: Crate.
            source_id: As the caller gave it.

        Returns:
            Document id, whether or not there is such a document.

        Raises:
            Rejected: When the name can't be one.
            NotFound: When there is no such crate.
        """
        with outcomes():
            name = headers.source_id(source_id)
        return headers.document_id(await self._secret(crate_id), name)

    async def submission_id(self, crate_id: str, source: str, event_id: str) -> str:
        """Stand-in for a publisher's event."""
        return headers.submission_id(await self._secret(crate_id), source, event_id)

    async def relation_id(self, crate_id: str, edge: Edge) -> str:
        """Aggregate of the statements about a relation."""
        return relations.aggregate(await self._secret(crate_id), edge.source, edge.type, edge.target)

    async def put(
        self, crate_id: str, header: Header, body: bytes, submission: str = "", noted: tuple[str, ...] = ()
    ) -> PutResult:
        """Record a document, or find that nothing changed.

        Args:
            crate_id: Crate.
            header: What the caller says about it.
            body: Original bytes.
            submission: Stand-in for the publisher's event, empty for none.
            noted: Notices of the edge.

        Returns:
            What it came to; its fact is on disk and can be read.

        Raises:
            Rejected: When header or body can't be used.
            NotFound: When there is no such crate or job.
            Conflict: When others keep changing the document.
            Exhausted: When a quota of the crate is used up; nothing was written.
            Unavailable: When log, packs or tables don't answer.
        """
        async with self._quotas.turn(crate_id):
            with outcomes():
                checked, notices = headers.check_header(header)
            document_id = await self.identify(crate_id, checked.source_id)
            state = await self._state(crate_id, document_id, checked.job_id, submission)
            if state.submitted is not None:
                return _repeated(state.submitted)
            _chunking(checked, state)
            with outcomes(f"document {checked.source_id!r} can't be read: "):
                prepared = await self._preparer.prepare(crate_id, checked, body)
            metadata, more = headers.merge_metadata(checked.metadata, dict(prepared.metadata))
            stated, unread = effect.stated(metadata) if checked.effective_at is None else (None, ())
            manifest = documents.make_manifest(checked, prepared, metadata, (*noted, *notices, *more, *unread))
            put = _Put(
                crate_id=crate_id,
                document_id=document_id,
                header=checked,
                submission=submission,
                body=body,
                prepared=prepared,
                manifest=manifest,
                # What the document itself says of its time is part of its metadata.
                digest=documents.content_digest(manifest, documents.declared(manifest, checked.effective_at)),
                effective_at=checked.effective_at or stated,
            )
            async with self._journal.writing(crate_id, document_id) as waited:
                return await self._decide(put, None if waited else state)

    async def retire(self, crate_id: str, document_id: str, name: str, submission: str = "") -> EndResult:
        """Put a document out of force; its history stays.

        Args:
            crate_id: Crate.
            document_id: Document.
            name: What the caller called it, for messages.
            submission: Stand-in for the publisher's event, empty for none.

        Returns:
            What it came to.

        Raises:
            NotFound: When there is no such document.
            Conflict: When others keep changing it.
            Unavailable: When log or tables don't answer.
        """
        return await self._end(crate_id, document_id, name, submission, erases=False)

    async def erase(self, crate_id: str, document_id: str, name: str, submission: str = "") -> EndResult:
        """Delete all content of a document for good, see `retire`."""
        return await self._end(crate_id, document_id, name, submission, erases=True)

    async def _decide(self, put: _Put, read: PutState | None) -> PutResult:
        for _ in range(ATTEMPTS):
            state = read or await self._state(put.crate_id, put.document_id, put.header.job_id, put.submission)
            read = None
            if state.submitted is not None:
                return _repeated(state.submitted)
            chunking, notices = _chunking(put.header, state)
            decision = documents.decide_put(state.held, digest=put.digest, chunking=chunking)
            if decision.outcome is PutOutcome.UNCHANGED and not await self._intact(put, state.held):
                damaged = replace(state.held, status=Status.FAILED) if state.held else None
                decision = documents.decide_put(damaged, digest=put.digest, chunking=chunking)
            position = state.held.position if state.held else None
            if decision.outcome is not PutOutcome.UNCHANGED:
                async with self._quotas.room(put.crate_id, _adds(put, state.held, decision)) as room:
                    position = await self._record_put(put, state.held, decision, chunking)
                    room.taken = position is not None
            elif state.held is None or not await self._holds(put.crate_id, state.held, put.submission):
                position = None
            if position is not None:
                return PutResult(
                    document_id=put.document_id,
                    revision=decision.revision,
                    outcome=decision.outcome,
                    position=position,
                    notices=(*put.manifest.notices, *notices),
                )
            await self._journal.catch_up(put.crate_id, put.document_id)
        raise contended(f"document {put.header.source_id!r}")

    async def _intact(self, put: _Put, held: Held | None) -> bool:
        """Whether what was stored of an unchanged document can still be read: putting it again mends it otherwise."""
        if held is None or held.source is None or held.status is Status.PENDING:
            return True
        at = SourceAddress(put.crate_id, put.document_id, held.revision)
        return await self._sources.intact(at, held.source, searchable=held.status is Status.SEARCHABLE)

    async def _record_put(
        self, put: _Put, held: Held | None, decision: PutDecision, chunking: ChunkSettings
    ) -> int | None:
        now = self._clock()
        effective_at, ingested_at = put.effective_at or now, now
        if decision.outcome is PutOutcome.RECHUNKED and held and held.effective_at and held.ingested_at:
            # The revision stays what it was, and so do its times.
            effective_at, ingested_at = held.effective_at, held.ingested_at
        source = held.source if held and decision.reuses_source else None
        if source is None:
            # Durable before the event that names it: a crash in between leaves a pack that nobody names.
            address = SourceAddress(put.crate_id, put.document_id, decision.revision)
            source = await self._sources.write(address, put.manifest, put.body, put.prepared.normalized)
        message = facts.document_ingested(
            put.document_id,
            decision,
            source=source,
            chunking=chunking,
            job_id=put.header.job_id,
            form=put.prepared.form,
            effective_at=effective_at,
            ingested_at=ingested_at,
        )
        key = documents.fact_key(
            put.document_id, decision.revision, "DocumentIngested", decision.settings_digest, put.submission
        )
        return await self._record(put.crate_id, put.document_id, message, key, decision.expected)

    async def _end(self, crate_id: str, document_id: str, name: str, submission: str, *, erases: bool) -> EndResult:
        async with self._journal.writing(crate_id, document_id):
            for _ in range(ATTEMPTS):
                state = await self._state(crate_id, document_id, "", submission)
                if state.submitted is not None:
                    return _ended_before(state.submitted)
                if await self._knows(crate_id, document_id, state.held):
                    result = await self._try_end(crate_id, document_id, name, state.held, submission, erases=erases)
                    if result is not None:
                        return result
                await self._journal.catch_up(crate_id, document_id)
        raise contended(f"document {name!r}")

    async def _try_end(
        self, crate_id: str, document_id: str, name: str, held: Held | None, submission: str, *, erases: bool
    ) -> EndResult | None:
        """Retire or erase; None when it has to be decided again."""
        decide = documents.decide_erase if erases else documents.decide_retire
        with outcomes():
            decision = decide(held, name)
        position: int | None
        if decision.unchanged and held is not None:
            position = held.position if await self._holds(crate_id, held, submission) else None
        else:
            write = facts.document_erased if erases else facts.document_retired
            message = write(document_id, decision.revision, self._clock())
            key = documents.fact_key(document_id, decision.revision, message.DESCRIPTOR.name, submission=submission)
            position = await self._record(crate_id, document_id, message, key, decision.expected)
        if position is None:
            return None
        return EndResult(
            document_id=document_id, revision=decision.revision, position=position, unchanged=decision.unchanged
        )

    async def _holds(self, crate_id: str, held: Held, submission: str) -> bool:
        """Whether what a document is in the tables holds in the log; a publisher's event that it answers is recorded.

        Without a fact, the same event delivered again later would be carried out on whatever the document is by then.
        The fact is the document's own: nothing can come in between the decision and it.
        """
        if not submission:
            return await self._knows(crate_id, held.document_id, held)
        message = facts.submission_unchanged(held.document_id, held.revision, held.position, self._clock())
        key = documents.fact_key(
            held.document_id, held.revision, message.DESCRIPTOR.name, str(held.sequence), submission
        )
        return await self._record(crate_id, held.document_id, message, key, held.sequence) is not None

    async def _record(self, crate_id: str, document_id: str, message: Message, key: str, expected: int) -> int | None:
        position = await self._journal.record(
            Decided(crate_id=crate_id, aggregate=document_id, message=message, key=key, expected=expected)
        )
        if position is not None:
            await self._journal.read_back(f"document {document_id}", position)
        return position

    async def _knows(self, crate_id: str, document_id: str, held: Held | None) -> bool:
        """Whether the tables know the document's last fact: an append is refused otherwise, an answer without one isn't."""
        return await self._journal.knows(crate_id, document_id, held.sequence if held else 0)

    async def _state(self, crate_id: str, document_id: str, job_id: str, submission: str) -> PutState:
        state = await self._tables.put_state(crate_id, document_id, job_id, submission)
        if state is None:
            raise _no_crate(crate_id)
        return state

    async def _secret(self, crate_id: str) -> bytes:
        if crate_id not in self._secrets:
            view = await self._tables.crate(crate_id)
            if view is None:
                raise _no_crate(crate_id)
            self._secrets[crate_id] = await self._sources.secret(crate_id, view.crate.secret)
        return self._secrets[crate_id]


def _chunking(header: Header, state: PutState) -> tuple[ChunkSettings, tuple[str, ...]]:
    wanted = state.chunking
    if wanted is None:
        raise NotFound(f"job {header.job_id!r} does not exist in this crate: create it with `affidavit job set`")
    chunking = limited(wanted, state.max_input_chars)
    if chunking == wanted:
        return chunking, ()
    notice = (
        f"chunk_size {wanted.size_chars} was lowered to {chunking.size_chars}: "
        f"the embedding provider takes at most {state.max_input_chars} characters"
    )
    return chunking, (notice,)


def _adds(put: _Put, held: Held | None, decision: PutDecision) -> Usage:
    """What a put adds to what its crate uses."""
    is_new = held is None or held.status is Status.ERASED
    size_bytes = 0 if decision.reuses_source else len(put.body) + len(put.prepared.normalized)
    return Usage(int(is_new), size_bytes)


def _repeated(done: Submitted) -> PutResult:
    return PutResult(
        document_id=done.document_id,
        revision=done.revision,
        outcome=done.outcome,
        position=done.position,
        repeats=True,
    )


def _ended_before(done: Submitted) -> EndResult:
    return EndResult(
        document_id=done.document_id,
        revision=done.revision,
        position=done.position,
        unchanged=True,
        repeats=done.outcome,
    )


def _no_crate(crate_id: str) -> NotFound:
    return NotFound(f"crate {crate_id[:64]!r} does not exist: create it with `affidavit crate create`")
