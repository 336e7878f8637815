from __future__ import annotations

import pytest

from services.ingest.domain.normalize import plain as module
from tests.unit.ingest.normalized_spans import read, shape, texts


def test_paragraphs() -> None:
    document = read("\n\n  First\n  paragraph.\n \t\nSecond.\r\n\r\nThird.\r\rFourth\n\n\n", "a.txt")
    assert texts(document) == ["  First\n  paragraph.", "Second.", "Third.", "Fourth"]
    assert (document.form, document.media_type, document.title) == ("text", "text/plain", "a")


@pytest.mark.parametrize("body", [b"", b" ", b"\n\r\n\t", b"\xef\xbb\xbf", "\ufeff \n".encode("utf-16-le")])
@pytest.mark.parametrize(
    "name", ["a.txt", "a.md", "a.html", "a.rst", "a.json", "a.jsonl", "a.yaml", "a.csv", "a.eml", "a"]
)
def test_blank_documents_are_valid_and_have_no_blocks(body: bytes, name: str) -> None:
    document = read(body, name)
    assert document.blocks == ()
    assert not document.text.strip()


def test_a_long_text_joins_small_paragraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONG_TEXT_CHARS", 2_000)
    text = "short one.\n\n" * 300
    document = read(text, "a.txt")
    assert len(document.blocks) == 7
    assert "".join(text.split()) == "".join("".join(texts(document)).split())


def test_a_header_block_becomes_metadata() -> None:
    document = read("Title: Rules\nStatus: Final\n\nBody text.\n", "a.txt")
    assert document.metadata == (("Title", "Rules"), ("Status", "Final"))
    assert shape(document) == [("record", "Title: Rules\nStatus: Final"), ("paragraph", "Body text.")]
    assert document.title == "Rules"


def test_a_header_block_without_a_body() -> None:
    assert len(read("Title: Rules\nStatus: Final\n\n \n", "a.txt").blocks) == 1


def test_metadata_is_bounded() -> None:
    head = "".join(f"Field-{number}: {'v' * 9_000 if not number else 'v'}\n" for number in range(300))
    document = read(f"Title: T\n{head}\ntext", "a.txt")
    assert len(document.metadata) == 200
    assert len(dict(document.metadata)["Field-0"]) == 4_000


@pytest.mark.parametrize(
    "text", ["Anna: hello\nBert: hi\n\n", "Title: one only\n\ntext", "Title: a\nno field\n\n", "  lead\nTitle: x\n"]
)
def test_what_is_no_header_block(text: str) -> None:
    assert read(text, "a.txt").metadata == ()


def test_japanese_on_one_line() -> None:
    document = read("保存期限は七年です。" * 50, "a.txt")
    assert len(document.blocks) == len(document.runs) == 1


def test_a_five_megabyte_line_is_one_block() -> None:
    document = read("x" * 5_000_000, "a.txt")
    assert len(document.blocks) == len(document.runs) == 1
