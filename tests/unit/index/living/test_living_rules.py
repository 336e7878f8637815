"""Each rule of the living state, its place among the others, and its boundaries."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from services.index.domain.living.graph import Graph, scratch
from services.index.domain.living.values import (
    Erased,
    Fact,
    Retired,
    RevisionFacts,
    Rules,
    Statement,
    Timeline,
    Window,
    next_change,
    state_at,
)

MICROSECOND = timedelta(microseconds=1)


def day(number: int) -> datetime:
    """A day of 2020, counted from 0."""
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=number)


def doc(name: str, number: int = 0, *, revision: int = 1, title: str = "", **metadata: str) -> RevisionFacts:
    """A revision that is effective on a day; its position goes by name and revision."""
    return RevisionFacts(
        document_id=name,
        revision=revision,
        position=ord(name[0]) * 10 + revision,
        effective_at=day(number),
        recorded_at=day(number),
        source_id=f"{name}.md",
        title=title,
        metadata=metadata,
    )


def edge(source: str, kind: str, target: str, effective: int | None = None, *, position: int = 1) -> Statement:
    """A declared relation."""
    return Statement(
        source_id=source,
        type=kind,
        target_id=target,
        position=position,
        recorded_at=day(500),
        effective_at=None if effective is None else day(effective),
    )


def at(facts: list[Fact], name: str, number: int, revision: int = 1) -> str:
    """State and rule on a day."""
    return told(scratch(facts)[name, revision], day(number))


def told(timeline: Timeline, moment: datetime) -> str:
    """State and rule at an instant."""
    span = state_at(timeline, moment)
    return f"{span.verdict.state} {span.verdict.rule}" if span else "none"


LATE = 400
TABLE: dict[str, tuple[list[Fact], str]] = {
    "nothing said": ([doc("a")], "active default"),
    "in force by word": ([doc("a", status="Final")], "active status_word"),
    "withdrawn on a date": ([doc("a", withdrawn_on="2020-02-01")], "deprecated withdrawn"),
    "notice as own title": ([doc("a", title="DEPRECATED: Old guide")], "deprecated notice"),
    "deprecated in front matter": ([doc("a", deprecated="true")], "deprecated notice"),
    "named by a notice": (
        [doc("a", title="Old guide"), doc("n", 9, title="ARCHIVED: Old guide v3 - see the new one")],
        "deprecated named_by_notice",
    ),
    "retired": ([doc("a"), Retired(document_id="a", position=5000, at=day(9))], "deprecated retired"),
    "retired, then put again": (
        [doc("a"), Retired(document_id="a", position=975, at=day(9)), doc("a", 10, revision=9)],
        "deprecated retired",
    ),
    "objection whose target was superseded": (
        [doc("a", 2), doc("b"), doc("c", 3), edge("a", "contradicts", "b"), edge("c", "supersedes", "b")],
        "deprecated objection",
    ),
    "it superseded what it contradicted": (
        [doc("a", 2), doc("b"), edge("a", "contradicts", "b"), edge("a", "supersedes", "b")],
        "active default",
    ),
    "two that contradict each other are no objections": (
        [
            doc("a", 2), doc("b"), doc("c", 3),
            edge("a", "contradicts", "b"), edge("b", "contradicts", "a"), edge("c", "supersedes", "b"),
        ],
        "active default",
    ),
    "erratum whose target was superseded": (
        [doc("a", 2, title="Guide v2 Errata"), doc("b"), doc("c", 3), edge("a", "elaborates", "b"), edge("c", "supersedes", "b")],
        "deprecated erratum",
    ),
    "superseded by an edge": ([doc("a"), doc("b", 1), edge("b", "supersedes", "a")], "superseded supersedes"),
    "superseded by its own header": ([doc("a", superseded_by="b"), doc("b", 1)], "superseded supersedes"),
    "superseded by the newer one's header alone": ([doc("a", status="Final"), doc("b", 1, Replaces="a")], "superseded supersedes"),
    "final, but superseded by": ([doc("a", status="Final", superseded_by="b"), doc("b", 1)], "superseded supersedes"),
    "status names the successor": ([doc("a", status="Superseded by [B](b.md)"), doc("b", 1)], "superseded supersedes"),
    "superseded by word": ([doc("a", status="Obsolete")], "superseded status_word"),
    "superseded by a flag": ([doc("a", obsolete="yes")], "superseded status_word"),
    "objection to what isn't known": ([doc("a"), edge("a", "contradicts", "b")], "active default"),
    "review without a date": ([doc("a", last_reviewed_on="2020-01-01", review_in="9000 years")], "active default"),
    "superseded on a date": ([doc("a", superseded_on="2020-03-01")], "superseded superseded_on"),
    "replaced on the day of its withdrawal": (
        [doc("a", withdrawn_on="2020-01-10"), doc("b", 9), edge("b", "supersedes", "a")],
        "superseded supersedes",
    ),
    "withdrawn after it was replaced": (
        [doc("a", withdrawn_on="2020-02-10"), doc("b", 9), edge("b", "supersedes", "a")],
        "deprecated withdrawn",
    ),
    "a draft retires nothing": ([doc("a"), doc("b", 1, status="Draft"), edge("b", "supersedes", "a")], "active default"),
    "a rejected one retires nothing": ([doc("a"), doc("b", 1, status="Rejected", Replaces="a")], "active default"),
    "a withdrawn higher version retires nothing": (
        [doc("a", version="1.2"), doc("b", 1, version="2.0", status="Withdrawn", Replaces="a", version_of="a")],
        "active default",
    ),
    "a deferred one retires nothing": ([doc("a"), doc("b", 1, status="Deferred"), edge("b", "supersedes", "a")], "active default"),
    "not effective yet": ([doc("a"), doc("b", 900), edge("b", "supersedes", "a")], "active default"),
    "edge to come": ([doc("a"), doc("b", 1), edge("b", "supersedes", "a", 900)], "active default"),
    "a successor that was withdrawn later": (
        [doc("a"), doc("b", 1, status="Withdrawn", withdrawn_on="2020-03-01"), edge("b", "supersedes", "a")],
        "superseded supersedes",
    ),
    "supersession doesn't spread": (
        [doc("a"), doc("b"), doc("c", 1), edge("b", "cites", "a"), edge("c", "supersedes", "b")],
        "active default",
    ),
    "a higher number alone": ([doc("a", family="f", version="1"), doc("b", 1, family="f", version="2")], "active default"),
    "version of, by number": (
        [doc("a", 5, version="1.9"), doc("b", version="1.10"), edge("a", "is_version_of", "b")],
        "superseded is_version_of",
    ),
    "version of, without numbers": ([doc("a"), doc("b", 1), edge("b", "is_version_of", "a")], "superseded is_version_of"),
    "version of an unknown one": ([doc("a"), edge("a", "is_version_of", "b")], "active default"),
    "an edge wins over number order": (
        [doc("a", version="1.9"), doc("b", 1, version="1.10", version_of="a"), edge("a", "supersedes", "b", 2)],
        "active default",
    ),
    "series": (
        [doc("a", family="F", version="1.9"), doc("b", 1, family="f", version="1.10"), Rules(position=1, superseding_series=frozenset("*"))],
        "superseded series",
    ),
    "series whose newest was rolled back": (
        [
            doc("a", family="f", version="1.9"), doc("b", 1, family="f", version="1.10"),
            edge("a", "supersedes", "b", 2), Rules(position=1, superseding_series=frozenset({"f"})),
        ],
        "active default",
    ),
    "series whose newest is a draft": (
        [
            doc("a", family="f", version="1"), doc("b", 1, family="f", version="2", status="draft"),
            Rules(position=1, superseding_series=frozenset({"f"})),
        ],
        "active default",
    ),
    "series whose newest is a pre-release": (
        [
            doc("a", family="f", version="1"), doc("b", 1, family="f", version="2.0-beta1"),
            Rules(position=1, superseding_series=frozenset({"f"})),
        ],
        "active default",
    ),
    "deprecated by word": ([doc("a", status="Historical")], "deprecated status_word"),
    "contested": ([doc("a"), doc("b", 1), edge("b", "contradicts", "a")], "contested contradicts"),
    "contested by a draft": ([doc("a"), doc("b", 1, status="draft"), edge("b", "contradicts", "a")], "active default"),
    "the objection was superseded": (
        [doc("a"), doc("b", 1), doc("c", 2), edge("b", "contradicts", "a"), edge("c", "supersedes", "b")],
        "active default",
    ),
    "the source of a one-way objection": ([doc("a"), doc("b", 1), edge("a", "contradicts", "b")], "active default"),
    "resolved by one that supersedes both": (
        [
            doc("a"), doc("b"), doc("c", 2), edge("a", "contradicts", "b"), edge("b", "contradicts", "a"),
            edge("c", "supersedes", "a"), edge("c", "supersedes", "b"),
        ],
        "superseded supersedes",
    ),
    "circle": ([doc("a"), doc("b"), edge("a", "supersedes", "b"), edge("b", "supersedes", "a")], "contested supersedes_cycle"),
    "circle of three": (
        [doc("a"), doc("b"), doc("c"), edge("a", "supersedes", "b"), edge("b", "supersedes", "c"), edge("c", "supersedes", "a")],
        "contested supersedes_cycle",
    ),
    "superseded from outside the circle": (
        [doc("a"), doc("b"), doc("c"), edge("a", "supersedes", "b"), edge("b", "supersedes", "a"), edge("c", "supersedes", "a")],
        "superseded supersedes",
    ),
    "supersedes itself": ([doc("a"), edge("a", "supersedes", "a")], "active default"),
    "review is due": ([doc("a", review_by="2020-03-01")], "stale review_date"),
    "reviewed, and due again": ([doc("a", last_reviewed_on="2019-10-31", review_in="6 months")], "stale review_date"),
    "expired": ([doc("a", valid_until="1 March 2020")], "stale expiry_date"),
    "stale by window": ([doc("a"), Rules(position=1, windows={"": Window(stale_after_days=30)})], "stale window"),
    "window of its class": (
        [doc("a", document_class="memo"), Rules(position=1, windows={"memo": Window(dormant_after_days=30)})],
        "dormant window",
    ),
    "a relation within the window": (
        [doc("a"), doc("b", 390), edge("b", "cites", "a"), Rules(position=1, windows={"": Window(stale_after_days=30)})],
        "active default",
    ),
    "dormant by word": ([doc("a", status="on_hold")], "dormant status_word"),
    "the crate's own word": ([doc("a", status="Sunset"), Rules(position=1, status_words={"sunset": "deprecated"})], "deprecated status_word"),
    "a known word as the crate means it": ([doc("a", status="Review"), Rules(position=1, status_words={"REVIEW": "dormant"})], "dormant status_word"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_rule(name: str) -> None:
    facts, expected = TABLE[name]
    assert at(facts, "a", LATE) == expected


def test_intervals_are_closed_open_to_the_microsecond() -> None:
    facts: list[Fact] = [doc("a"), doc("b", 10), edge("b", "supersedes", "a")]
    timeline = scratch(facts)["a", 1]
    assert told(timeline, day(10) - MICROSECOND) == "active default"
    assert told(timeline, day(10)) == "superseded supersedes"
    assert told(timeline, day(0) - MICROSECOND) == "none"
    assert next_change(timeline, day(9)) == day(10)
    assert next_change(timeline, day(10)) is None


def test_revisions_give_way_to_newer_ones_at_their_effective_time() -> None:
    facts: list[Fact] = [doc("a"), doc("a", 10, revision=2), doc("a", 5, revision=3)]
    assert [at(facts, "a", number) for number in (4, 5)] == ["active default", "superseded next_revision"]
    assert at(facts, "a", 10, 2) == "superseded next_revision"
    assert at(facts, "a", 10, 3) == "active default"


def test_what_a_revision_says_ends_with_it() -> None:
    facts: list[Fact] = [doc("a"), doc("b", 1, Replaces="a"), doc("b", 10, revision=2)]
    assert [at(facts, "a", number) for number in (0, 1, 9, 10)] == [
        "active default",
        "superseded supersedes",
        "superseded supersedes",
        "active default",
    ]


def test_a_bare_word_counts_from_the_start_whatever_edges_come_later() -> None:
    facts: list[Fact] = [doc("a", status="Superseded"), doc("b", 10), edge("b", "supersedes", "a")]
    assert [at(facts, "a", number) for number in (9, 10)] == ["superseded status_word", "superseded supersedes"]


def test_a_word_beside_a_named_successor_counts_from_its_edge_and_at_the_latest_from_its_record() -> None:
    named = replace(doc("a", status="Superseded", superseded_by="b"), recorded_at=day(20))
    later = doc("b", 10), doc("b", 30)
    assert [at([named], "a", number) for number in (10, 19, 20)] == [
        "active default",
        "active default",
        "superseded status_word",
    ]
    assert [at([named, later[0]], "a", number) for number in (9, 10)] == ["active default", "superseded supersedes"]
    assert [at([named, later[1]], "a", number) for number in (19, 20, 30)] == [
        "active default",
        "superseded status_word",
        "superseded supersedes",
    ]


def series(*numbers: int) -> list[Fact]:
    """Versions of one series, in force from the days given on, oldest version first."""
    versions = [
        doc(chr(ord("a") + place), number, family="F" if place % 2 else "f", version=f"1.{place}")
        for place, number in enumerate(numbers)
    ]
    return [*versions, Rules(position=1, superseding_series=frozenset({"F"}))]


def by_whom(facts: list[Fact], name: str) -> list[str]:
    """Who takes the place of a document, one span after the other."""
    return [span.verdict.other for span in scratch(facts)[name, 1].spans]


def test_the_next_newer_version_in_force_takes_the_place_of_one() -> None:
    assert [by_whom(series(0, 10, 20), name) for name in "abc"] == [["", "b"], ["", "c"], [""]]
    assert [by_whom(series(20, 10, 0), name) for name in "abc"] == [["b"], ["c"], [""]]
    assert [by_whom(series(0, 20, 10), name) for name in "abc"] == [["", "c", "b"], ["c"], [""]]


def test_a_version_that_goes_out_of_force_gives_its_place_to_the_one_after_it_or_back() -> None:
    gone = Retired(document_id="b", position=9000, at=day(15))
    assert by_whom([*series(0, 10, 20), gone], "a") == ["", "b", "", "c"]
    assert by_whom([*series(0, 10, 12), gone], "a") == ["", "b", "c"]
    assert by_whom([*series(0, 10), gone], "a") == ["", "b", ""]
    assert by_whom([*series(0, 10), replace(gone, at=day(5))], "a") == [""]
    assert by_whom([*series(0, 10), doc("b", 5, revision=2, family="f", version="1.1")], "a") == ["", "b"]


def test_erasing_a_version_gives_its_place_back() -> None:
    graph = Graph()
    graph.apply(series(0, 10))
    graph.apply([Erased(document_id="b", revision=1, position=9000)])
    assert [span.verdict.other for span in graph.timelines["a", 1].spans] == [""]


def test_an_objection_ends_when_its_series_goes_on() -> None:
    facts: list[Fact] = [*series(0, 10), doc("z"), edge("a", "contradicts", "z")]
    assert [at(facts, "z", number) for number in (9, 10)] == ["contested contradicts", "active default"]


def test_a_draft_is_active_and_not_in_force_yet() -> None:
    timeline = scratch([doc("a", status="Proposed")])["a", 1]
    assert timeline.not_in_force_yet
    assert told(timeline, day(1)) == "active status_word"


def test_superseded_on_a_date_to_come() -> None:
    facts: list[Fact] = [doc("a", superseded_on="2020-01-11")]
    assert [at(facts, "a", number) for number in (9, 10)] == ["active default", "superseded superseded_on"]


def test_rules_that_only_came_again_change_nothing() -> None:
    graph = Graph()
    graph.apply([doc("a"), Rules(position=3, status_words={"x": "draft"})])
    assert graph.apply([Rules(position=9, status_words={"x": "draft"})]) == {}
    assert graph.apply([Rules(position=4, windows={"": Window(stale_after_days=1)})]) == {}
    assert graph.rules.position == 9


def test_erasing_takes_revisions_for_good() -> None:
    graph = Graph()
    graph.apply([doc("a"), doc("b", 1, Replaces="a")])
    changes = graph.apply([Erased(document_id="b", revision=1, position=2000)])
    assert changes["b", 1] is None
    assert told(graph.timelines["a", 1], day(5)) == "active default"
    assert graph.apply([doc("b", 1, Replaces="a")]) == {}
    assert ("b", 2) in graph.apply([doc("b", 2, revision=2)])


def test_a_reference_waits_for_its_document() -> None:
    graph = Graph()
    graph.apply([doc("b", 1, Replaces="a")])
    assert [edge.reference for edge in graph.waiting("b")] == ["a"]
    assert told(graph.apply([doc("a")])["a", 1] or graph.timelines["a", 1], day(1)) == "superseded supersedes"
    assert graph.waiting("b") == ()


def test_many_edges_at_once_and_a_circle_that_opens() -> None:
    chain: list[Fact] = [edge(f"d{number}", "supersedes", f"d{number + 1}") for number in range(100)]
    facts: list[Fact] = [*(doc(f"d{number}", 100 - number) for number in range(101)), *chain]
    graph = Graph()
    graph.apply(facts)
    assert told(graph.timelines["d50", 1], day(200)) == "superseded supersedes"
    graph.apply([edge("d100", "supersedes", "d0")])
    assert told(graph.timelines["d50", 1], day(200)) == "contested supersedes_cycle"
    opened = Statement(
        source_id="d7", type="supersedes", target_id="d8", position=9, recorded_at=day(0), withdrawn=True
    )
    graph.apply([opened])
    assert told(graph.timelines["d50", 1], day(200)) == "superseded supersedes"
    assert told(graph.timelines["d8", 1], day(200)) == "active default"


def ring(*pairs: str, position: int, withdrawn: bool = False) -> list[Fact]:
    """Supersedes edges, each from its first letter to its second, stated or taken back."""
    return [replace(edge(pair[0], "supersedes", pair[1], position=position), withdrawn=withdrawn) for pair in pairs]


@pytest.mark.parametrize("letters", ["abc", "bca", "cab", "xyz", "qkd", "mno", "fgh", "rst"])
def test_circles_that_open_and_close_at_once(letters: str) -> None:
    # Several names, since the order in which edges of one batch are looked at goes by their hashes.
    one, two, three = list(letters)
    batches: list[list[Fact]] = [
        [*(doc(name) for name in letters), *ring(one + two, two + one, position=1)],
        [*ring(two + one, position=2, withdrawn=True), *ring(two + three, three + two, position=2)],
        ring(one + two, position=3, withdrawn=True),
        ring(three + two, position=4, withdrawn=True),
        ring(three + one, one + two, position=5),
    ]
    graph = Graph()
    known: list[Fact] = []
    for batch in batches:
        graph.apply(batch)
        known += batch
        assert graph.timelines == scratch(known)
    assert told(graph.timelines[two, 1], day(1)) == "contested supersedes_cycle"


def test_a_window_at_the_calendar_s_end_ends_with_it() -> None:
    rules = Rules(position=1, windows={"": Window(stale_after_days=30, dormant_after_days=2**32 - 1)})
    last = datetime.max.replace(tzinfo=UTC) - MICROSECOND
    for moment in (last, last - timedelta(days=29), last - timedelta(days=31)):
        never = replace(doc("a"), effective_at=moment)
        assert told(scratch([never, rules])["a", 1], moment - MICROSECOND) == "none"
        assert told(scratch([doc("b"), rules])["b", 1], moment) == "stale window"
