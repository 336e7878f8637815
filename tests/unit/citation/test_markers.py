# ruff: noqa: RUF001  (the signs that models write are the subject here, look-alikes included)
"""Forms of markers, places, removals."""

from __future__ import annotations

import pytest

from services.citation.domain.markers import Repair, RepairKind
from services.citation.domain.repair import Repaired, repair

REMOVED, COLLAPSED, NORMALIZED = RepairKind.REMOVED, RepairKind.COLLAPSED, RepairKind.NORMALIZED


def test_g09() -> None:
    raw = (
        "The pump is rated 16 bar [1]. It is serviced once a year 【2】 and inspected every month ［3］. "
        "The rating is 16 bar [[1]]. The maker is in Oslo [7]. All of this holds [1][1, 3]."
    )
    result = repair(raw, 4)
    assert result.text == (
        "The pump is rated 16 bar [1]. It is serviced once a year [2] and inspected every month [3]. "
        "The rating is 16 bar [1]. The maker is in Oslo. All of this holds [1][3]."
    )
    assert result.cited == (1, 2, 3)
    assert result.unsupported == ("The maker is in Oslo.",)
    assert [(action.kind, action.before, action.after) for action in result.actions] == [
        (NORMALIZED, "【2】", "[2]"),
        (NORMALIZED, "［3］", "[3]"),
        (NORMALIZED, "[[1]]", "[1]"),
        (REMOVED, " [7]", ""),
        (COLLAPSED, "[1, 3]", "[3]"),
    ]
    assert [repair(raw, 4) for _ in range(2)] == [result, result]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a [1] b", "a [1] b"),
        ("a [ 4 ] b", "a [4] b"),
        ("a [[1]] b", "a [1] b"),
        ("a [[ 2 ]] b", "a [2] b"),
        ("a [[[1]]] b", "a [1] b"),
        ("a [1, 2] b", "a [1][2] b"),
        ("a [1,2;3、4] b", "a [1][2][3][4] b"),
        ("a [1-3] b", "a [1][2][3] b"),
        ("a [1–3] b", "a [1][2][3] b"),
        ("a [2 — 3] b", "a [2][3] b"),
        ("a [3-1] b", "a [1][2][3] b"),
        ("a ［1］ b", "a [1] b"),
        ("a 【1，2】 b", "a [1][2] b"),
        ("a 【１】 b", "a [1] b"),
        ("a [01] b", "a [1] b"),
        ("a [[1], [2]] b", "a [1][2] b"),
        ("a [[1][2]] b", "a [1][2] b"),
        ("a[1].b", "a[1].b"),
        ("a [1] [2] b", "a [1][2] b"),
        ("a [1]\u3000【1】 b", "a [1] b"),
        ("a [1], [2] b", "a [1], [2] b"),
        ("a [see 【1】] b", "a [see [1]] b"),
    ],
)
def test_every_form_becomes_one(raw: str, text: str) -> None:
    assert repair(raw, 4).text == text


@pytest.mark.parametrize(
    "raw",
    [
        'costs 40% less than part "QX-9" [2019].',
        "a [1-1000000000] b",
        "a [1, 2019] b",
        "a [] b",
        "a [1,] b",
        "a [1 2] b",
        "a [one] b",
        "a [1.5] b",
        "a [-1] b",
        "a [1\n] b",
        "a 1] [b",
        "\\[ x \\]",
    ],
)
def test_what_is_no_marker_stays(raw: str) -> None:
    assert repair(raw, 4) == Repaired(raw)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Oslo [7]", "Oslo"),
        ("Oslo [7].", "Oslo."),
        ("Oslo [7] is cold.", "Oslo is cold."),
        ("[7] Oslo is cold.", "Oslo is cold."),
        ("  [7]  Oslo", "  Oslo"),
        ("- [7] Oslo", "- Oslo"),
        ("Oslo. [7] It is cold.", "Oslo. It is cold."),
        ("Oslo [7]is cold", "Oslo is cold"),
        ("Oslo[7] is cold", "Oslo is cold"),
        ("Oslo [7][8] [9].", "Oslo."),
        ("Oslo [7][1].", "Oslo [1]."),
        ("Oslo [1] [7].", "Oslo [1]."),
        ("Oslo [7] [1].", "Oslo [1]."),
        ("Oslo [0].", "Oslo."),
        ("Oslo [3-9].", "Oslo [3][4]."),
        ("Oslo [7-999].", "Oslo."),
        ("(Oslo [7])", "(Oslo)"),
        ("Oslo [7]\n", "Oslo\n"),
        ("**Oslo [7]**", "**Oslo**"),
        ("Oslo [7] `x`", "Oslo `x`"),
        ("Oslo [7]`x`", "Oslo `x`"),
    ],
)
def test_a_removed_marker_leaves_no_hole(raw: str, text: str) -> None:
    assert repair(raw, 4).text == text


def test_a_sentence_that_keeps_a_marker_is_supported() -> None:
    assert repair("Both hold [1][7]. This one does not [8]! Nobody claims this.", 4).unsupported == (
        "This one does not!",
    )


def test_a_sentence_of_nothing_but_a_marker_is_not_reported() -> None:
    assert repair("Yes [1].\n[7]\n- [8]\n", 4).unsupported == ()


def test_places_are_code_points_of_the_raw_text() -> None:
    assert repair("👩 é 【1】", 1).actions == (Repair(NORMALIZED, "【1】", "[1]", 4),)


def test_duplicates_collapse_at_one_place_only() -> None:
    result = repair("A [1][1] and [1]. B [2, 2].", 2)
    assert result.text == "A [1] and [1]. B [2]."
    assert result.cited == (1, 2)
    assert [action.kind for action in result.actions] == [COLLAPSED, COLLAPSED]


@pytest.mark.parametrize("raw", ["[7]", " 【7】\n", "[7][8, 9] [0]\n\n[7]"])
def test_a_text_of_markers_only_comes_back_as_it_was(raw: str) -> None:
    assert repair(raw, 4) == Repaired(raw, unsupported=(raw.strip(),))


@pytest.mark.parametrize("raw", ["", "\n \n"])
def test_nothing_stays_nothing(raw: str) -> None:
    assert repair(raw, 4) == Repaired(raw)


def test_without_sources_every_marker_goes() -> None:
    assert repair("A [1].", 0) == Repaired("A.", (), (Repair(REMOVED, " [1]", "", 1),), ("A.",))
