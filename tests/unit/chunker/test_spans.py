"""Spans in the original."""

from __future__ import annotations

import pytest

from services.chunker.domain.chunking import chunk
from services.chunker.domain.document import Block, BlockKind, NormalizedText, Run
from services.chunker.domain.spans import codec_name


def test_g02_windows_line_ends_shift_no_span() -> None:
    original = (
        b"# Alpha\r\n\r\nFirst body line.\r\n\r\n## Beta\r\nSecond body line: the retention period is 30 days.\r\n"
    )
    assert len(original) == 92
    text = original.decode()
    beta = text.index("## Beta")
    blocks = (
        Block(BlockKind.HEADING, 0, 9, ("Alpha",)),
        Block(BlockKind.PARAGRAPH, 11, 29, ("Alpha",)),
        Block(BlockKind.HEADING, beta, beta + 9, ("Alpha", "Beta")),
        Block(BlockKind.PARAGRAPH, beta + 9, 92, ("Alpha", "Beta")),
    )
    document = NormalizedText(text, (Run(0, 92, 0, 92, 0, 92, verbatim=True),), blocks)
    first, second = chunk(document, size_chars=1_000, overlap_chars=200)
    assert (first.byte_start, first.byte_end, second.byte_start, second.byte_end) == (0, beta, beta, 92)
    quote = "the retention period is 30 days."
    start = second.runs[0].byte_start + second.text.index(quote)
    assert (start, start + len(quote)) == (58, 90)


def test_overlapping_text_keeps_its_span() -> None:
    text = "é" * 15
    document = NormalizedText(text, (Run(0, 15, 0, 15, 3, 33, verbatim=True),))
    first, second = chunk(document, size_chars=10, overlap_chars=4)
    assert first.runs == (Run(0, 10, 0, 10, 3, 23, verbatim=True),)
    assert second.overlap_chars == 4
    assert second.runs == (Run(0, 9, 6, 15, 15, 33, verbatim=True),)


def test_a_run_that_is_not_verbatim_keeps_its_whole_span() -> None:
    document = NormalizedText("a" * 10, (Run(0, 10, 5, 25, 5, 25, verbatim=False),))
    spans = [
        (each.char_start, each.char_end, each.byte_start, each.byte_end)
        for each in chunk(document, size_chars=6, overlap_chars=0)
    ]
    assert spans == [(5, 25, 5, 25)] * 2


@pytest.mark.parametrize("charset", ["iso-2022-jp", "ascii"])
def test_a_codec_that_can_not_be_measured_gives_whole_spans(charset: str) -> None:
    text = "aaaa日本語aaaa"
    size_bytes = len(text.encode("iso-2022-jp"))
    document = NormalizedText(text, (Run(0, 11, 0, 11, 0, size_bytes, verbatim=True),), charset=charset)
    for each in chunk(document, size_chars=6, overlap_chars=0):
        assert [(run.byte_start, run.byte_end, run.verbatim) for run in each.runs] == [(0, size_bytes, False)]


def test_a_length_that_does_not_match_the_codec_gives_whole_spans() -> None:
    document = NormalizedText("é" * 10, (Run(0, 10, 0, 10, 0, 21, verbatim=True),))
    assert chunk(document, size_chars=6, overlap_chars=0)[0].runs == (Run(0, 6, 0, 10, 0, 21, verbatim=False),)


def test_text_without_an_original_widens_no_span() -> None:
    document = NormalizedText(
        "ab\ncd", (Run(0, 2, 10, 12, 10, 12, True), Run(2, 3, 0, 0, 0, 0, False), Run(3, 5, 20, 22, 20, 22, True))
    )
    (only,) = chunk(document, size_chars=50, overlap_chars=0)
    assert (only.char_start, only.char_end, only.byte_start, only.byte_end) == (10, 22, 10, 22)


def test_text_made_by_the_normaliser_alone_has_an_empty_span() -> None:
    (only,) = chunk(NormalizedText("ab", (Run(0, 2, 7, 7, 9, 9, False),)), size_chars=50, overlap_chars=0)
    assert (only.char_start, only.char_end, only.byte_start, only.byte_end) == (7, 7, 9, 9)


def test_without_runs_nothing_is_known() -> None:
    (only,) = chunk(NormalizedText("ab"), size_chars=50, overlap_chars=0)
    assert (only.runs, only.byte_start, only.byte_end) == ((), 0, 0)


@pytest.mark.parametrize(
    ("charset", "codec"),
    [
        ("UTF8", "utf-8"),
        ("utf_8_sig", "utf-8"),
        ("UTF-16", "utf-16-le"),
        ("utf-32", "utf-32-le"),
        ("windows-1251", "cp1251"),
    ],
)
def test_codecs_that_mark_byte_order_are_measured_without(charset: str, codec: str) -> None:
    assert codec_name(charset) == codec


@pytest.mark.parametrize("charset", ["no-such", "base64"])
def test_an_unknown_charset_is_refused(charset: str) -> None:
    with pytest.raises(ValueError, match="is unknown"):
        codec_name(charset)


@pytest.mark.parametrize(
    ("runs", "blocks", "said"),
    [
        ((Run(0, 2, 0, 2, 0, 2, True),), (), "the runs end at 2, the text at 4"),
        ((Run(1, 4, 0, 3, 0, 3, True),), (), "run 0 covers 1-4: it should start at 0"),
        ((Run(0, 4, 3, 1, 0, 4, True),), (), "run 0 ends before it starts"),
        ((), (Block(BlockKind.CODE, 2, 5),), "block 0 covers 2-5"),
        ((), (Block(BlockKind.CODE, 2, 4), Block(BlockKind.CODE, 0, 1)), "block 1 covers 0-1"),
        ((), (Block(BlockKind.CODE, 2, 2),), "block 0 covers 2-2"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(
    runs: tuple[Run, ...], blocks: tuple[Block, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        NormalizedText("text", runs, blocks)


def test_each_chunk_has_the_runs_that_it_touches() -> None:
    runs = (Run(0, 5, 0, 5, 0, 5, True), Run(5, 6, 5, 7, 5, 7, False), Run(6, 12, 7, 13, 7, 13, True))
    first, second = chunk(NormalizedText("aa aa\nbbbbbb", runs), size_chars=8, overlap_chars=0)
    assert first.text == "aa aa\n"
    assert first.runs == runs[:2]
    assert second.runs == (Run(0, 6, 7, 13, 7, 13, True),)
