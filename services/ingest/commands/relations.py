"""Commands on relations: state one, take it back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from affidavit.ingest.v1 import ingest_events_pb2 as pb

from services.ingest.codec import facts, requests
from services.ingest.codec.facts import OWN_SERVICE
from services.ingest.commands.documents import Documents
from services.ingest.commands.log import ATTEMPTS, Decided, Journal, contended
from services.ingest.commands.outcomes import outcomes
from services.ingest.commands.quotas import Quotas
from services.ingest.domain import relations
from services.ingest.domain.documents import fact_key
from services.ingest.domain.relations import Edge, End, RelationOutcome, RelationResult, Statement
from services.ingest.ports import Tables
from services.kernel.envelope import Event
from services.kernel.errors import NotFound


class Relations:
    """Records statements about relations, log first; the last fact of an edge tells what holds."""

    def __init__(
        self,
        *,
        journal: Journal,
        tables: Tables,
        documents: Documents,
        quotas: Quotas,
        clock: Callable[[], datetime],
    ) -> None:
        """Keep what the command needs.

        Args:
            journal: Log and own tables.
            tables: Projected rows.
            documents: Know ids by names.
            quotas: Of each crate; they also share out the turns.
            clock: Aware, UTC.
        """
        self._journal = journal
        self._tables = tables
        self._documents = documents
        self._quotas = quotas
        self._clock = clock

    async def declare(self, crate_id: str, statement: Statement, submission: str = "") -> RelationResult:
        """Record a statement, or find that it holds already.

        Args:
            crate_id: Crate.
            statement: As the caller gave it. An end that isn't known yet has to be named by source id; one that was
                erased may be named either way, since the statement says nothing of its content.
            submission: Stand-in for the publisher's event, empty for none.

        Returns:
            What it came to; its fact is on disk.

        Raises:
            Rejected: When the statement can't be used.
            NotFound: When there is no such crate or document, or nothing to take back.
            Conflict: When others keep stating the same edge.
            Exhausted: When the crate has too many writes in flight.
            Unavailable: When log or tables don't answer.
        """
        async with self._quotas.turn(crate_id):
            with outcomes():
                wanted = relations.checked(statement)
            source = await self._identify(crate_id, wanted.source)
            target = await self._identify(crate_id, wanted.target)
            with outcomes():
                edge = relations.edge(wanted, source, target)
            aggregate = await self._documents.relation_id(crate_id, edge)
            async with self._journal.writing(crate_id, aggregate):
                for _ in range(ATTEMPTS):
                    last = await self._journal.log.last(crate=crate_id, service=OWN_SERVICE, aggregate=aggregate)
                    repeated = await self._repeated(crate_id, submission, last)
                    result = repeated or await self._attempt(crate_id, aggregate, edge, submission, last)
                    if result is not None:
                        return result
                    await self._journal.catch_up(crate_id, aggregate)
        raise contended(f"the relation {edge.source} {edge.type} {edge.target}")

    async def _attempt(
        self, crate_id: str, aggregate: str, wanted: Edge, submission: str, last: Event | None
    ) -> RelationResult | None:
        stated = last
        if last and not isinstance(last.message, pb.RelationDeclared):
            # What publishers' events that changed nothing left behind it.
            stated = await self._journal.log.last_named(
                crate=crate_id, service=OWN_SERVICE, aggregate=aggregate, name=pb.RelationDeclared.DESCRIPTOR.name
            )
        held = facts.edge(stated.message) if stated and isinstance(stated.message, pb.RelationDeclared) else None
        with outcomes():
            edge = relations.decide(held, wanted)
        expected = last.position if last else 0
        if edge is None:
            holds = stated.position if stated else 0
            if submission and not await self._note(
                crate_id, aggregate, wanted.source, holds, expected, submission=submission
            ):
                return None
            return RelationResult(wanted.source, wanted.target, holds, RelationOutcome.UNCHANGED)
        position = await self._journal.record(
            Decided(
                crate_id=crate_id,
                aggregate=aggregate,
                message=facts.relation_declared(edge, self._clock()),
                # A statement may be made, taken back and made again, so that the key needs the position it replaces.
                key=fact_key(aggregate, expected, "RelationDeclared", submission=submission),
                expected=expected,
            )
        )
        if position is None:
            return None
        await self._journal.read_back(f"the relation {edge.source} {edge.type} {edge.target}", position)
        outcome = RelationOutcome.WITHDRAWN if edge.withdrawn else RelationOutcome.DECLARED
        return RelationResult(edge.source, edge.target, position, outcome)

    async def _note(
        self, crate_id: str, aggregate: str, source: str, holds: int, expected: int, *, submission: str
    ) -> bool:
        """Record that a publisher's event changed nothing, see `Documents`; False when it has to be decided again."""
        message = facts.submission_unchanged(source, 0, holds, self._clock())
        key = fact_key(aggregate, expected, message.DESCRIPTOR.name, submission=submission)
        position = await self._journal.record(
            Decided(crate_id=crate_id, aggregate=aggregate, message=message, key=key, expected=expected)
        )
        if position is not None:
            await self._journal.read_back(f"the relation {aggregate}", position)
        return position is not None

    async def _repeated(self, crate_id: str, submission: str, last: Event | None) -> RelationResult | None:
        if not submission:
            return None
        if last is not None:
            # The tables have to know what the decision rests on: this very event may be among it.
            await self._journal.read_back(f"{last.name} of {last.aggregate}", last.position)
        state = await self._tables.put_state(crate_id, "", "", submission)
        done = state.submitted if state else None
        if done is None:
            return None
        return RelationResult(done.document_id, "", done.position, done.outcome, repeats=True)

    async def _identify(self, crate_id: str, end: End) -> str:
        if end.source_id:
            return await self._documents.identify(crate_id, end.source_id)
        with outcomes():
            document_id = requests.document_id(end.document_id)
        if await self._tables.document(crate_id, document_id) is None:
            raise NotFound(
                f"document {document_id} does not exist in crate {crate_id}: name a document that is still to come by "
                "its source id"
            )
        return document_id
