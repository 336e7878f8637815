"""When revisions count, by their living states; and what a past position knew otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.index.codec import living as codec
from services.index.domain.content import KnownRevision
from services.index.domain.documents import Embedded, Plan
from services.index.domain.force import Force
from services.index.domain.living.changes import LivingChange, Told, from_instant
from services.index.domain.living.values import RevisionFacts
from services.index.domain.records import RevisionKey
from services.index.living import Living
from services.index.loading import Content
from services.index.ports import Tables
from services.kernel.envelope import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """When revisions count after a batch.

    Attributes:
        mine: Every stored revision of the documents that the batch speaks about.
        others: Revisions of other documents that relations may have changed; whether one is current stays as it is.
        change: What to write about living states; None when nothing was told.
    """

    mine: Mapping[RevisionKey, Force] = field(default_factory=dict)
    others: Mapping[RevisionKey, Force] = field(default_factory=dict)
    change: LivingChange | None = None


class LivingForces:
    """Tells the living states of a batch, and takes the forces of revisions from them."""

    def __init__(self, *, tables: Tables, living: Living) -> None:
        self._tables = tables
        self._living = living

    async def after(
        self, crate_id: str, plan: Plan, events: Sequence[tuple[Event, object]], contents: Sequence[Content]
    ) -> Counted:
        """Tell when revisions count once a batch is applied. The living states are ahead of the tables from here on.

        Args:
            crate_id: Crate.
            plan: Net effect of the batch on documents.
            events: The crate's events in log order, with what each says about a document.
            contents: Of the plan's stored revisions.

        Returns:
            Forces, and the change that they come from.

        Raises:
            Unavailable: When the tables don't answer.
        """
        known = await self._known(crate_id, plan)
        told = list(_told(plan, events, contents, known))
        change = await self._living.prepare(crate_id, told) if told else None
        mine = {key for key, revision in known.items() if revision.stored}
        touched = {(row.document_id, row.revision) for row in change.timelines} if change else set()
        forces = await self._living.forces(crate_id, mine | touched)
        current = {state.document_id: state.current_revision for state in plan.states}
        return Counted(
            mine={
                key: replace(force, current=current[key[0]] == key[1]) for key, force in forces.items() if key in mine
            },
            others={key: force for key, force in forces.items() if key not in mine},
            change=change,
        )

    def settled(self, change: LivingChange) -> None:
        """Say that a change was committed."""
        self._living.settled(change)

    def dropped(self, crate_id: str) -> None:
        """Say that a change wasn't committed."""
        self._living.dropped(crate_id)

    async def _known(self, crate_id: str, plan: Plan) -> dict[RevisionKey, KnownRevision]:
        """The revisions of the plan's documents as they are once it is applied."""
        documents = [state.document_id for state in plan.states]
        before = await self._tables.known_revisions(crate_id, documents) if documents else {}
        gone = dict(plan.erased)
        known = {
            (document_id, each.revision): each
            for document_id, revisions in before.items()
            for each in revisions
            if each.revision > gone.get(document_id, 0)
        }
        for came in plan.ingested:
            fresh = KnownRevision(revision=came.revision, effective_from=came.effective_from, position=came.position)
            known.setdefault((came.document_id, came.revision), fresh)
        for fact in plan.stored:
            key = (fact.document_id, fact.revision)
            known[key] = replace(known[key], stored=True)
        return known


def _told(
    plan: Plan,
    events: Sequence[tuple[Event, object]],
    contents: Sequence[Content],
    known: Mapping[RevisionKey, KnownRevision],
) -> Iterator[Told]:
    read = {(each.fact.document_id, each.fact.revision): each for each in contents}
    kept = set(plan.embedded)
    for event, fact in events:
        if isinstance(fact, Embedded):
            if fact in kept:
                key = (fact.document_id, fact.revision)
                yield Told(event.place, event.time, _facts(key, event, read[key], known[key]))
        elif (one := codec.told(event.message, event.place, event.time)) is not None:
            yield one


def _facts(key: RevisionKey, event: Event, content: Content, known: KnownRevision) -> RevisionFacts:
    description = content.description
    return RevisionFacts(
        document_id=key[0],
        revision=key[1],
        position=known.position,
        effective_at=from_instant(known.effective_from),
        recorded_at=event.time,
        source_id=description.source_id,
        title=description.title,
        source_domain=description.source_domain,
        uri=description.uri,
        metadata=description.metadata,
        links=description.links,
    )
