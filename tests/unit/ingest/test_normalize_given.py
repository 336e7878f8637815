from __future__ import annotations

from services.ingest.domain.normalize import BlockKind
from tests.unit.ingest.normalized_spans import bytes_of, read, texts

G01 = """# Installing the relay

Run the steps below.

```bash
# fetch the package
relayctl fetch --channel stable
# start the service
relayctl up
```

The relay listens on port 7443.

## Removing the relay

Run `relayctl purge`.
"""
G02 = b"# Alpha\r\n\r\nFirst body line.\r\n\r\n## Beta\r\nSecond body line: the retention period is 30 days.\r\n"
G04_TEXT = bytes.fromhex(
    "d1f0eeea20f5f0e0ede5ede8ff20e7e0efe8f1e5e920972037 20ebe5f22e20cef2e2e5f2f1f2e2e5ededfbe93a20e0f0f5e8e22e"
)
G04 = (
    b'<html><head><meta charset="windows-1251"><title>Archive</title></head><body><p>'
    + G04_TEXT
    + b"</p></body></html>"
)
G04_READS = "Срок хранения записей — 7 лет. Ответственный: архив."


def test_g01_comments_in_a_fence_are_no_headings() -> None:
    document = read(G01, "install.md")
    assert document.headings == ("Installing the relay", "Removing the relay")
    (fence,) = [block for block in document.blocks if block.kind is BlockKind.CODE]
    assert document.text[fence.text_start : fence.text_end].count("```") == 2
    assert fence.heading_path == ("Installing the relay",)
    port = document.text.index("7443")
    (block,) = [block for block in document.blocks if block.text_start <= port < block.text_end]
    assert block.heading_path == ("Installing the relay",)


def test_g02_windows_line_ends_keep_headings_and_spans() -> None:
    assert len(G02) == 92
    document = read(G02, "g02.md")
    assert document.headings == ("Alpha", "Beta")
    assert bytes_of(G02, document, "the retention period is 30 days.") == (58, 90)
    assert document.text.encode() == G02


def test_g02_with_line_feeds_has_the_same_blocks() -> None:
    windows, unix = read(G02, "g02.md"), read(G02.replace(b"\r\n", b"\n"), "g02-lf.md")
    assert texts(windows) == texts(unix)
    assert windows.headings == unix.headings
    assert [block.heading_path for block in windows.blocks] == [block.heading_path for block in unix.blocks]


def test_g03_one_nul_is_replaced_and_told() -> None:
    body = b"Boiler B is inspected every\x00 April."
    document = read(body, "g03-b")
    assert document.text == "Boiler B is inspected every\ufffd April."
    assert [run.verbatim for run in document.runs] == [True, False, True]
    assert (document.runs[1].byte_start, document.runs[1].byte_end) == (27, 28)
    assert document.notices == ("1 NUL character replaced by U+FFFD at byte 27",)


def test_g03_clean_neighbours_are_untouched() -> None:
    for body in (b"Boiler A is inspected every March.", b"Boiler C is inspected every May."):
        document = read(body, "g03")
        assert (document.text.encode(), len(document.runs), document.notices) == (body, 1, ())


def test_g04_the_charset_of_a_meta_tag_is_followed() -> None:
    assert len(G04_TEXT) == 52
    document = read(G04, "g04.html", "text/html")
    assert texts(document) == [G04_READS]
    assert document.charset == "cp1251"
    assert document.title == "Archive"
    assert document.notices == ()
    first, last = bytes_of(G04, document, "Срок хранения записей — 7 лет.")
    assert G04[first:last] == G04_TEXT[:30]


def test_g04_a_meta_tag_wins_over_a_wrong_request() -> None:
    document = read(G04, "g04.html", "text/html", "utf-8")
    assert texts(document) == [G04_READS]
    assert document.charset == "cp1251"
    assert len(document.notices) == 1
    assert "'utf-8'" in document.notices[0]
    assert "cp1251" in document.notices[0]
