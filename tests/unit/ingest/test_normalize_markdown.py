from __future__ import annotations

import pytest

from services.ingest.domain.normalize import BlockKind
from services.ingest.domain.normalize import markdown as module
from tests.unit.ingest.normalized_spans import read, shape, texts

DOCUMENT = """---
title: Relay manual
tags: [net, relay]
owner:
  team: ops
---

# Relay *manual* with `code`, [link](http://x) and <a name="x"></a>anchor

First line
second line.

~~~~
# no heading
```
# nor here
~~~~

Setext title
------------

- one
- two

  # not a section

| a | b |
|---|---|
| 1 | 2 |

    # indented code

> quoted

<div>
# raw
</div>

***

1) first
"""


def test_blocks_and_headings() -> None:
    document = read(DOCUMENT, "docs/relay.md")
    assert shape(document) == [
        ("record", "title: Relay manual\ntags: [net, relay]\nowner:\n  team: ops"),
        ("heading", '# Relay *manual* with `code`, [link](http://x) and <a name="x"></a>anchor'),
        ("paragraph", "First line\nsecond line."),
        ("code", "~~~~\n# no heading\n```\n# nor here\n~~~~"),
        ("heading", "Setext title\n------------"),
        ("list", "- one\n- two\n\n  # not a section"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("code", "    # indented code"),
        ("paragraph", "> quoted"),
        ("paragraph", "<div>\n# raw\n</div>"),
        ("list", "1) first"),
    ]
    assert document.headings == ("Relay manual with code, link and anchor", "Setext title")
    assert document.blocks[-1].heading_path == document.headings
    assert document.metadata == (("title", "Relay manual"), ("tags", "net, relay"), ("owner.team", "ops"))
    assert (document.title, document.form, document.media_type) == ("Relay manual", "text", "text/markdown")


def test_heading_paths_follow_the_levels() -> None:
    document = read("# A\n\n## B\n\n### C\n\n## D\n\ntext\n\n# E\n", "a.md")
    paths = [block.heading_path for block in document.blocks]
    assert paths == [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D"), ("A", "D"), ("E",)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_kind(end: str) -> None:
    document = read(DOCUMENT.replace("\n", end), "a.md")
    assert document.headings == ("Relay manual with code, link and anchor", "Setext title")
    assert dict(document.metadata)["owner.team"] == "ops"
    assert [kind for kind, _ in shape(document)] == [kind for kind, _ in shape(read(DOCUMENT, "a.md"))]


def test_a_byte_order_mark_hides_no_heading() -> None:
    assert read(b"\xef\xbb\xbf# A\n", "a.md").headings == ("A",)


def test_an_empty_heading_closes_its_section_and_names_nothing() -> None:
    document = read("# A\n\n#\n\ntext\n", "a.md")
    assert document.headings == ("A",)
    assert [(block.kind, block.heading_path) for block in document.blocks[1:]] == [(BlockKind.PARAGRAPH, ())] * 2


def test_headings_with_much_markup_keep_it() -> None:
    name = "*a* " * 30 + "end"
    assert read(f"# {name}\n\n# {'long ' * 120}\n\n# a\\*b &amp; c\n", "a.md").headings == (
        name,
        ("long " * 120).strip(),
        "a*b & c",
    )


def test_a_setext_heading_of_two_lines_is_one_name() -> None:
    assert read("one\ntwo\n===\n", "a.md").headings == ("one two",)


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert shape(read("```\n# a\n\n# b", "a.md")) == [("code", "```\n# a\n\n# b")]


@pytest.mark.parametrize("text", ["---\n\nfoo\n\n---\nbar\n", "---\njust words\n---\n", "---\na: b\nnever closed\n"])
def test_what_is_no_front_matter_stays_text(text: str) -> None:
    assert read(text, "a.md").metadata == ()


def test_empty_front_matter() -> None:
    assert shape(read("---\n---\ntext\n", "a.md")) == [("paragraph", "text")]


def test_templates_in_front_matter_are_read_line_by_line() -> None:
    document = read("---\ntitle: {{ a }}: b\nowner: 'ops'\n---\n\nx\n", "a.md")
    assert document.metadata == (("title", "{{ a }}: b"), ("owner", "ops"))
    assert document.notices[0].startswith("the front matter was read line by line: invalid YAML at line 1")


def test_front_matter_that_nothing_can_read_stays_text() -> None:
    assert read("---\n{{ a\n---\n\nx\n", "a.md").metadata == ()


def test_toml_front_matter() -> None:
    document = read(
        '+++\ntitle = "T"\ndraft = true\ntags = ["a", "b"]\n[owner]\nsince = 2020-01-01\n+++\n# H\n', "a.md"
    )
    assert document.metadata == (("title", "T"), ("draft", "true"), ("tags", "a, b"), ("owner.since", "2020-01-01"))
    assert document.title == "T"


def test_broken_toml_front_matter() -> None:
    document = read("+++\ntitle: T\n+++\n# H\n", "a.md")
    assert document.metadata == (("title", "T"),)
    assert "line by line" in document.notices[0]


def test_long_front_matter_is_cut_into_records() -> None:
    releases = "".join(f"  - cycle: '{number}'\n    eol: 20{number}-01-01\n" for number in range(10, 60))
    document = read(f"---\ntitle: T\nreleases:\n{releases}---\n\ntext\n", "a.md")
    records = [block for block in document.blocks if block.kind is BlockKind.RECORD]
    assert [record.context for record in records[:3]] == ["", "releases > 0", "releases > 1"]
    assert texts(document)[2] == "- cycle: '11'\n    eol: 2011-01-01"
    assert document.metadata == (("title", "T"),)


def test_a_header_block_before_markdown() -> None:
    document = read("Title: Policy\nStatus: Draft\n  since May\n\n# H\n", "a.md")
    assert document.metadata == (("Title", "Policy"), ("Status", "Draft since May"))
    assert shape(document)[0] == ("record", "Title: Policy\nStatus: Draft\n  since May")


def test_a_large_list_is_cut_into_items_and_their_code_stays_whole() -> None:
    filler = "word " * 60
    text = f"- {filler}\n- two {filler}\n\n  ```\n  # code\n  ```\n\n  - inner\n- three {filler}\n  {filler}\n"
    document = read(text, "a.md")
    assert [kind for kind, _ in shape(document)] == ["list", "list", "list"]
    assert texts(document)[1].endswith("- inner")
    big = read(text.replace("- two", "- two " + filler * 4), "a.md")
    assert ("code", "  ```\n  # code\n  ```") in shape(big)


def test_a_large_quote_is_cut_and_its_headings_are_no_sections() -> None:
    quote = "".join(f"> {'words ' * 40}\n>\n" for _ in range(6)) + "> # inner\n>\n> ***\n>\n> end\n"
    document = read(quote, "a.md")
    assert len(document.blocks) == 8
    assert document.headings == ()
    assert {block.kind for block in document.blocks} == {BlockKind.PARAGRAPH}


def test_a_large_table_carries_its_header() -> None:
    rows = "".join(f"| {number} | {'x' * 40} |\n" for number in range(40))
    (block,) = read(f"| id | name |\n|---|---|\n{rows}", "a.md").blocks
    assert (block.kind, block.context) == (BlockKind.TABLE, "| id | name |")
    (wide,) = read(f"| {'h' * 1_200} |\n|---|\n| x |\n", "a.md").blocks
    assert wide.context == ""


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("| a |\n|---|\n| 1 |\n\n", ["table"]),
        ("a|b\n-|-\n1|2\n- x\n", ["table", "list"]),
        ("a|b\n-|-\n1|2\n    code\n", ["table", "code"]),
        ("text\na|b\n-|-\n", ["paragraph", "table"]),
        ("a|b|c\n-|-\n", ["paragraph"]),
        ("a \\| b\n-|-\n", ["paragraph"]),
        ("|\n|-\n", ["paragraph"]),
        ("a|b\n- |-\n", ["paragraph", "list"]),
        ("a|b\n-x|-\n", ["paragraph"]),
        ("a|b\n-\n", ["heading"]),
        ("    a|b\n-|-\n", ["code", "paragraph"]),
        ("a|b\n    -|-\n", ["paragraph"]),
        ("> a|b\n> -|-\nlazy\n", ["paragraph", "paragraph"]),
        ("- a|b\n-|-\n", ["table"]),
        ("a\n===\nb\n---\n", ["heading", "heading"]),
        ("a\n    ===\n", ["paragraph"]),
        ("- a\n===\n", ["list"]),
        ("a\n=== x\n", ["paragraph"]),
        ("a\n1. b\n", ["paragraph", "list"]),
        ("a\n2. b\n", ["paragraph"]),
        ("a\n# b\n", ["paragraph", "heading"]),
    ],
)
def test_rules_of_prose_and_tables(text: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in shape(read(text, "a.md"))] == kinds


def test_pieces_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    text = DOCUMENT * 3 + "```\n" + "line\n" * 40 + "```\n\n" + "word\n" * 30
    whole = read(text, "a.md")
    monkeypatch.setattr(module, "_PIECE_LINES", 6)
    pieces = read(text, "a.md")
    assert (pieces.headings, shape(pieces)) == (whole.headings, shape(whole))


def test_a_list_that_fills_a_piece_goes_on_with_its_last_item(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"- item {number} {'x' * 100}\n" for number in range(40)) + "\nend\n"
    whole = read(text, "a.md")
    monkeypatch.setattr(module, "_PIECE_LINES", 4)
    pieces = read(text, "a.md")
    assert "".join(texts(pieces)).replace("\n", "") == "".join(texts(whole))
    assert shape(pieces)[-1] == ("paragraph", "end")
