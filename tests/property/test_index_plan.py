"""However the log is cut into batches, and however often a batch comes again, the index ends in the same state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from services.index.domain.content import KnownRevision
from services.index.domain.documents import DocumentState, Embedded, Erased, Fact, Ingested, Plan, Retired, plan
from services.index.domain.force import Force
from services.index.domain.living import values as living
from services.index.domain.living.changes import force_of, from_instant
from services.index.domain.living.graph import scratch
from services.index.domain.records import Form, RevisionKey

DOCUMENTS = ("a" * 32, "b" * 32)


@st.composite
def histories(draw: st.DrawFn) -> list[Fact]:
    """Facts as the pipeline may emit them: late, twice, for older revisions and older settings."""
    facts: list[Fact] = []
    revisions = dict.fromkeys(DOCUMENTS, 0)
    for position in range(1, draw(st.integers(1, 25)) + 1):
        document = draw(st.sampled_from(DOCUMENTS))
        kind = draw(st.sampled_from(("put", "put", "rechunk", "embed", "embed", "embed", "retire", "erase")))
        latest = revisions[document]
        revision = draw(st.integers(1, max(latest, 1)))
        digest = draw(st.sampled_from(("d1", "d2")))
        if kind == "put":
            revisions[document] = revision = latest + 1
        if kind in ("put", "rechunk"):
            revisions[document] = max(latest, revision)
            facts.append(
                Ingested(
                    document_id=document,
                    revision=revision,
                    settings_digest=digest,
                    form=Form.TEXT,
                    effective_at=None,
                    effective_from=draw(st.integers(0, 5)) if kind == "put" else 9,
                    position=position,
                )
            )
        elif kind == "embed":
            facts.append(_embedded(document, revision, digest, draw(st.integers(0, 2)), position))
        elif kind == "retire":
            facts.append(Retired(document_id=document, revision=revision, position=position))
        else:
            facts.append(Erased(document_id=document, revision=latest, position=position))
    return facts


def _embedded(document: str, revision: int, digest: str, count: int, position: int) -> Embedded:
    return Embedded(
        document_id=document,
        revision=revision,
        settings_digest=digest,
        generation=1,
        chunks_pack=b"",
        vectors_pack=b"",
        chunk_count=count,
        model_id="m",
        dimension=2,
        form=Form.TEXT,
        position=position,
    )


@dataclass(frozen=True)
class Held:
    """A revision in the lanes."""

    fact: Embedded
    force: Force


class World:
    """Rows and lanes as the projection keeps them, and the signals that it sent."""

    def __init__(self) -> None:
        self.states: dict[str, DocumentState] = {}
        self.digests: dict[RevisionKey, str] = {}
        self.known: dict[RevisionKey, KnownRevision] = {}
        self.forces: dict[RevisionKey, Force] = {}
        self.chunks: dict[RevisionKey, Embedded] = {}
        self.lanes: dict[RevisionKey, Held] = {}
        self.told: list[living.Fact] = []
        self.lane_position = 0
        self.signals: set[tuple[str, int, int]] = set()

    def apply(self, facts: Sequence[Fact], *, crash_before_rows: bool = False) -> None:
        made = plan(self._loaded(facts), facts)
        known = self._known(made)
        told = [*self.told, *_told(made, facts, known)]
        forces = {
            key: replace(force_of(timeline), current=state.current_revision == key[1])
            for key, timeline in scratch(told).items()
            for state in made.states
            if state.document_id == key[0]
        }
        self._write_lanes(made, forces, facts)
        if not crash_before_rows:
            self.told = told
            self._write_rows(made, forces)

    def _known(self, made: Plan) -> dict[RevisionKey, KnownRevision]:
        gone = dict(made.erased)
        known = {key: revision for key, revision in self.known.items() if key[1] > gone.get(key[0], 0)}
        for fact in made.ingested:
            fresh = KnownRevision(revision=fact.revision, effective_from=fact.effective_from, position=fact.position)
            known.setdefault((fact.document_id, fact.revision), fresh)
        for stored in made.stored:
            key = (stored.document_id, stored.revision)
            known[key] = replace(known[key], stored=True)
        return known

    def _loaded(self, facts: Sequence[Fact]) -> dict[str, DocumentState]:
        found = {}
        for fact in facts:
            if fact.document_id in self.states:
                asked = [other.revision for other in facts if other.document_id == fact.document_id]
                found[fact.document_id] = _with_digests(
                    self.states[fact.document_id],
                    {
                        revision: self.digests[fact.document_id, revision]
                        for revision in asked
                        if (fact.document_id, revision) in self.digests
                    },
                )
        return found

    def _write_lanes(self, made: Plan, forces: Mapping[RevisionKey, Force], facts: Sequence[Fact]) -> None:
        if facts[-1].position <= self.lane_position:
            return
        again = self.lane_position >= facts[0].position
        for document, _ in made.erased:
            for key in [key for key in self.lanes if key[0] == document]:
                del self.lanes[key]
        stored = {(fact.document_id, fact.revision): fact for fact in made.stored}
        for key, force in forces.items():
            if key in stored:
                self.lanes[key] = Held(stored[key], force)
            elif again or self.forces[key] != force:
                self.lanes[key] = Held(self.chunks[key], force)
        self.lane_position = facts[-1].position

    def _write_rows(self, made: Plan, forces: Mapping[RevisionKey, Force]) -> None:
        self.known = self._known(made)
        for document, up_to in made.erased:
            for rows in (self.digests, self.forces, self.chunks):
                for key in [key for key in rows if key[0] == document and key[1] <= up_to]:
                    del rows[key]
        for fact in made.ingested:
            key = (fact.document_id, fact.revision)
            self.digests[key] = fact.settings_digest
        for stored in made.stored:
            self.chunks[stored.document_id, stored.revision] = stored
        for state in made.states:
            self.states[state.document_id] = _with_digests(state, {})
        self.forces |= forces
        self.signals |= {(fact.document_id, fact.revision, fact.position) for fact in made.indexed}


def _told(made: Plan, facts: Sequence[Fact], known: Mapping[RevisionKey, KnownRevision]) -> Iterator[living.Fact]:
    for fact in facts:
        moment = from_instant(fact.position % 6)
        if isinstance(fact, Retired):
            yield living.Retired(document_id=fact.document_id, position=fact.position, at=moment)
        elif isinstance(fact, Erased):
            yield living.Erased(document_id=fact.document_id, revision=fact.revision, position=fact.position)
        elif isinstance(fact, Embedded) and fact in made.embedded:
            revision = known[fact.document_id, fact.revision]
            yield living.RevisionFacts(
                document_id=fact.document_id,
                revision=fact.revision,
                position=revision.position,
                effective_at=from_instant(revision.effective_from),
                recorded_at=moment,
            )


def _with_digests(state: DocumentState, digests: dict[int, str]) -> DocumentState:
    return DocumentState(
        document_id=state.document_id,
        latest_revision=state.latest_revision,
        latest_digest=state.latest_digest,
        current_revision=state.current_revision,
        current_digest=state.current_digest,
        current_count=state.current_count,
        retired=state.retired,
        erased_revision=state.erased_revision,
        digests=digests,
    )


def _cuts(facts: Sequence[Fact], sizes: Sequence[int]) -> Iterator[Sequence[Fact]]:
    at = 0
    for size in (*sizes, len(facts)):
        if at < len(facts):
            yield facts[at : at + size]
            at += size


@given(histories(), st.lists(st.integers(1, 6), max_size=12))
def test_the_cut_into_batches_does_not_matter(facts: list[Fact], sizes: list[int]) -> None:
    one_by_one, batched = World(), World()
    for fact in facts:
        one_by_one.apply([fact])
    for batch in _cuts(facts, sizes):
        batched.apply(batch)
    assert batched.states == one_by_one.states
    assert batched.known == one_by_one.known
    assert batched.forces == one_by_one.forces
    assert batched.chunks == one_by_one.chunks
    assert batched.lanes == one_by_one.lanes
    assert batched.signals == one_by_one.signals


@given(histories(), st.lists(st.integers(1, 6), max_size=12), st.integers(0, 24), st.integers(1, 6))
def test_a_crash_between_lanes_and_rows_leaves_no_trace(
    facts: list[Fact], sizes: list[int], crash_at: int, ahead: int
) -> None:
    whole, crashed = World(), World()
    for fact in facts:
        whole.apply([fact])
    done = 0
    for batch in _cuts(facts, sizes):
        if done <= crash_at < done + len(batch):
            # The lanes get a batch that ends elsewhere than the one that comes after the restart.
            crashed.apply(facts[done : done + ahead], crash_before_rows=True)
        crashed.apply(batch)
        done += len(batch)
    assert crashed.states == whole.states
    assert crashed.forces == whole.forces
    assert crashed.lanes == whole.lanes


@given(histories())
def test_no_document_is_found_that_its_state_does_not_show(facts: list[Fact]) -> None:
    world = World()
    for fact in facts:
        world.apply([fact])
    shown = {(document, state.current_revision) for document, state in world.states.items() if state.current_revision}
    assert {key for key, held in world.lanes.items() if held.force.current} == shown


@given(histories())
def test_what_the_lanes_hold_is_what_the_rows_hold(facts: list[Fact]) -> None:
    world = World()
    for fact in facts:
        world.apply([fact])
    assert world.lanes == {key: Held(fact, world.forces[key]) for key, fact in world.chunks.items()}


@given(histories())
def test_revisions_of_a_document_are_in_force_one_after_the_other(facts: list[Fact]) -> None:
    world = World()
    for fact in facts:
        world.apply([fact])
    for document in DOCUMENTS:
        for at in range(10):
            held = [force for (name, _), force in world.forces.items() if name == document]
            assert sum(force.effective_from <= at < force.in_force_until for force in held) <= 1
