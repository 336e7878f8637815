"""Living states are a function of what is known, however it came to be known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.index.domain.living import values
from services.index.domain.living.graph import Graph, scratch
from services.index.domain.living.values import (
    Erased,
    Fact,
    Retired,
    RevisionFacts,
    Rules,
    Statement,
    Window,
    state_at,
)

DAY_0 = datetime(2020, 1, 1, tzinfo=UTC)
LATEST = 400
STATUS = ("", "", "", "Accepted", "Draft", "Rejected", "Superseded", "Superseded", "Deferred", "Historic")
HEADERS = ("Supersedes", "Replaced-By", "Contradicts", "Version-Of", "See-Also")
TYPES = (
    values.SUPERSEDES,
    values.SUPERSEDES,
    values.CONTRADICTS,
    values.CONTRADICTS,
    values.IS_VERSION_OF,
    values.ELABORATES,
)
STRANGERS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def moment(days: int) -> datetime:
    """An instant some days after the first one."""
    return DAY_0 + timedelta(days=days)


def history(seed: int, size: int) -> list[Fact]:
    """A random history: revisions, statements, often about the same edge again, retirements, erasures and rules."""
    chance = random.Random(seed)
    documents = max(3, size // 5)
    facts: list[Fact] = []
    revisions: dict[int, int] = {}
    for position in range(1, size + 1):
        one, other = chance.randrange(documents), chance.randrange(documents)
        kind = chance.random()
        if kind < 0.55:
            revisions[one] = revisions.get(one, 0) + 1
            facts.append(revision(chance, one, other, revisions[one], position))
        elif kind < 0.9:
            stated = [fact for fact in facts if isinstance(fact, Statement)]
            again = chance.choice(stated) if stated and chance.random() < 0.3 else None
            facts.append(
                Statement(
                    source_id=again.source_id if again else f"d{one}",
                    type=again.type if again else chance.choice(TYPES),
                    target_id=again.target_id if again else f"d{other}",
                    position=position,
                    recorded_at=moment(LATEST),
                    effective_at=moment(chance.randrange(300)) if chance.random() < 0.4 else None,
                    withdrawn=chance.random() < 0.15,
                )
            )
        elif kind < 0.95:
            facts.append(Retired(document_id=f"d{one}", position=position, at=moment(chance.randrange(300))))
        elif kind < 0.98:
            gone = chance.randint(0, revisions.get(one, 0))
            facts.append(Erased(document_id=f"d{one}", revision=gone, position=position))
        else:
            facts.append(rules(chance, position))
    return facts


def rules(chance: random.Random, position: int) -> Rules:
    """Rules that a crate may have."""
    return Rules(
        position=position,
        status_words={"historic": chance.choice(("dormant", "active"))},
        windows={"": Window(stale_after_days=chance.choice((0, 90)), dormant_after_days=chance.choice((0, 60)))},
        superseding_series=frozenset(chance.choice(((), ("*",), ("series 1",)))),
    )


def revision(chance: random.Random, one: int, other: int, number: int, position: int) -> RevisionFacts:
    """A revision with what its header may say. Titles and stems are shared, so that names of others may be ambiguous."""
    metadata = {"status": chance.choice(STATUS)}
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        name = chance.choice(
            (f"doc-{other % 5}", f"{other % 5}", f"Title {other % 4}", f"part-{other}/doc-{other % 5}.md")
        )
        metadata[chance.choice(HEADERS)] = name
    if chance.random() < 0.1:
        metadata["withdrawn_on"] = moment(chance.randrange(300)).date().isoformat()
    if chance.random() < 0.1:
        metadata["review_by"] = moment(chance.randrange(300)).date().isoformat()
    if chance.random() < 0.1:
        metadata["superseded_on"] = moment(chance.randrange(300)).date().isoformat()
    if chance.random() < 0.5:
        metadata |= {"family": f"series {one % 4}", "version": f"1.{one}"}
    title = chance.choice(("", "", "Erratum", f"Title {one % 4}", f"Title {one % 4}", f"DEPRECATED: Title {other % 4}"))
    return RevisionFacts(
        document_id=f"d{one}",
        revision=number,
        position=position,
        effective_at=moment(chance.randrange(300)),
        recorded_at=moment(chance.choice((LATEST, chance.randrange(300)))),
        source_id=f"part-{one}/doc-{one % 5}.md",
        title=title,
        metadata=metadata,
    )


@given(st.integers(0, 1 << 30), st.integers(1, 80))
@settings(STRANGERS, max_examples=60)
def test_neither_the_order_of_arrival_nor_the_cut_into_batches_changes_anything(seed: int, size: int) -> None:
    facts = history(seed, size)
    shuffled = facts.copy()
    chance = random.Random(seed + 1)
    chance.shuffle(shuffled)
    graph = Graph()
    while shuffled:
        count = chance.choice((1, 1, 2, 5))
        graph.apply(shuffled[:count])
        del shuffled[:count]
    assert graph.timelines == scratch(facts)


@given(st.integers(0, 1 << 30))
@settings(STRANGERS, max_examples=25)
def test_fact_by_fact_equals_from_scratch_at_every_prefix(seed: int) -> None:
    facts = history(seed, 60)
    graph = Graph()
    told: dict[values.RevisionKey, values.Timeline] = {}
    for count, fact in enumerate(facts, 1):
        for key, timeline in graph.apply([fact]).items():
            if timeline is None:
                del told[key]
            else:
                told[key] = timeline
        assert told == graph.timelines == scratch(facts[:count])


@given(st.integers(0, 1 << 30))
@settings(STRANGERS, max_examples=1)
def test_long_histories_equal_from_scratch_at_every_prefix(seed: int) -> None:
    facts = history(seed, 300)
    graph = Graph()
    for count, fact in enumerate(facts, 1):
        graph.apply([fact])
        assert graph.timelines == scratch(facts[:count])


@given(st.integers(0, 1 << 30), st.integers(2, 60))
@settings(STRANGERS, max_examples=300)
def test_a_state_never_depends_on_what_takes_effect_later(seed: int, size: int) -> None:
    facts = history(seed, size)
    now = moment(random.Random(seed + 2).randrange(300))
    whole, part = scratch(facts), scratch(known for fact in facts for known in _until(fact, now))
    for key, timeline in part.items():
        assert state_at(timeline, now) == state_at(whole[key], now), key
    for key in whole.keys() - part.keys():
        assert state_at(whole[key], now) is None, key


def _until(fact: Fact, now: datetime) -> Iterator[Fact]:
    """What is left of a fact when nothing is known that takes effect after an instant."""
    match fact:
        case RevisionFacts():
            known = fact.effective_at <= now
        case Retired():
            known = fact.at <= now
        case Statement():
            known = fact.withdrawn or fact.effective_at is None or fact.effective_at <= now
        case Erased() | Rules():
            known = True
    if known:
        yield fact
    elif isinstance(fact, Statement):
        # Stating an edge anew takes back what was stated before at once, whenever the new one takes effect.
        yield replace(fact, withdrawn=True)


@given(st.integers(0, 1 << 30), st.integers(1, 60))
@settings(STRANGERS, max_examples=20)
def test_a_replay_gives_the_same_history(seed: int, size: int) -> None:
    facts = history(seed, size)
    one, other = Graph(), Graph()
    for fact in facts:
        assert one.apply([fact]) == other.apply([fact])
        assert one.apply([fact]) == {}
