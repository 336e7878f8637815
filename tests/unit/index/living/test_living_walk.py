"""A walk along relations stays within its bounds; series come in order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.index.domain.living.graph import Graph
from services.index.domain.living.values import Fact, RevisionFacts, Statement
from services.index.domain.living.walk import Bounds, members, walk

DAY_0 = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    """A day."""
    return DAY_0 + timedelta(days=number)


def doc(name: str, position: int, number: int = 0, **metadata: str) -> RevisionFacts:
    """A document."""
    return RevisionFacts(
        document_id=name, revision=1, position=position, effective_at=day(number), recorded_at=DAY_0,
        source_id=f"{name}.md", metadata=metadata,
    )  # fmt: skip


def edge(
    source: str, kind: str, target: str, position: int, *, ppm: int = 1_000_000, since: int | None = None
) -> Statement:
    """A relation."""
    return Statement(
        source_id=source, type=kind, target_id=target, position=position, recorded_at=DAY_0, confidence_ppm=ppm,
        effective_at=None if since is None else day(since),
    )  # fmt: skip


FACTS: tuple[Fact, ...] = (
    *(doc(name, position) for position, name in enumerate("abcdefg", 1)),
    doc("x", 8, 0, replaces="nowhere", see_also="b"),
    edge("a", "cites", "b", 11, ppm=500_000),
    edge("a", "cites", "c", 12, ppm=900_000),
    edge("d", "implements", "a", 13, ppm=900_000),
    edge("b", "elaborates", "e", 14),
    edge("a", "supersedes", "f", 15, since=50),
    edge("a", "cites", "unknown", 16),
    edge("a", "cites", "a", 17),
)


def bounds(*, depth: int = 1, fan_out: int = 20, types: tuple[str, ...] = (), as_of: int = 10, at: int = 0) -> Bounds:
    """Bounds with defaults."""
    return Bounds(depth=depth, fan_out=fan_out, types=frozenset(types), as_of=day(as_of), at=at)


def reached(start: str, within: Bounds) -> list[str]:
    """Documents that a walk reaches."""
    graph = Graph()
    graph.apply(FACTS)
    return list(walk(graph, [start], within).documents)


def test_the_most_certain_comes_first_then_the_lower_id() -> None:
    assert reached("a", bounds()) == ["c", "d", "b"]
    assert reached("a", bounds(fan_out=2)) == ["c", "d"]


def test_depth_types_and_moments() -> None:
    assert reached("a", bounds(depth=2)) == ["c", "d", "b", "e", "x"]
    assert reached("a", bounds(depth=4, types=("implements",))) == ["d"]
    assert reached("a", bounds(as_of=50)) == ["f", "c", "d", "b"]
    assert reached("a", bounds(at=12)) == ["c", "b"]
    assert reached("b", bounds(at=11)) == ["x", "a"]
    assert reached("b", bounds(at=7)) == []


def test_waiting_edges_of_where_it_begins_are_told() -> None:
    graph = Graph()
    graph.apply(FACTS)
    found = walk(graph, ["x"], bounds())
    assert [(one.type, one.target, one.reference) for one in found.edges] == [
        ("cites", "b", "b"),
        ("supersedes", "", "nowhere"),
    ]
    assert [one.type for one in walk(graph, ["x"], bounds(types=("cites",))).edges] == ["cites"]


def test_what_a_revision_no_longer_says_is_not_walked() -> None:
    graph = Graph()
    later = RevisionFacts(
        document_id="x", revision=2, position=20, effective_at=day(5), recorded_at=DAY_0, source_id="x.md"
    )
    graph.apply([*FACTS, later])
    assert walk(graph, ["x"], bounds(as_of=4)).documents == ("b",)
    assert walk(graph, ["x"], bounds(as_of=5)).documents == ()


def test_a_series_is_in_order_of_its_versions() -> None:
    graph = Graph()
    graph.apply(
        [
            doc("a", 1, 0, family="Manual", version="1.10"),
            doc("b", 2, 1, family="manual", version="1.9"),
            doc("c", 3, 2, family="manual", version="1.2"),
            doc("d", 4, 90, family="manual", version="2"),
            doc("e", 5, 0, family="manual", version="1.2"),
        ]
    )
    moved = RevisionFacts(
        document_id="c", revision=2, position=9, effective_at=day(5), recorded_at=DAY_0, metadata={"family": "other"}
    )
    assert [key[0] for key in members(graph, "MANUAL", day(4))] == ["e", "c", "b", "a"]
    graph.apply([moved])
    assert [key[0] for key in members(graph, "manual", day(6))] == ["e", "b", "a"]


def test_links_are_walked_as_citations() -> None:
    graph = Graph()
    linking = RevisionFacts(
        document_id="l", revision=1, position=30, effective_at=DAY_0, recorded_at=DAY_0, source_id="l.md",
        links=("a.md#part", "#here", "mailto:x"),
    )  # fmt: skip
    graph.apply([*FACTS, linking])
    assert walk(graph, ["l"], bounds()).documents == ("a",)
