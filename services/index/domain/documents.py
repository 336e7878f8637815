"""What the log says about a document, and what a batch of facts means for rows and lanes.

A revision is kept in both lanes once it is embedded, unless the document was erased or other chunk settings came
meanwhile. It becomes the current one unless the document was retired or a newer revision came meanwhile; until then the
revision before it stays current. Everything is decided in log order, so the result doesn't depend on how the log is cut
into batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from services.index.domain.records import Form


class Status(StrEnum):
    """Where a document stands, as far as the index knows."""

    PENDING = "pending"
    SEARCHABLE = "searchable"
    EMPTY = "empty"
    RETIRED = "retired"
    ERASED = "erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """A revision is known, or its chunk settings changed.

    Attributes:
        document_id: 32 hex digits.
        revision: 1, 2, 3 ...
        settings_digest: Digest of all that shapes the chunks.
        form: How it is weighed and indexed.
        effective_at: When the revision comes into force, UTC; None when the event doesn't say.
        effective_from: The same in microseconds since 1970; where the event doesn't say, when it was recorded.
        position: KNOWLEDGE position.
    """

    document_id: str
    revision: int
    settings_digest: str
    form: Form
    effective_at: datetime | None
    effective_from: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The chunks of a revision have their vectors.

    Attributes:
        document_id: 32 hex digits.
        revision: 1, 2, 3 ...
        settings_digest: Digest of the chunk settings that they were cut with.
        generation: Generation that the vectors belong to.
        chunks_pack: Id of the chunks pack, 32 bytes; empty without chunks.
        vectors_pack: Id of the vectors pack, 32 bytes; empty without chunks.
        chunk_count: Number of chunks.
        model_id: Model of the vectors; empty without chunks.
        dimension: Length of the vectors; 0 without chunks.
        form: How it is weighed and indexed.
        position: KNOWLEDGE position.
        evaluations_pack: Id of the evaluations pack, 32 bytes; empty where chunks are records as they are.
        statement_count: Number of accepted propositions, whose vectors follow those of the chunks.
    """

    document_id: str
    revision: int
    settings_digest: str
    generation: int
    chunks_pack: bytes
    vectors_pack: bytes
    chunk_count: int
    model_id: str
    dimension: int
    form: Form
    position: int
    evaluations_pack: bytes = b""
    statement_count: int = 0

    @property
    def row_count(self) -> int:
        """Number of vectors."""
        return self.chunk_count + self.statement_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """The document is out of force.

    Attributes:
        document_id: 32 hex digits.
        revision: The one that was current.
        position: KNOWLEDGE position.
    """

    document_id: str
    revision: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """The document's content is gone for good."""

    document_id: str
    revision: int
    position: int


