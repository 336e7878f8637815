"""How replies and states are judged."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from tests.audit import judging
from tests.audit.corpus import CorpusDocument, CorpusQuery
from tests.audit.judging import CONTEXT, CONTRA, Cited, Verdict

A, B, C, D = (Cited(name) for name in "abcd")


def asked(
    expected: str, *, kind: str = "current-version", forbidden: str = "", match: str = "all", state: str = ""
) -> CorpusQuery:
    return CorpusQuery(
        "q", "?", dict.fromkeys(expected, 1.0), kind, forbidden=tuple(forbidden), match=match, expected_state=state
    )


def judged(query: CorpusQuery, cited: Sequence[Cited], **truths: str) -> Verdict:
    return judging.judge(query, cited, truths)


def test_the_expected_document_is_among_the_first_three() -> None:
    assert judged(asked("c"), [A, B, C, D]).right
    assert not judged(asked("d"), [A, B, C, D]).right
    assert judged(asked("d"), [A, B, A, B, D]).right, "a document counts once, however often it is cited"


def test_first_means_cited_first() -> None:
    assert judged(asked("a"), [A, B]).first
    assert not judged(asked("b"), [A, B]).first
    assert not judged(asked("b"), []).first


def test_all_or_any_of_the_expected_documents() -> None:
    assert judged(asked("ab"), [B, C, A]).right
    assert not judged(asked("ab"), [B, C]).right
    assert judged(asked("ab", match="any"), [B, C]).right
    assert judged(asked("ab"), [B, C, D, A]).complete
    assert not judged(asked("ab"), [B, C, D, A]).right


def test_a_forbidden_document_must_not_be_the_answer() -> None:
    verdict = judged(asked("a", forbidden="d"), [A, B, C, D])
    assert not verdict.right
    assert verdict.cited
    assert verdict.problem == "forbidden cited as the answer: d"


@pytest.mark.parametrize("role", [CONTEXT, CONTRA])
def test_a_forbidden_document_may_be_mentioned(role: str) -> None:
    assert judged(asked("a", forbidden="b"), [A, Cited("b", role)]).right
    assert not judged(asked("a", forbidden="b"), [A, Cited("b", role), B]).right, "it supports in another place"


def test_a_mention_that_supports_later_keeps_its_place_and_state() -> None:
    found = judging.distinct([Cited("b", CONTEXT, "stale"), A, B])
    assert found == (Cited("b", "support", "stale"), A)


@pytest.mark.parametrize(
    ("state", "expected", "right"),
    [
        ("stale", "stale", True),
        ("superseded", "deprecated", True),
        ("not_in_force_yet", "dormant", True),
        ("active", "stale", False),
        ("", "stale", False),
    ],
)
@pytest.mark.parametrize("kind", ["stale", "withdrawn-or-dormant"])
def test_out_of_date_documents_have_to_be_flagged(kind: str, state: str, expected: str, right: bool) -> None:
    verdict = judged(asked("a", kind=kind, state=expected), [Cited("a", state=state)])
    assert (verdict.right, verdict.flagged) == (right, right)
    assert verdict.cited
    assert verdict.problem == ("" if right else "cited without a state that warns")


def test_contested_wants_both_sides_and_not_their_source() -> None:
    query = asked("abs", kind="contested", state="contested")
    truths = {"a": "contested", "b": "contested", "s": "active"}
    sides = [Cited("a", CONTRA, "contested"), Cited("b", CONTRA, "contested")]
    both = judged(query, sides, **truths)
    assert (both.right, both.flagged, both.complete) == (True, True, False)
    assert not judged(query, [*sides[:1], Cited("s")], **truths).right
    assert judged(query, [*sides, Cited("s")], **truths).complete
    assert judged(query, [A, B], **truths).right
    assert not judged(query, [A, B], **truths).flagged


def test_nothing_cited_is_said() -> None:
    assert judged(asked("a"), []).problem == "nothing cited"
    assert judged(asked("a"), [B]).problem == "expected not among the first 3 cited"


@pytest.mark.parametrize(
    ("domains", "share"),
    [("xy", 1.0), ("xyzz", 0.0), ("xxyzww", 0.0), ("xxy", 1 / 3), ("xx", 1.0), ("x", 1.0), ("", 0.0)],
)
def test_fragility_leaves_out_each_document_in_turn(domains: str, share: float) -> None:
    assert judging.fragility({str(number): domain for number, domain in enumerate(domains)}, 2) == pytest.approx(share)


def test_fragility_of_every_small_set() -> None:
    for size in range(1, 5):
        for domains in itertools.product("xyz", repeat=size):
            breaking = sum(len(set(domains[:at] + domains[at + 1 :])) < 2 for at in range(size))
            found = judging.fragility({str(number): domain for number, domain in enumerate(domains)}, 2)
            assert found == pytest.approx(breaking / size), domains


def test_states_are_counted_by_basis() -> None:
    documents = [
        CorpusDocument("a", "", "", b"", accept=("superseded", "deprecated"), basis="relation"),
        CorpusDocument("b", "", "", b"", accept=("superseded",), basis="relation"),
        CorpusDocument("c", "", "", b"", accept=("active",), basis="default"),
        CorpusDocument("d", "", "", b"", accept=("stale",), basis="date"),
        CorpusDocument("e", "", "", b"", basis="unscored"),
    ]
    counts, wrong = judging.judge_states(documents, {"a": "deprecated", "b": "active", "c": "active"})
    assert counts == {"relation": (1, 2), "default": (1, 1), "date": (0, 1)}
    assert [document.id for document in wrong] == ["b", "d"]
