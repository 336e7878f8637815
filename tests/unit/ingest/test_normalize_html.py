from __future__ import annotations

import pytest

from services.ingest.domain.normalize import BlockKind, InvalidDocument
from tests.unit.ingest.normalized_spans import bytes_of, read, shape, texts

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Relay &amp; co
  manual</title><meta name="description" content="All &lt;about&gt; it"><meta property="og:type" content="article">
<meta http-equiv="x" content="y"><style>p { color: red }</style>
<script>if (a < b) document.write("<p>never</p>")</script></head><body>
<nav><a href="/">Home</a></nav><header role="banner">Site name</header>
<h1>The <b>relay</b></h1>
<p>Port  is <code>7443</code> &mdash; for&nbsp;7 years.
  And a &lt; b<!-- <p>comment</p> -->, c &amp d.<br>Next line</p>
<ul><li>one<li>two <ul><li>inner</ul></ul>
<table><caption>Ports</caption><tr><th>name<th>port<tr><td>relay<td><p>7443<p>tcp</table>
<pre>

  # code &amp; more
    deep

end
</pre>
<h2>Second</h2>loose text<div hidden>not shown</div><div aria-hidden="true">nor this</div>
<dl><dt>Term<dd>Meaning<dt>Colon:<dd>Value</dl>
<template><p>no</p></template><noscript>no</noscript><select><option>no</select>
<footer>Imprint</footer></body></html>"""


def test_structure() -> None:
    document = read(PAGE, "a.html")
    assert shape(document) == [
        ("heading", "The relay"),
        ("paragraph", "Port is 7443 — for 7 years.\nAnd a < b, c & d.\nNext line"),
        ("list", "one\ntwo\ninner"),
        ("table", "Ports\nname | port\nrelay | 7443 tcp"),
        ("code", "  # code & more\n    deep\n\nend"),
        ("heading", "Second"),
        ("paragraph", "loose text"),
        ("list", "Term: Meaning\nColon: Value"),
    ]
    assert document.headings == ("The relay", "Second")
    assert document.blocks[-1].heading_path == ("The relay", "Second")
    assert document.metadata == (("description", "All <about> it"), ("og:type", "article"))
    assert (document.title, document.form, document.notices) == ("The relay", "text", ())


def test_every_piece_leads_to_the_source() -> None:
    body = PAGE.encode()
    document = read(body, "a.html")
    bytes_of(body, document, "And a ")
    for run in document.runs:
        if not run.verbatim and document.text[run.text_start : run.text_end] == "—":
            assert body[run.byte_start : run.byte_end] == b"&mdash;"
            break
    else:
        pytest.fail("no run for the dash")


def test_the_title_tag_serves_where_there_is_no_heading() -> None:
    assert read("<title>A\n&copy;</title><p>x", "a.html").title == "A ©"
    assert read("<p>x<svg><title>pen</title></svg>", "stem.html").title == "stem"
    assert read("<title>first</title><title>second</title>", "a.html").title == "first"


def test_only_navigation_is_kept_with_a_notice() -> None:
    document = read("<nav>Home</nav><footer>End</footer><script>x</script>", "a.html")
    assert texts(document) == ["Home", "End"]
    assert "only navigation" in document.notices[0]


@pytest.mark.parametrize("body", ["", "<script>x</script>", "<p>&nbsp;</p>", "<p> </p><template>x</template>"])
def test_pages_without_text(body: str) -> None:
    document = read(body, "a.html")
    assert (document.blocks, document.text.strip(), document.notices) == ((), "", ())


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a <b", "a"),
        ("a<!-- open", "a"),
        ("a<script>b", "a"),
        ("a<!doctype", "a"),
        ("a<?php", "a"),
    ],
)
def test_a_page_that_breaks_off_says_where(body: str, text: str) -> None:
    document = read(f"line\n<p>{body}", "a.html")
    assert texts(document)[-1] == text
    assert document.notices == ("the page breaks off inside a tag or comment at line 2",)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("1 < 2 <3 <> <- ok", "1 < 2 <3 <> <- ok"),
        ("a</>b</ c>d<?php x ?>e<![CDATA[f]]>g", "abdeg"),
        ("<p title='a>b' data-x=\"c>d\" e=f>x</p>", "x"),
        ('<p a=b"c>x</p>', "x"),
        ("<p a= >x</p>", "x"),
        ("<p =x>x</p>", "x"),
        ("a<!-->b<!--->c<!-- --!>d", "abcd"),
        ("<title/>x<textarea>y", "xy"),
        ("&lt;b&gt; &#65;&#x42; &unknown; &#99999999999999999999999999999999999; &#1;&", "<b> AB &unknown; \ufffd &"),
        ("a&nbsp;&nbsp; b&Tab;c", "a b\tc"),
        ("a</", "a</"),
        ("a<p title='x>b", "a\n\nb"),
        ("<b>a</b><i>b</i> <u>c</u>", "ab c"),
        ("a<br><br>b", "a\nb"),
        ("a \r\n b", "a\nb"),
        ("<xmp><b></xmp>x", "x"),
        ("x<iframe>gone</iframe><video>gone</video><button>gone</button>", "x"),
    ],
)
def test_markup_as_browsers_read_it(body: str, text: str) -> None:
    assert read(body, "a.html").text == text


def test_unclosed_and_misnested_tags() -> None:
    assert shape(read("<div><p>a<p>b</div><b><p>c</b>d</p></div>e<td>f", "a.html")) == [
        ("paragraph", "a"),
        ("paragraph", "b"),
        ("paragraph", "cd"),
        ("paragraph", "e"),
        ("paragraph", "f"),
    ]


def test_text_that_the_table_throws_out_keeps_the_order_of_the_source() -> None:
    assert read("<table><tr><td>a</td></tr>lost</table>end", "a.html").text.replace("\n\n", " ") == "a lost end"


def test_layout_tables_and_lists_only_arrange() -> None:
    page = "<table><tr><td><h2>H</h2><p>a<td><table><tr><td>x<td>y</table></table><ul><li><h3>I</h3>b<li>c</ul>"
    assert shape(read(page, "a.html")) == [
        ("heading", "H"),
        ("paragraph", "a"),
        ("table", "x | y"),
        ("heading", "I"),
        ("paragraph", "b"),
        ("paragraph", "c"),
    ]


def test_a_heading_of_several_blocks_is_one() -> None:
    assert read("<h1><div>One</div><div>two</div></h1>", "a.html").headings == ("One two",)


def test_large_lists_are_cut_into_items_and_large_tables_carry_their_header() -> None:
    words = "word " * 60
    items = "".join(f"<li>{number} {words}<ul><li>inner</ul>" for number in range(5))
    document = read(f"<ul>{items}</ul>", "a.html")
    assert [block.kind for block in document.blocks] == [BlockKind.LIST] * 5
    rows = "".join(f"<tr><td>{number}<td>{words}" for number in range(5))
    (block,) = read(f"<table><tr><th>no<th>text{rows}</table>", "a.html").blocks
    assert block.context == "no | text"
    (block,) = read(f"<table><tr><th>{words * 4}{rows}</table>", "a.html").blocks
    assert block.context == ""


def test_field_lists_are_metadata() -> None:
    page = '<dl class="header"><dt>PEP:<dd>8<dt>Title<dd>Style <b>Guide</b><dd>x</dl><dl><dt>a<dd>b</dl>'
    document = read(page, "a.html")
    assert document.metadata == (("PEP", "8"), ("Title", "Style Guide, x"))
    assert document.title == "Style Guide, x"


@pytest.mark.parametrize("tag", ["div", "ul", "table", "h1", "blockquote", "svg"])
def test_deep_pages_are_refused(tag: str) -> None:
    with pytest.raises(InvalidDocument, match="nested deeper than 400 levels at line 2"):
        read("\n" + f"<{tag}>" * 5_000, "a.html")


@pytest.mark.parametrize("tag", ["p", "li", "b", "font color=x", "td", "span"])
def test_tags_that_close_themselves_or_only_decorate_are_not_depth(tag: str) -> None:
    assert "x" in read(f"<{tag}>x" * 2_000, "a.html").text


def test_end_tags_without_a_start_are_ignored() -> None:
    assert read("</div></ul>" * 1_000 + "<p>x", "a.html").text == "x"


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        ('<meta charset="windows-1251">', "cp1251"),
        ("<META CHARSET = windows-1251 >", "cp1251"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', "cp1251"),
        ('<!-- <meta charset="koi8-r"> --><meta charset="windows-1251">', "cp1251"),
        ('<?xml version="1.0" encoding="windows-1251"?>', "cp1251"),
        ("<meta name=x>", "cp1251"),
    ],
)
def test_where_a_page_states_its_charset(head: str, codec: str) -> None:
    body = (head + "<p>Срок хранения записей семь лет</p>").encode(codec)
    document = read(body, "a.html")
    assert (document.charset, document.text) == (codec, "Срок хранения записей семь лет")


def test_a_meta_tag_that_claims_utf_16_is_read_as_utf_8() -> None:
    document = read('<meta charset="utf-16"><p>Größe</p>', "a.html")
    assert (document.charset, document.text, document.notices) == ("utf-8", "Größe", ())


def test_white_space_in_preformatted_text_and_repeated_attributes() -> None:
    assert read("<pre>a<b> </b><i>\n </i>c</pre>", "a.html").text == "a \n c"
    assert read("<meta name=x name=y content=z><p hidden=a hidden>no</p><textarea>1<textarea>2", "a.html").metadata == (
        ("x", "z"),
    )


def test_separators_beside_text_that_maps_as_a_whole() -> None:
    body = "<p>点検\u3000</p><p>二\x00</p>\x00<p>x</p>".encode("iso2022_jp")
    assert read(body, "a.html", charset="iso-2022-jp").text == "点検\n\n二\ufffd\n\n\ufffd\n\nx"


def test_nul_and_broken_bytes_inside_a_page() -> None:
    body = "<p>Größe und Länge und Höhe: ".encode() + b"a\x00b \xff c &amp;\x00</p>"
    document = read(body, "a.html")
    assert document.text.endswith("a\ufffdb \ufffd c &\ufffd")
    assert len(document.notices) == 2


def test_iso_2022_jp_page() -> None:
    body = "<title>点検</title><p>ボイラーは test 点検</p>".encode("iso2022_jp")
    document = read(body, "a.html", charset="iso-2022-jp")
    assert document.text == "ボイラーは test 点検"
    assert document.title == "点検"