Fact = Ingested | Embedded | Retired | Erased


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """A document after some prefix of the log.

    Attributes:
        document_id: 32 hex digits.
        latest_revision: Newest revision known; 0 for none.
        latest_digest: Its newest settings digest.
        current_revision: Newest searchable revision; 0 for none, and while the document is retired.
        current_digest: Settings digest that its chunks were cut with.
        current_count: Its number of chunks.
        retired: True from a retirement until the next revision.
        erased_revision: Revisions up to this one were erased.
        digests: Newest settings digest by revision, of the revisions that the batch speaks about.
    """

    document_id: str
    latest_revision: int = 0
    latest_digest: str = ""
    current_revision: int = 0
    current_digest: str = ""
    current_count: int = 0
    retired: bool = False
    erased_revision: int = 0
    digests: Mapping[int, str] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """Status in one word; a pending newer revision doesn't show while an older one is found."""
        if self.erased_revision >= self.latest_revision:
            return Status.ERASED
        if self.retired:
            return Status.RETIRED
        if not self.current_revision:
            return Status.PENDING
        return Status.SEARCHABLE if self.current_count else Status.EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Net effect of a batch on one crate.

    Attributes:
        states: Every document that the batch spoke about, as it is afterwards.
        ingested: Revisions to record, the newest fact of each with time and position of the first.
        stored: Revisions whose chunks are kept in rows and lanes, the newest fact of each.
        embedded: Every fact that brought the content of a revision that stays, in log order.
        erased: Documents and the revision up to which their rows and records go, before anything else happens.
        indexed: Every revision that became current on the way, in log order.
    """

    states: tuple[DocumentState, ...] = ()
    ingested: tuple[Ingested, ...] = ()
    stored: tuple[Embedded, ...] = ()
    embedded: tuple[Embedded, ...] = ()
    erased: tuple[tuple[str, int], ...] = ()
    indexed: tuple[Embedded, ...] = ()


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    states: dict[str, DocumentState]
    ingested: dict[tuple[str, int], Ingested] = field(default_factory=dict)
    stored: dict[tuple[str, int], Embedded] = field(default_factory=dict)
    embedded: list[Embedded] = field(default_factory=list)
    erased: dict[str, int] = field(default_factory=dict)
    indexed: list[Embedded] = field(default_factory=list)


def plan(before: Mapping[str, DocumentState], facts: Iterable[Fact]) -> Plan:
    """Fold a batch of facts of one crate.

    Args:
        before: States by document id; documents that aren't known yet may be left out.
        facts: In log order.

    Returns:
        What to write. Applying the same facts to the states that result changes no content.
    """
    draft = _Draft(dict(before))
    touched: dict[str, None] = {}
    for fact in facts:
        touched[fact.document_id] = None
        state = draft.states.get(fact.document_id) or DocumentState(document_id=fact.document_id)
        draft.states[fact.document_id] = _fold(draft, state, fact)
    return Plan(
        states=tuple(draft.states[document_id] for document_id in touched),
        ingested=tuple(draft.ingested.values()),
        stored=tuple(draft.stored.values()),
        embedded=tuple(draft.embedded),
        erased=tuple(draft.erased.items()),
        indexed=tuple(draft.indexed),
    )


def _fold(draft: _Draft, state: DocumentState, fact: Fact) -> DocumentState:
    match fact:
        case Ingested():
            return _ingest(draft, state, fact)
        case Embedded():
            return _embed(draft, state, fact)
        case Retired():
            return replace(state, retired=True, current_revision=0, current_digest="", current_count=0)
        case Erased():
            return _erase(draft, state, fact)


def _ingest(draft: _Draft, state: DocumentState, fact: Ingested) -> DocumentState:
    if fact.revision < state.latest_revision or fact.revision <= state.erased_revision:
        return state
    key = (fact.document_id, fact.revision)
    first = draft.ingested.get(key, fact)
    # Other chunk settings don't make the revision younger: it is known since its first fact.
    draft.ingested[key] = replace(
        fact, effective_at=first.effective_at, effective_from=first.effective_from, position=first.position
    )
    return replace(
        state,
        latest_revision=fact.revision,
        latest_digest=fact.settings_digest,
        retired=state.retired and fact.revision == state.latest_revision,
        digests={**state.digests, fact.revision: fact.settings_digest},
    )


def _embed(draft: _Draft, state: DocumentState, fact: Embedded) -> DocumentState:
    if state.digests.get(fact.revision) != fact.settings_digest:
        return state
    draft.stored[fact.document_id, fact.revision] = fact
    draft.embedded.append(fact)
    if state.retired or fact.revision != state.latest_revision:
        return state
    draft.indexed.append(fact)
    return replace(
        state,
        current_revision=fact.revision,
        current_digest=fact.settings_digest,
        current_count=fact.chunk_count,
    )


def _erase(draft: _Draft, state: DocumentState, fact: Erased) -> DocumentState:
    gone = max(fact.revision, state.latest_revision, state.erased_revision)
    draft.erased[fact.document_id] = gone
    for rows in (draft.ingested, draft.stored):
        for key in [key for key in rows if key[0] == fact.document_id]:
            del rows[key]
    draft.embedded = [embedded for embedded in draft.embedded if embedded.document_id != fact.document_id]
    return DocumentState(
        document_id=state.document_id,
        latest_revision=gone,
        retired=state.retired,
        erased_revision=gone,
    )
