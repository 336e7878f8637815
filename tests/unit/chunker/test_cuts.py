"""Where chunks begin and end."""

from __future__ import annotations

import itertools
import time
import unicodedata
from collections.abc import Callable

import pytest
import regex

from services.chunker.domain.chunking import chunk
from services.chunker.domain.document import Block, BlockKind, Chunk, NormalizedText

CODE, TABLE, LIST, RECORD = BlockKind.CODE, BlockKind.TABLE, BlockKind.LIST, BlockKind.RECORD
HEADING, PARAGRAPH = BlockKind.HEADING, BlockKind.PARAGRAPH
Compose = Callable[..., NormalizedText]


def plain(text: str, size: int, overlap: int = 0) -> tuple[Chunk, ...]:
    return chunk(NormalizedText(text), size_chars=size, overlap_chars=overlap)


def texts(chunks: tuple[Chunk, ...]) -> list[str]:
    return [each.text for each in chunks]


def joined(chunks: tuple[Chunk, ...]) -> str:
    return "".join(each.text[each.overlap_chars :] for each in chunks)


@pytest.mark.parametrize("text", ["", " ", "\r\n\t \u3000\n" * 50])
def test_white_space_makes_no_chunk(text: str) -> None:
    assert plain(text, 50) == ()


def test_a_text_within_the_size_is_one_chunk() -> None:
    assert texts(plain("x" * 95, 100)) == ["x" * 95]


def test_a_chunk_ends_at_the_last_white_space_of_its_latter_half() -> None:
    text = "aaaa bbbb cccc dddd eeee ffff"
    assert texts(plain(text, 13)) == ["aaaa bbbb ", "cccc dddd ", "eeee ffff"]


def test_a_word_that_ends_at_the_limit_stays() -> None:
    assert texts(plain("aaaa bbbb cccc", 9)) == ["aaaa bbbb", " cccc"]


def test_white_space_in_the_first_half_is_no_place_to_cut() -> None:
    assert texts(plain("aa bbbbbbbbbbbbbbbbbb", 10)) == ["aa bbbbbbb", "bbbbbbbbbb", "b"]


def test_the_seed_s_example() -> None:
    chunks = plain("y" * 2_600, 1_000, 200)
    spans = [
        (sum(len(c.text) - c.overlap_chars for c in chunks[:n]) - each.overlap_chars, len(each.text))
        for n, each in enumerate(chunks)
    ]
    assert spans == [(0, 1_000), (800, 1_000), (1_600, 1_000)]


def test_the_overlap_begins_at_a_word() -> None:
    first, second = plain("aaaa bbbb cccc dddd eeee", 20, 8)
    assert first.text == "aaaa bbbb cccc dddd "
    assert second.text == "dddd eeee"
    assert second.overlap_chars == 5


def test_without_a_word_to_begin_at_the_overlap_is_exact() -> None:
    first, second = plain("a" * 15, 10, 4)
    assert (first.text, second.text, second.overlap_chars) == ("a" * 10, "a" * 9, 4)


def test_g05_progress_on_a_long_run_without_breaks() -> None:
    text = "x" * 10 + " " + "a" * 5_000
    chunks = plain(text, 100, 50)
    assert len(chunks) <= 140
    assert max(map(len, texts(chunks))) <= 100
    assert joined(chunks) == text


def test_the_last_window_ends_the_text() -> None:
    assert [len(each) for each in texts(plain("a" * 101, 100, 50))] == [100, 51]


def test_long_white_space_after_a_cut_is_left_out() -> None:
    chunks = plain("a" * 10 + " " * 30 + "b" * 10, 10, 5)
    assert texts(chunks) == ["a" * 10, "b" * 10]
    assert [each.overlap_chars for each in chunks] == [0, 0]


def test_trailing_white_space_stays_with_the_last_chunk_as_far_as_it_fits() -> None:
    assert texts(plain("aaaa   " + "\n" * 9_000, 6)) == ["aaaa  "]


@pytest.mark.parametrize(
    "cluster",
    ["e\u0301", "👩\u200d👩\u200d👧", "🇫🇷", "ก\u0e33", "\u1112\u1161\u11ab", "\r\n"],
    ids=lambda c: unicodedata.name(c[0], "CRLF"),
)
def test_clusters_stay_whole(cluster: str) -> None:
    text = "x" + cluster * 100
    bounds = set(itertools.accumulate(map(len, regex.findall(r"\X", text))))
    at = 0
    for each in plain(text, 50, 20):
        at += len(each.text) - each.overlap_chars
        assert at in bounds
        assert at - len(each.text) in bounds | {0}


def test_a_cluster_longer_than_the_size_is_cut_all_the_same() -> None:
    chunks = plain("e" + "\u0301" * 300, 50, 25)
    assert joined(chunks) == "e" + "\u0301" * 300
    assert len(chunks) < 20


@pytest.mark.parametrize("kind", [CODE, TABLE, LIST, RECORD])
def test_the_cut_moves_before_what_stays_whole(compose: Compose, kind: BlockKind) -> None:
    document = compose(
        (PARAGRAPH, "words and more words\n", ()), (kind, "k k k k k k k k k k k k\n", ()), (PARAGRAPH, "end", ())
    )
    assert texts(chunk(document, size_chars=30, overlap_chars=0)) == [
        "words and more words\n",
        "k k k k k k k k k k k k\nend",
    ]


def test_the_overlap_shrinks_until_what_stays_whole_fits(compose: Compose) -> None:
    document = compose((PARAGRAPH, "aa bb cc dd ee ff gg\n", ()), (CODE, "k k k k k k k k k k k k k\n", ()))
    first, second = chunk(document, size_chars=30, overlap_chars=15)
    assert first.text == "aa bb cc dd ee ff gg\n"
    assert second.text == "gg\nk k k k k k k k k k k k k\n"
    assert second.overlap_chars == 3


