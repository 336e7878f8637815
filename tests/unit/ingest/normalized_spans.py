"""What holds for every normalised document, whatever its format."""

from __future__ import annotations

from services.ingest.domain.normalize import BlockKind, Normalized, normalize


def decoded_original(body: bytes, charset: str) -> str:
    """The characters that `char_*` offsets count: one for each undecodable byte, one for a byte order mark."""
    if not charset.startswith(("utf-16", "utf-32")):
        return body.decode(charset, "surrogateescape")
    unit = 2 if charset.startswith("utf-16") else 4
    whole = len(body) - len(body) % unit
    return body[:whole].decode(charset, "surrogatepass") + "?" * (whole < len(body))


def assert_spans(body: bytes, document: Normalized) -> None:
    """Runs cover the text and lead to the bytes; blocks are ordered; nothing is left that can't be stored."""
    original = decoded_original(body, document.charset)
    position = 0
    for run in document.runs:
        text = document.text[run.text_start : run.text_end]
        assert run.text_start == position < run.text_end
        assert 0 <= run.byte_start <= run.byte_end <= len(body)
        assert 0 <= run.char_start <= run.char_end <= len(original)
        if run.verbatim:
            raw = body[run.byte_start : run.byte_end]
            assert raw.decode(document.charset) == text
            assert text.encode(document.charset) == raw
            assert original[run.char_start : run.char_end] == text
        position = run.text_end
    assert position == len(document.text)
    position = 0
    for block in document.blocks:
        assert position <= block.text_start < block.text_end <= len(document.text)
        assert document.text[block.text_start : block.text_end].strip()
        assert block.kind is not BlockKind.HEADING or block.heading_path
        position = block.text_end
    names = [name for pair in document.metadata for name in pair]
    for text in (document.text, document.title, *document.headings, *names, *document.notices):
        assert "\x00" not in text
        text.encode("utf-8")
    assert len(dict(document.metadata)) == len(document.metadata)


def read(body: bytes | str, name: str = "", media_type: str = "", charset: str = "") -> Normalized:
    """Normalise and check the spans."""
    raw = body.encode() if isinstance(body, str) else body
    document = normalize(raw, source_id=name, media_type=media_type, charset=charset)
    assert_spans(raw, document)
    return document


def texts(document: Normalized, kind: BlockKind | None = None) -> list[str]:
    """Texts of the blocks, of one kind or of all."""
    return [
        document.text[block.text_start : block.text_end]
        for block in document.blocks
        if kind is None or block.kind is kind
    ]


def shape(document: Normalized) -> list[tuple[str, str]]:
    """Kind and text of each block."""
    return [(block.kind.value, document.text[block.text_start : block.text_end]) for block in document.blocks]


def bytes_of(body: bytes, document: Normalized, quote: str) -> tuple[int, int]:
    """Bytes of a quote, as a citation derives them: the run's first byte and the length of the encoded prefix."""
    start = document.text.index(quote)
    run = next(run for run in document.runs if run.text_start <= start < run.text_end)
    assert run.verbatim
    assert start + len(quote) <= run.text_end
    before = document.text[run.text_start : start].encode(document.charset)
    first = run.byte_start + len(before)
    last = first + len(quote.encode(document.charset))
    assert body[first:last].decode(document.charset) == quote
    return first, last
