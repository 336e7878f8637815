from __future__ import annotations

import pytest

from tests.unit.ingest.normalized_spans import read, shape, texts

DOCUMENT = """PEP: 8
Title: Style Guide
Author: A,
        B
Superseded-By: 9

Introduction
============

Example::

    # no comment
    code

    more

Details
-------

- item
  more
lazy

- second

.. a comment
   that goes on

.. note:: Attention
   please

.. code-block:: python

   x = 1

.. table:: T

   a

.. contents::

+---+---+
| a | b |
+---+---+

====  ====
a     b
====  ====
1     2

3     4
====  ====

>>> 1 + 1
2

----

=========
 Overline
=========

Quoted::

> literal
> lines
end

  block quote::

     deep

..

   quote after an empty comment

.. [1] footnote
.. _target: http://x
:field: value
"""


def test_blocks_and_sections() -> None:
    document = read(DOCUMENT, "pep-0008.rst")
    assert shape(document) == [
        ("record", "PEP: 8\nTitle: Style Guide\nAuthor: A,\n        B\nSuperseded-By: 9"),
        ("heading", "Introduction\n============"),
        ("paragraph", "Example::"),
        ("code", "    # no comment\n    code\n\n    more"),
        ("heading", "Details\n-------"),
        ("list", "- item\n  more\nlazy\n\n- second"),
        ("paragraph", ".. note:: Attention\n   please"),
        ("code", ".. code-block:: python\n\n   x = 1"),
        ("table", ".. table:: T\n\n   a"),
        ("table", "+---+---+\n| a | b |\n+---+---+"),
        ("table", "====  ====\na     b\n====  ====\n1     2\n\n3     4\n====  ===="),
        ("code", ">>> 1 + 1\n2"),
        ("heading", "=========\n Overline\n========="),
        ("paragraph", "Quoted::"),
        ("code", "> literal\n> lines"),
        ("paragraph", "end"),
        ("paragraph", "  block quote::"),
        ("code", "     deep"),
        ("paragraph", "   quote after an empty comment"),
        ("paragraph", ".. [1] footnote"),
        ("paragraph", ".. _target: http://x"),
        ("list", ":field: value"),
    ]
    assert document.headings == ("Introduction", "Details", "Overline")
    assert document.blocks[-1].heading_path == ("Introduction", "Details", "Overline")
    assert document.metadata == (
        ("PEP", "8"),
        ("Title", "Style Guide"),
        ("Author", "A, B"),
        ("Superseded-By", "9"),
    )
    assert (document.title, document.media_type) == ("Style Guide", "text/x-rst")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_of_any_kind(end: str) -> None:
    document = read(DOCUMENT.replace("\n", end), "a.rst")
    assert document.headings == ("Introduction", "Details", "Overline")
    assert len(document.blocks) == len(read(DOCUMENT, "a.rst").blocks)


def test_levels_follow_the_order_of_styles() -> None:
    document = read("A\n==\n\nB\n--\n\nC\n~~\n\nD\n--\n\nE\n==\n\ntext", "a.rst")
    paths = [block.heading_path for block in document.blocks]
    assert paths == [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D"), ("E",), ("E",)]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("Long title\n==\n", ()),
        ("Long title\n=====\n", ("Long title",)),
        ("ab\n==\n", ("ab",)),
        ("one\ntwo\n===\n", ()),
        ("  indented\n==========\n", ()),
        ("==\nlonger than it\n==\n", ()),
        ("=====\nTitle\n-----\n", ("Title",)),
        ("1. Numbered\n-----------\n", ("1. Numbered",)),
    ],
)
def test_what_is_a_title(text: str, headings: tuple[str, ...]) -> None:
    assert read(text, "a.rst").headings == headings


def test_docinfo_is_metadata() -> None:
    document = read("Title\n=====\n\n:Author: A. Writer\n:Status: Draft\n   of May\n:Empty:\n\ntext\n", "a.rst")
    assert document.metadata == (("Author", "A. Writer"), ("Status", "Draft of May"))
    assert document.title == "Title"


def test_a_later_field_list_is_no_metadata() -> None:
    assert read("A\n==\n\nB\n--\n\n:x: y\n", "a.rst").metadata == ()


def test_a_large_list_is_cut_into_items() -> None:
    text = "".join(f"- item {number} {'word ' * 20}\n\n  * inner\n\n" for number in range(12))
    document = read(text, "a.rst")
    assert len(document.blocks) == 12
    assert texts(document)[0].endswith("* inner")


def test_a_simple_table_without_an_end_is_text() -> None:
    assert shape(read("==== ====\na    b\n\nrest\n", "a.rst")) == [
        ("paragraph", "==== ====\na    b"),
        ("paragraph", "rest"),
    ]


def test_a_definition_list_is_paragraphs() -> None:
    assert shape(read("term\n   definition\n\n   more\n", "a.rst")) == [
        ("paragraph", "term\n   definition"),
        ("paragraph", "   more"),
    ]


def test_several_simple_tables() -> None:
    table = "== ==\na  b\n== ==\n1  2\n== ==\n\n"
    assert [kind for kind, _ in shape(read(table * 2, "a.rst"))] == ["table", "table"]


def test_a_text_without_a_last_line_end() -> None:
    assert shape(read("one\ntwo", "a.rst")) == [("paragraph", "one\ntwo")]


def test_only_adornments_and_comments_give_no_blocks() -> None:
    assert read("=====\n\n.. comment\n\n..\n", "a.rst").blocks == ()
