"""When the revisions of a document count, by nothing but the order in which they succeed each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from services.index.domain.documents import DocumentState, Plan
from services.index.domain.force import NEVER, Force
from services.index.domain.records import RevisionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRevision:
    """A revision that isn't erased.

    Attributes:
        revision: 1, 2, 3 ...
        effective_from: From when on it counts, microseconds since 1970.
        position: KNOWLEDGE position that brought it.
        retired_at: When its document was first retired after it came, microseconds; `NEVER` when it wasn't.
        stored: It was embedded, so that rows and lanes hold it.
    """

    revision: int
    effective_from: int
    position: int
    retired_at: int = NEVER
    stored: bool = False


def forces(revisions: Iterable[KnownRevision], current: int) -> dict[int, Force]:
    """Tell when the revisions of one document count.

    Each is in force until the next one is effective or the document is retired. A revision that was put later with an
    earlier effective time is history between others.

    Args:
        revisions: Those known.
        current: The current one's number; 0 for none.

    Returns:
        Force by number, of those that are stored.
    """
    order = sorted((r for r in revisions if r.stored), key=lambda r: (r.effective_from, r.revision))
    ends = [after.effective_from for _, after in pairwise(order)] + [NEVER]
    return {
        known.revision: Force(
            effective_from=known.effective_from,
            in_force_until=min(end, known.retired_at),
            position=known.position,
            current=known.revision == current,
        )
        for known, end in zip(order, ends[: len(order)], strict=True)
    }


def forces_after(before: Mapping[str, Sequence[KnownRevision]], plan: Plan) -> dict[RevisionKey, Force]:
    """Tell when the revisions of all documents that a batch speaks about count afterwards.

    Args:
        before: Revisions by document, as the rows have them; documents without any may be left out.
        plan: Net effect of the batch.

    Returns:
        Force of every stored revision of those documents.
    """
    known = {state.document_id: {r.revision: r for r in before.get(state.document_id, ())} for state in plan.states}
    for document_id, last in plan.erased:
        known[document_id] = {number: r for number, r in known[document_id].items() if number > last}
    for came in plan.ingested:
        fresh = KnownRevision(revision=came.revision, effective_from=came.effective_from, position=came.position)
        known[came.document_id].setdefault(came.revision, fresh)
    for gone in plan.retired:
        for number, r in known[gone.document_id].items():
            if number <= gone.revision and r.retired_at == NEVER:
                known[gone.document_id][number] = replace(r, retired_at=gone.retired_at)
    for fact in plan.stored:
        mine = known[fact.document_id]
        mine[fact.revision] = replace(mine[fact.revision], stored=True)
    return {key: force for state in plan.states for key, force in _of(state, known[state.document_id].values())}


def _of(state: DocumentState, revisions: Iterable[KnownRevision]) -> Iterable[tuple[RevisionKey, Force]]:
    for number, force in forces(revisions, state.current_revision).items():
        yield (state.document_id, number), force
