"""Sentences: where they end and where they don't."""

# ruff: noqa: RUF001  (signs and words of other scripts are meant)

import pytest

from services.query.domain.sentences import split_sentences


def pieces(text: str) -> list[str]:
    return [text[item.start : item.end] for item in split_sentences(text) if not item.heading]


def headings(text: str) -> list[str]:
    return [text[item.start : item.end] for item in split_sentences(text) if item.heading]


@pytest.mark.parametrize(
    "text",
    [
        "See Dr. Smith about it.",
        "Version 1.10.3 costs 3.5 EUR.",
        "Written by J. Doe in May.",
        "It is used e.g. in Oslo.",
        "Fig. 3 and No. 7 show it.",
        "The file is report.final.pdf and no more.",
        "We met etc. and left.",
        "Срок хранения, т.е. 7 лет, истек.",
        "Nothing ends here",
    ],
)
def test_this_is_one_sentence(text: str) -> None:
    assert pieces(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It opens at 06:00. It closes at 20:00.", ["It opens at 06:00.", "It closes at 20:00."]),
        ("Really? Yes! Good.", ["Really?", "Yes!", "Good."]),
        ("保存は7年です。次の文！終わり", ["保存は7年です。", "次の文！", "終わり"]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Is it allowed? No. It is not.", ["Is it allowed?", "No.", "It is not."]),
        ("Wait... 5 more.", ["Wait...", "5 more."]),
        ("one\n\ntwo", ["one", "two"]),
        ("a wrapped\nline goes on.", ["a wrapped\nline goes on."]),
        ("- first\n- second\n  goes on\n1. third", ["first", "second\n  goes on", "third"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |", "| 1 | 2 |"]),
        ("From: Marit\nTo: Ops\n\nHello all.", ["From: Marit", "To: Ops", "Hello all."]),
        (
            "[2025-05-06 07:58] Jo: late\n[2025-05-06 07:59] Al: ok",
            ["[2025-05-06 07:58] Jo: late", "[2025-05-06 07:59] Al: ok"],
        ),
        ("> quoted words\nand more", ["quoted words\nand more"]),
        ("one\r\n\r\ntwo\rthree", ["one", "two\rthree"]),
    ],
)
def test_sentences_of(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_headings_are_told_apart() -> None:
    text = "# Alpha\n\nBody.\n\nBeta\n====\n\nMore.\n## Gamma ##\nLast."
    assert headings(text) == ["Alpha", "Beta", "Gamma ##"]
    assert pieces(text) == ["Body.", "More.", "Last."]


def test_a_line_of_dashes_under_two_lines_is_no_heading() -> None:
    assert headings("one\ntwo\n---\n") == []
    assert headings("---\n") == []


def test_fenced_code_is_kept_whole() -> None:
    text = "Run:\n\n```bash\n# a comment. Not a heading\nrelayctl up\n```\n\nIt listens on port 7443."
    assert pieces(text) == ["Run:", "```bash\n# a comment. Not a heading\nrelayctl up\n```", "It listens on port 7443."]
    assert headings(text) == []


def test_a_longer_fence_is_closed_by_one_as_long() -> None:
    text = "````\n```\ninner\n```\n````\nAfter."
    assert pieces(text) == ["````\n```\ninner\n```\n````", "After."]


def test_a_fence_that_never_closes_reaches_the_end() -> None:
    assert pieces("Before.\n~~~\nA. B.\n\nC.") == ["Before.", "~~~\nA. B.\n\nC."]


def test_fields_below_a_list_item_belong_to_it() -> None:
    text = 'releases:\n  - cycle: "11.4"\n    eol: 2029-05-29\n  - cycle: "11.3"\n    eol: 2024-05-29\nlatest: 12'
    assert pieces(text) == [
        "releases:",
        'cycle: "11.4"\n    eol: 2029-05-29',
        'cycle: "11.3"\n    eol: 2024-05-29',
        "latest: 12",
    ]


def test_nothing_comes_of_nothing() -> None:
    assert pieces("") == pieces("  \n\n \t") == pieces("-- \n***\n") == []
    assert headings("# \nText") == []