def test_an_overlap_never_begins_inside_what_stays_whole(compose: Compose) -> None:
    document = compose((CODE, "k k k k k k k k k\n", ()), (PARAGRAPH, "aaaa bbbb cccc dddd eeee", ()))
    first, second = chunk(document, size_chars=30, overlap_chars=15)
    assert first.text == "k k k k k k k k k\naaaa bbbb "
    assert second.text == "aaaa bbbb cccc dddd eeee"
    assert second.overlap_chars == 10


def test_an_overlap_from_a_long_word_skips_what_stays_whole(compose: Compose) -> None:
    document = compose((PARAGRAPH, "a" * 25, ()), (CODE, "k k", ()), (PARAGRAPH, "b" * 20, ()))
    first, second = chunk(document, size_chars=30, overlap_chars=15)
    assert (first.text, second.text, second.overlap_chars) == ("a" * 25 + "k k", "b" * 20, 0)


def test_an_exact_fit_drops_the_white_space_before_it(compose: Compose) -> None:
    document = compose((PARAGRAPH, "aaaa aaaa", ()), (None, " ", ()), (CODE, "kk kk kkk", ()), (PARAGRAPH, "\nend", ()))
    assert texts(chunk(document, size_chars=9, overlap_chars=0)) == ["aaaa aaaa", "kk kk kkk", "\nend"]


def test_a_cut_is_not_pulled_back_into_what_fits(compose: Compose) -> None:
    document = compose((PARAGRAPH, "aa", ()), (RECORD, "{1, 2}", ()), (PARAGRAPH, "bbbbbbbb", ()))
    assert texts(chunk(document, size_chars=10, overlap_chars=0)) == ["aa{1, 2}", "bbbbbbbb"]


def test_what_is_too_long_is_cut_between_its_lines(compose: Compose) -> None:
    rows = "".join(f"| row {n} | value {n} |\n" for n in range(10))
    chunks = chunk(compose((TABLE, rows, ())), size_chars=70, overlap_chars=0)
    assert joined(chunks) == rows
    assert all(each.text.endswith("|\n") for each in chunks)


def test_old_mac_lines_are_lines_too(compose: Compose) -> None:
    chunks = chunk(compose((CODE, "call one two\r" * 8, ())), size_chars=30, overlap_chars=0)
    assert all(each.text.endswith("two\r") for each in chunks)


def test_a_line_without_end_is_cut_at_white_space(compose: Compose) -> None:
    chunks = chunk(compose((CODE, "word " * 20, ())), size_chars=22, overlap_chars=0)
    assert texts(chunks) == ["word " * 4] * 5


def test_records_are_packed_and_never_cut(compose: Compose) -> None:
    rows = tuple((RECORD, f"row {n:02} value\n", (), "id,value") for n in range(10))
    chunks = chunk(compose(*rows), size_chars=50, overlap_chars=0)
    assert [each.text.count("\n") for each in chunks] == [3, 3, 3, 1]
    assert {each.context for each in chunks} == {"id,value"}


def test_records_overlap_as_wholes(compose: Compose) -> None:
    rows = tuple((RECORD, f"row {n:02} value\n", ()) for n in range(6))
    first, second, *_ = chunk(compose(*rows), size_chars=60, overlap_chars=20)
    assert first.text.startswith("row 00")
    assert second.text.startswith("row 03")
    assert second.overlap_chars == 13


def test_a_row_with_line_ends_stays_whole(compose: Compose) -> None:
    rows = ((RECORD, 'a,"one\ntwo\nthree"\n', ()), (RECORD, 'b,"four\nfive\nsix"\n', ()))
    assert texts(chunk(compose(*rows), size_chars=20, overlap_chars=0)) == [
        'a,"one\ntwo\nthree"\n',
        'b,"four\nfive\nsix"\n',
    ]


def test_a_fence_inside_a_long_list_stays_whole() -> None:
    text = "- item one\n" * 3 + "```\nrun this\nrun that\n```\n" + "- item two\n" * 3
    start = text.index("```")
    blocks = (Block(LIST, 0, len(text)), Block(CODE, start, text.rindex("```") + 4))
    chunks = chunk(NormalizedText(text, (), blocks), size_chars=50, overlap_chars=0)
    assert joined(chunks) == text
    assert [each.text.count("```") for each in chunks if "```" in each.text] == [2]


@pytest.mark.parametrize("filler", ["a", " ", "語", "🇫🇷", "e\u0301\u0301", "a b ", "a\n", "|---"])
def test_time_is_linear_in_any_text(filler: str) -> None:
    text = filler * (1_000_000 // len(filler)) + "x"
    started = time.process_time()
    chunks = plain(text, 1_000, 500)
    assert time.process_time() - started < 4
    assert len(chunks) < 4_100


def test_where_white_space_takes_the_room_the_cut_is_at_the_limit() -> None:
    chunks = plain("a" * 20 + " " * 5 + "b" * 40, 20, 10)
    assert texts(chunks)[1] == "a" * 10 + " " * 5 + "b" * 5
    assert joined(chunks) == "a" * 20 + " " * 5 + "b" * 40


def test_what_closes_a_file_is_no_chunk_of_its_own(compose: Compose) -> None:
    document = compose(
        (None, "{\n", ()),
        (RECORD, '"a": "one two three",\n', ()),
        (RECORD, '"b": "' + "w " * 14 + '"', ()),
        (None, "\n}\n", ()),
    )
    first, second = chunk(document, size_chars=50, overlap_chars=25)
    assert first.text == '{\n"a": "one two three",\n'
    assert second.text == '"b": "' + "w " * 14 + '"\n}\n'
