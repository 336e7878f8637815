"""Terms of text: words, scripts, codes."""

# ruff: noqa: RUF001  (characters that look alike are the subject)

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.index.domain import analysis
from services.index.domain.analysis import MAX_TERM_CHARS, analyse_query, analyse_text


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The policies were superseded.", ["the", "polici", "were", "supersed"]),
        ("(Policies), “policies” — policies!", ["polici"] * 3),
        ("Straße naïve Zürich", ["strass", "naiv", "zurich"]),
        ("can't won’t it's", ["can't", "won't", "it"]),
        ("well-known state-of-the-art", ["well", "known", "state", "of", "the", "art"]),
        ("бегущие Ёлки", ["бегущ", "елк"]),
        ("हिन्दी שלום", ["हिन्दी", "שלום"]),
        ("soft\u00adware zero\u200bwidth \ufeffmark", ["softwar", "zero", "width", "mark"]),
        ("ﬁnal ｆｕｌｌ ⅷ", ["final", "full", "viii"]),
    ],
)
def test_words_are_folded_and_stemmed_by_script(text: str, terms: list[str]) -> None:
    assert analyse_text(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("AFSC/RACE:USBL", ["afsc", "race", "usbl", "afsc/race:usbl"]),
        ("QX-9", ["qx", "9", "qx9"]),
        ("zorblat-77.", ["zorblat", "77", "zorblat77"]),
        ("(rev. C++)", ["rev", "c", "c++"]),
        ("C#", ["c", "c#"]),
        ("C++11", ["c", "11", "c++11"]),
        ("issue#12", ["issu", "12", "issue#12"]),
        ("#topic", ["topic"]),
        ("AT&T", ["at", "t", "at&t"]),
        ("Node.js", ["node", "js", "node.js"]),
        ("snake_case", ["snake", "case", "snake_case"]),
        ("__init__.py", ["init", "py", "init__.py"]),
        ("CamelCase", ["camel", "case", "camelcas"]),
        ("getHTTPResponse", ["get", "http", "respons", "gethttprespons"]),
        ("mRNA DNAs", ["mrna", "dnas"]),
        ("foo.bar@example.org", ["foo", "bar", "exampl", "org", "foo.bar@example.org"]),
        (
            "https://a-b.example/c_d.html",
            ["https", "a", "b", "exampl", "c", "d", "html", "https://a-b.example/c_d.html"],
        ),
        ("policy-acl-v1.0", ["polici", "acl", "v1.0", "1.0", "policy-acl-v1.0"]),
    ],
)
def test_codes_are_terms_by_their_parts_and_as_a_whole(text: str, terms: list[str]) -> None:
    assert analyse_text(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("3.9", ["3.9"]),
        ("1,000.50", ["1000.50"]),
        ("12,345,678", ["12345678"]),
        ("1,2,3", ["1", "2", "3"]),
        ("v1.10.3", ["v1.10.3", "1.10.3"]),
        ("v2", ["v2", "2"]),
        ("1.2.3a", ["1", "2", "3a", "1.2.3a"]),
        ("2026-03-01", ["2026", "03", "01", "2026-03-01"]),
        ("2026-03-01T10:30", ["2026", "03", "01", "2026-03-01", "10", "30", "10:30"]),
        ("12-15", ["12", "15", "12-15"]),
        ("40%", ["40"]),
    ],
)
def test_numbers_versions_and_dates(text: str, terms: list[str]) -> None:
    assert analyse_text(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("東京タワー", ["東京", "京タ", "タワ", "ワー", "東", "京"]),
        ("猫", ["猫"]),
        ("한국어", ["한국", "국어", "한", "국", "어"]),
        ("ﾊﾟｿｺﾝ", ["パソ", "ソコ", "コン"]),
        ("ไทย", ["ไท", "ทย"]),
        ("iPhone15を買う", ["iphone15", "を買", "買う", "買"]),
        ("第3章", ["第", "3", "章"]),
    ],
)
def test_scripts_without_spaces_give_pairs(text: str, terms: list[str]) -> None:
    assert analyse_text(text) == terms


def test_a_long_token_is_one_term_up_to_the_limit_and_pieces_beyond() -> None:
    token = "Zx9" * 15
    assert analyse_text(f"see {token}.") == ["see", token.lower()]
    pieces = analyse_text("a" * (MAX_TERM_CHARS + 1))
    assert pieces == ["a" * MAX_TERM_CHARS, "a"]
    assert analyse_text("a-" * MAX_TERM_CHARS)[-1] == "a"


@pytest.mark.parametrize("text", ["", " \t\n", "... — !?", "___", "++ # & ''", "🚀🚀", "\u200b"])
def test_text_without_a_word_has_no_terms(text: str) -> None:
    assert analyse_text(text) == []


@given(st.text())
def test_no_term_can_be_split_or_lost_by_an_engine(text: str) -> None:
    for term in analyse_text(text):
        assert term
        assert term.split() == [term]
        assert len(term) <= MAX_TERM_CHARS * 4


@given(st.text())
def test_every_term_of_a_query_without_stop_words_stands_in_its_text(text: str) -> None:
    assert set(analyse_query(text)) <= set(analyse_text(text))


@given(st.text(), st.text())
def test_words_are_analysed_one_by_one(left: str, right: str) -> None:
    assert analyse_text(f"{left} {right}") == analyse_text(left) + analyse_text(right)


@given(st.text(st.characters(max_codepoint=127)))
def test_the_fast_way_for_ascii_gives_what_the_general_way_gives(text: str) -> None:
    for word in text.split():
        assert analysis._split(word, singles=True) == analysis._split_unicode(word, singles=True)


@given(st.lists(st.sampled_from(["a", "Bc", "9", "123", ",", ".", "-", "_", "/", "'", "+", "#", "v1", "T", "02-03"])))
def test_the_fast_way_for_ascii_codes_gives_what_the_general_way_gives(pieces: list[str]) -> None:
    word = "".join(pieces)
    assert analysis._split(word, singles=True) == analysis._split_unicode(word, singles=True)


def test_the_memory_for_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "_CACHED_WORDS", 10)
    for start in range(0, 60, 20):
        words = [f"bounded{n}" for n in range(start, start + 20)]
        assert analyse_text(" ".join(words)) == words
        assert len(analysis._TERMS_OF_WORDS) <= 10
    long = "x" * 60
    assert analyse_text(long) == [long]
    assert long not in analysis._TERMS_OF_WORDS


def test_text_is_analysed_alike_whether_cached_or_not() -> None:
    first = analyse_text("Cached Words-1 are the same")
    analysis._TERMS_OF_WORDS.clear()
    assert analyse_text("Cached Words-1 are the same") == first


@pytest.mark.parametrize(
    "nasty", ["_", "a-", "1,111", "aB", "'", "a'", "1.", "漢", "T-", "\u0301", "a_", "+", "#", "9" * 50 + "."]
)
def test_time_is_linear_on_hostile_text(nasty: str) -> None:
    small, large = (nasty * (size // len(nasty)) for size in (20_000, 200_000))
    began = time.process_time()
    analyse_text(small)
    between = time.process_time()
    analyse_text(large)
    ended = time.process_time()
    assert ended - between < 40 * (between - began) + 0.5
