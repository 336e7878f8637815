"""Terms of a query: plain words, stop words, bounds."""

from __future__ import annotations

import pytest

from services.index.domain.analysis import MAX_QUERY_TERMS, analyse_query, analyse_text


def test_stop_words_are_left_out() -> None:
    assert analyse_query("What is the default timeout of the gateway?") == ["default", "timeout", "gateway"]
    assert analyse_query("что такое гарантия") == ["так", "гарант"]


def test_a_query_of_stop_words_keeps_them() -> None:
    assert analyse_query("To be or not to be?") == ["to", "be", "or", "not", "to", "be"]


def test_an_acronym_is_no_stop_word_unless_everything_is_in_capitals() -> None:
    assert analyse_query("the IT policy of the WHO") == ["it", "polici", "who"]
    assert analyse_query("WHAT IS THE IT POLICY") == ["polici"]
    assert analyse_query("A policy") == ["polici"]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("AFSC/RACE:USBL", ["afsc", "race", "usbl", "afsc/race:usbl"]),
        ("/", []),
        ('"unclosed quote', ["unclos", "quot"]),
        ("part:(QX-9 AND", ["part", "qx", "9", "qx9", "and"]),
        ("title:secret OR *:*", ["titl", "secret", "title:secret", "or"]),
        ("cost && discount || price !", ["cost", "discount", "price"]),
        ("rev. C++ ~2 ^5", ["rev", "c", "c++", "2", "5"]),
        ('{"query":{"match_all":{}}}', ["queri", "match", "all", "match_all"]),
        ("\\", []),
    ],
)
def test_operators_are_words_or_nothing(query: str, terms: list[str]) -> None:
    assert analyse_query(query) == terms


def test_pairs_of_a_spaceless_script_need_no_single_characters() -> None:
    assert analyse_query("東京") == ["東京"]
    assert analyse_query("猫") == ["猫"]
    assert set(analyse_query("猫")) <= set(analyse_text("黒猫がいる"))


def test_repeats_count() -> None:
    assert analyse_query("gate gate") == ["gate", "gate"]


def test_a_long_query_is_bounded_by_distinct_terms() -> None:
    words = [f"word{i}" for i in range(MAX_QUERY_TERMS + 50)]
    terms = analyse_query(" ".join([*words, "word0"]))
    assert len(set(terms)) == MAX_QUERY_TERMS
    assert terms[0] == terms[-1] == "word0"
