"""From a chunk's text back to the original bytes."""

import pytest

from services.query.domain.spans import Span, encode_piece, locate
from services.query.domain.values import Run

CRLF = "# Alpha\r\n\r\nFirst body line.\r\n\r\n## Beta\r\nSecond body line: the retention period is 30 days.\r\n"


def whole(text: str, charset: str = "utf-8", *, chars: int = 0, offset: int = 0) -> tuple[Run, ...]:
    """One verbatim run for a text that begins at a place of the original."""
    size = len(text.encode(charset))
    return (Run(0, len(text), chars, chars + len(text), offset, offset + size, verbatim=True),)


def test_windows_line_ends_do_not_shift_the_span() -> None:
    start = CRLF.index("the retention")
    span = locate(CRLF, whole(CRLF), start, start + len("the retention period is 30 days."), charset="utf-8")
    assert span is not None
    assert (span.byte_start, span.byte_end, span.verbatim) == (58, 90, True)
    assert CRLF.encode()[span.byte_start : span.byte_end] == b"the retention period is 30 days."


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le", "windows-1251", "shift_jis"])
def test_bytes_are_counted_in_the_original_charset(charset: str) -> None:
    text = "Срок хранения — 7 лет." if charset != "shift_jis" else "保存期間は7年です。"
    original = b"head:" + text.encode(charset)
    span = locate(text, whole(text, charset, chars=5, offset=5), 5, len(text) - 1, charset=charset)
    assert span is not None
    assert original[span.byte_start : span.byte_end].decode(charset) == text[5:-1]
    assert (span.char_start, span.char_end, span.verbatim) == (10, 5 + len(text) - 1, True)


def test_a_rewritten_run_is_cited_as_a_whole() -> None:
    runs = (Run(0, 4, 0, 9, 0, 9, verbatim=False), Run(4, 8, 9, 13, 9, 13, verbatim=True))
    assert locate("a&bcdefg", runs, 1, 3, charset="utf-8") == Span(0, 9, 0, 9, verbatim=False)
    assert locate("a&bcdefg", runs, 2, 6, charset="utf-8") == Span(0, 11, 0, 11, verbatim=False)
    assert locate("a&bcdefg", runs, 5, 6, charset="utf-8") == Span(10, 11, 10, 11, verbatim=True)


def test_a_gap_in_the_original_between_two_runs_is_not_verbatim() -> None:
    apart = (Run(0, 3, 0, 3, 0, 3, verbatim=True), Run(3, 6, 7, 10, 7, 10, verbatim=True))
    assert locate("abcdef", apart, 1, 5, charset="utf-8") == Span(1, 9, 1, 9, verbatim=False)
    together = (Run(0, 3, 0, 3, 0, 3, verbatim=True), Run(3, 6, 3, 6, 3, 6, verbatim=True))
    assert locate("abcdef", together, 1, 5, charset="utf-8") == Span(1, 5, 1, 5, verbatim=True)


def test_a_piece_outside_the_runs_is_partly_or_not_found() -> None:
    runs = (Run(2, 4, 2, 4, 2, 4, verbatim=True),)
    assert locate("abcdef", runs, 4, 6, charset="utf-8") is None
    assert locate("abcdef", runs, 0, 3, charset="utf-8") == Span(2, 3, 2, 3, verbatim=False)
    assert locate("abcdef", (), 0, 3, charset="utf-8") is None


@pytest.mark.parametrize("charset", ["iso-2022-jp", "hz", "no-such-codec", "ascii"])
def test_bytes_that_cannot_be_known_widen_the_span(charset: str) -> None:
    text = "保存期間は7年です"
    runs = (Run(0, len(text), 0, len(text), 0, 40, verbatim=True),)
    assert encode_piece(text[:2], charset) is None
    assert locate(text, runs, 2, 4, charset=charset) == Span(0, len(text), 0, 40, verbatim=False)


def test_a_byte_order_mark_stands_once_in_a_file() -> None:
    assert encode_piece("ab", "utf-8-sig") == b"ab"
    assert encode_piece("ab", "UTF_16") == b"a\0b\0"
