"""How long living states take: from scratch, for one new relation, and where one document has many.

Run: python -m tests.bench.bench_living
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta

from services.index.domain.living import values
from services.index.domain.living.graph import Graph
from services.index.domain.living.values import Fact, RevisionFacts, Statement

DOCUMENTS = 25_000
EDGES = 10_000
NEW_EDGES = 500
HUB_EDGES = 1_000
DAY_0 = datetime(2020, 1, 1, tzinfo=UTC)


def facts(chance: random.Random) -> list[Fact]:
    """Documents with headers as policies have them, and relations between them."""
    found: list[Fact] = [
        RevisionFacts(
            document_id=f"{number:032x}",
            revision=1,
            position=number + 1,
            effective_at=DAY_0 + timedelta(hours=number),
            recorded_at=DAY_0 + timedelta(hours=number),
            source_id=f"policies/policy-{number // 5}-v1.{number % 5}.md",
            title=f"Policy {number // 5} v1.{number % 5}",
            metadata={"status": chance.choice(("Final", "Draft", "Accepted")), "review_by": "2027-01-01"},
        )
        for number in range(DOCUMENTS)
    ]
    return found + [relation(chance, DOCUMENTS + number + 1) for number in range(EDGES)]


def relation(chance: random.Random, position: int) -> Statement:
    """A relation between two documents, more often to an older one."""
    one, other = sorted(chance.sample(range(DOCUMENTS), 2), reverse=chance.random() < 0.95)
    return Statement(
        source_id=f"{one:032x}",
        type=chance.choice(values.TYPES),
        target_id=f"{other:032x}",
        position=position,
        recorded_at=DAY_0,
    )


def hub_ms(kind: str, *, outward: bool) -> tuple[float, float]:
    """Give one document relations with `HUB_EDGES` others, each from another day on.

    Args:
        kind: Type of the relations.
        outward: Whether they lead from it or to it.

    Returns:
        Milliseconds for all of them at once, and for one more.
    """
    graph = Graph()
    ids = [f"{number:032x}" for number in range(HUB_EDGES + 2)]
    days = [DAY_0 + timedelta(days=number) for number in range(len(ids))]
    graph.apply(
        RevisionFacts(document_id=one, revision=1, position=number + 1, effective_at=day, recorded_at=day)
        for number, (one, day) in enumerate(zip(ids, days, strict=True))
    )
    edges = [
        Statement(
            source_id=ids[0] if outward else other,
            type=kind,
            target_id=other if outward else ids[0],
            position=len(ids) + number,
            recorded_at=DAY_0,
            effective_at=days[number],
        )
        for number, other in enumerate(ids[1:], start=1)
    ]
    took = []
    for part in (edges[:-1], edges[-1:]):
        began = time.perf_counter()
        graph.apply(part)
        took.append((time.perf_counter() - began) * 1_000)
    return took[0], took[1]


def main() -> None:
    """Measure and print."""
    chance = random.Random(7)
    known = facts(chance)
    graph = Graph()
    began = time.perf_counter()
    graph.apply(known)
    _print(f"{DOCUMENTS:,} documents, {EDGES:,} relations from scratch: {time.perf_counter() - began:.2f} s")
    took = []
    for number in range(NEW_EDGES):
        fact = relation(chance, DOCUMENTS + EDGES + number + 1)
        began = time.perf_counter()
        graph.apply([fact])
        took.append((time.perf_counter() - began) * 1_000)
    took.sort()
    _print(f"one new relation: median {statistics.median(took):.2f} ms, p99 {took[-5]:.2f} ms, worst {took[-1]:.2f} ms")
    for kind in (values.CONTRADICTS, values.SUPERSEDES, values.IS_VERSION_OF):
        for outward in (True, False):
            at_once, one_more = hub_ms(kind, outward=outward)
            where = f"{HUB_EDGES:,} {kind} {'from' if outward else 'to'} one document"
            _print(f"{where}: {at_once:.0f} ms, one more {one_more:.0f} ms")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
