# ruff: noqa: RUF001  (the signs that models write are the subject here, look-alikes included)
"""Sentences, code, quoted evidence, streams, time."""

from __future__ import annotations

import time

import pytest

from services.citation.domain.repair import StreamRepairer, repair
from services.citation.domain.sentences import SentenceReader, mask_code_spans


def sentences(text: str) -> list[str]:
    reader = SentenceReader()
    return [each.raw for each in (*reader.feed(text), *reader.finish())]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("Rated 3.5 bar. Yes", ["Rated 3.5 bar. ", "Yes"]),
        ('He said "no." She left.', ['He said "no." ', "She left."]),
        ("It ends [1]. It goes on.", ["It ends [1]. ", "It goes on."]),
        ("It ends. [1] It goes on.", ["It ends. [1] ", "It goes on."]),
        ("It ends.[1]It goes on.", ["It ends.[1]", "It goes on."]),
        ("It ends. [1][2] [[3], [4]] It", ["It ends. [1][2] [[3], [4]] It"]),
        ("It ends. [[3] [4]] It", ["It ends. [[3] [4]] ", "It"]),
        ("It ends. [Note] It goes on. No", ["It ends. [Note] It goes on. ", "No"]),
        ("It ends. [1]. Then", ["It ends. [1]. ", "Then"]),
        ("It ends. [1]。Then", ["It ends. [1]。", "Then"]),
        ("It ends. [1.] Then. x", ["It ends. [1.] ", "Then. ", "x"]),
        ("It ends. [1。] Then", ["It ends. [1。] ", "Then"]),
        ('It ends. [1]" Then', ['It ends. [1]" ', "Then"]),
        ("It ends. [1]] Then", ["It ends. [1]] ", "Then"]),
        ("It ends. ] Then", ["It ends. ] ", "Then"]),
        ("It ends. , then", ["It ends. , then"]),
        ("It ends.[1], then", ["It ends.[1], then"]),
        ("終わり。次[1]。", ["終わり。", "次[1]。"]),
        ("終わり。[1]次", ["終わり。[1]", "次"]),
        ("終わり。」 次", ["終わり。」 ", "次"]),
        ("終わり。、次", ["終わり。、次"]),
        ("終わり！？12", ["終わり！？", "12"]),
        ("One...。two", ["One...。", "two"]),
        ("Line one\nLine two\n\nThree", ["Line one\n", "Line two\n", "\n", "Three"]),
        ("1. First. Second", ["1. First. ", "Second"]),
        ("> - Item. Next", ["> - Item. ", "Next"]),
        ("Use `a. b` here. Then", ["Use `a. b` here. ", "Then"]),
        ("One. Use `a. b", ["One. ", "Use `a. ", "b"]),
    ],
)
def test_where_sentences_end(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@pytest.mark.parametrize(
    "code",
    [
        "```\nx[9] = 【9】\n```\n",
        "```python title\nx[9]\n```\n",
        "~~~\nx[9]\n```\n[9]\n~~~~\n",
        "````\n```\n[9]\n```\n[9]\n````\n",
        "  ```\n  [9]\n  ```  \r\n",
        "- ```\n  [9]\n  ```\n",
        "1. ~~~\n[9]\n~~~\n",
        "> ```\n> [9]\n> ```\n",
        "`x[9]`",
        "``x ` [9]``",
        "`[9]` and ``[9]`` and `[9]`",
    ],
)
def test_code_is_left_as_it_is(code: str) -> None:
    assert repair(f"Before [9].\n{code}", 4).text == f"Before.\n{code}"
    if code.endswith("\n"):
        assert repair(f"{code}After [9].", 4).text == f"{code}After."


def test_a_fence_that_never_closes_runs_to_the_end() -> None:
    text = "```\n[9]\n``\n```x\n[9] [1"
    assert repair(text, 4).text == text


def test_what_only_looks_like_code_is_repaired() -> None:
    assert repair("A ` b [9] `` c [9]", 4).text == "A ` b `` c"
    assert repair("```not a `fence` [9]\n[9] x", 4).text == "```not a `fence`\nx"
    assert repair("a ~~~ [9]\n[9] x", 4).text == "a ~~~\nx"
    assert repair("`a\nb` [9]", 4).text == "`a\nb`"


def test_code_spans_are_closed_by_as_many_backticks() -> None:
    assert mask_code_spans("a `b` ``c ` d`` `e") == "a \0\0\0 \0\0\0\0\0\0\0\0\0 `e"


def test_quoted_evidence_is_left_as_it_is() -> None:
    quote = "See [3]_ and `x. [9]\n```\nfor it. Done"
    raw = f"{quote} 【1】 More [9]."
    result = repair(raw, 4, ((0, len(quote)),))
    assert result.text == f"{quote} [1] More."
    assert result.cited == (1,)
    assert result.unsupported == ()


@pytest.mark.parametrize("literals", [((3, 3),), ((2, 4), (3, 5)), ((4, 6), (0, 2))])
def test_spans_of_evidence_must_be_in_order(literals: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match="literal span"):
        repair("some text", 1, literals)


@pytest.mark.parametrize("count", [-1, 101])
def test_the_number_of_sources_is_bounded(count: int) -> None:
    with pytest.raises(ValueError, match=f"source_count {count} is out of range: 0 to 100"):
        repair("a", count)


def test_a_stream_lets_a_sentence_go_when_the_next_one_begins() -> None:
    repairer = StreamRepairer(source_count=2)
    shown = [
        repairer.feed(piece) for piece in ("Rated 16 bar 【", "1", "】. ", "Then", " more ``", "`\n", "```\n[9]", "\n")
    ]
    assert shown == ["", "", "", "Rated 16 bar [1]. ", "", "Then more ```\n", "```\n", "[9]\n"]
    assert repairer.finish()[1].text == "Rated 16 bar [1]. Then more ```\n```\n[9]\n"


def test_a_stream_of_markers_only_shows_nothing_until_its_end() -> None:
    repairer = StreamRepairer(source_count=2)
    assert [repairer.feed("\n"), repairer.feed("[7]\n"), repairer.feed(" ")] == ["", "", ""]
    assert repairer.finish()[0] == "\n[7]\n "


def test_white_space_at_the_start_is_held_back_and_kept() -> None:
    repairer = StreamRepairer(source_count=2)
    assert [repairer.feed("\n"), repairer.feed("Yes [1]. No")] == ["", "\nYes [1]. "]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 150_000,
        "[1," * 50_000,
        "[[1]" * 37_000,
        "[[" + "[1]" * 50_000,
        "[" + "1" * 150_000,
        "[1" + " " * 150_000,
        "." * 150_000,
        ". [1" * 37_000,
        " ".join("`" * length for length in range(1, 500)),
        "```\n" + "`" * 150_000,
        ("a" * 10 + " ") * 13_000,
    ],
    ids=lambda text: text[:6],
)
def test_time_is_linear_in_any_text(text: str) -> None:
    started = time.process_time()
    repair(text, 100)
    repairer = StreamRepairer(source_count=100)
    for char in text[:20_000]:
        repairer.feed(char)
    repairer.finish()
    assert time.process_time() - started < 8


def test_a_range_grows_no_further_than_the_sources() -> None:
    assert len(repair("[1-999] a " * 1_000, 100).text) < 1_000 * 400


def test_quoted_evidence_may_arrive_in_pieces() -> None:
    raw = "It says [3]_ and [4]_ there [1]."
    literals = ((8, 22),)
    repairer = StreamRepairer(source_count=1, literals=literals)
    shown = [repairer.feed(char) for char in raw]
    last, whole = repairer.finish()
    assert "".join((*shown, last)) == whole.text == raw
    assert whole == repair(raw, 1, literals)
