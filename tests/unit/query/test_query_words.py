"""Words and terms; they have to agree with what the index looks up."""

# ruff: noqa: RUF001  (signs and words of other scripts are meant)

import pytest

from services.index.domain.analysis import analyse_query, analyse_text
from services.query.domain.words import holds_word, is_latin, stem, terms, words

TEXTS = [
    "When does security support for .NET 8 / Python 3.9 end?",
    "AFSC/RACE:USBL costs 1,000 EUR at 06:00, see Node.js v1.10",
    "Срок хранения записей ещё не истёк",
    "Café Zoë keeps saffron, naïve as it is",
    "zorblat-77 and the user's state-of-the-art relay",
    "保存期間は何年ですか",
    "⼀人と⼆ ⼀",
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_content_term_is_one_that_the_index_looks_up(text: str) -> None:
    content = {word.term for word in words(text) if not word.function}
    assert content <= set(analyse_query(text))
    assert content <= set(analyse_text(text))


@pytest.mark.parametrize("text", TEXTS)
def test_terms_are_those_of_the_words(text: str) -> None:
    assert terms(text) == {word.term for word in words(text)}


def test_offsets_point_at_the_surface() -> None:
    for text in TEXTS:
        assert all(text[word.start : word.end] == word.surface for word in words(text))


def test_numbers_and_versions_are_whole() -> None:
    assert [word.term for word in words("v1.10.3 costs 1,234,567.5 or 2026-11-12")] == [
        "1.10.3",
        "cost",
        "1234567.5",
        "or",
        "2026",
        "11",
        "12",
    ]


def test_labels_in_capitals_carry_content() -> None:
    assert [word.surface for word in words("When is boiler A off? Ask IT if I may.") if not word.function] == [
        "boiler",
        "A",
        "Ask",
        "IT",
    ]
    assert [word.surface for word in words("A BOILER IS OFF") if not word.function] == ["BOILER"]
    assert [word.surface for word in words("part:(QX-9 AND NOT") if not word.function] == ["part", "QX", "9"]


def test_pairs_with_hiragana_are_grammar() -> None:
    assert [(word.surface, word.function) for word in words("保存は年")] == [
        ("保存", False),
        ("存は", True),
        ("は年", True),
    ]
    assert [(word.surface, word.function) for word in words("年 は")] == [("年", False), ("は", True)]


def test_stems_by_script() -> None:
    assert (stem("Leaves"), stem("записей"), stem("３０"), stem("保存")) == ("leav", "запис", "30", "保存")


def test_words_and_scripts_are_recognised() -> None:
    assert holds_word("?! 7")
    assert not holds_word("/ \\ ☕ …")
    assert all(is_latin(text) for text in ("port 8080", "7", "порт port"))
    assert not is_latin("Каков срок port?")
