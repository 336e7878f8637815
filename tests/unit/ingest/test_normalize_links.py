"""Links: targets as written, in order, each once, without what points at no document."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.domain.normalize import normalize


def links(text: str, name: str = "a.md") -> list[str]:
    return list(normalize(text.encode(), source_id=name, media_type="", charset="").links)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See [the old one](old.md) and [it again](old.md#part).", ["old.md"]),
        ("[a](<my doc.md> 'title') [b](b.md \"t\") [c](c(1).md)", ["my doc.md", "b.md", "c(1).md"]),
        ("[a][r] and [r] and [r][]\n\n[r]: ../policy/r.md 'R'\n[s]:\n  <s t.md>\n", ["../policy/r.md", "s t.md"]),
        ("<https://example.org/a?b=c#d> or <mailto:x@example.org> or <x@example.org>", ["https://example.org/a?b=c"]),
        (
            "Read https://example.org/x_(y), or (https://example.org/z).",
            ["https://example.org/x_(y)", "https://example.org/z"],
        ),
        ("![picture](p.png) [![badge](b.png)](target.md)", ["target.md"]),
        ("`[no](no.md)` and ``a ` [no](no.md)`` and [yes](yes.md)", ["yes.md"]),
        ("    [no](no.md)\n\n```\n[no](no.md)\n```\n\n[yes](yes.md)", ["yes.md"]),
        ("- item\n\n  ```\n  [no](no.md)\n  ```\n\n  [yes](yes.md)\n", ["yes.md"]),
        ("- item\n\n  ````\n  ```\n  [no](no.md)\n  ````\n\n  [yes](yes.md) and ` [y](y.md)\n", ["yes.md", "y.md"]),
        ("\\[no](no.md) and [esc\\]aped](e\\(1.md)", ["e(1.md"]),
        ("[part](#part) [mail](mailto:x@y.z) [call](tel:1) [js](javascript:x)", []),
        ("[^1]: a footnote\n\n[//]: # (a comment)\n", []),
        ("<p>\n<a class='x' href=\"html.md#x\">h</a>\n</p>\n\n[^n] [x] (y.md)", ["html.md"]),
        ("# [Title](t.md)\n\n| a |\n|---|\n| [c](cell.md) |\n\n> [q](quote.md)\n", ["t.md", "cell.md", "quote.md"]),
        ("---\nurl: https://example.org/front\n---\n\n[b](b.md)\n", ["b.md"]),
        ("nothing here", []),
    ],
)
def test_markdown(text: str, found: list[str]) -> None:
    assert links(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (":pep:`440` and :pep:`the style guide <8#naming>` and :rfc:`2119`", ["PEP 440", "PEP 8", "RFC 2119"]),
        (":doc:`guide/intro` :doc:`Start <start>` :ref:`label` :class:`~a.B`", ["guide/intro", "start"]),
        ("See `the old one <old.rst>`_ and `other <x_>`__ and `name`_.", ["old.rst"]),
        (
            "Text [1]_ and name_.\n\n.. _name: https://example.org/n#f\n.. _`long: one`: other.rst\n__ anon.rst\n",
            ["https://example.org/n", "other.rst", "anon.rst"],
        ),
        ("``:pep:`1``` and::\n\n   :pep:`2`\n\nhttps://example.org/a.", ["https://example.org/a"]),
    ],
)
def test_restructured(text: str, found: list[str]) -> None:
    assert links(text, "a.rst") == found


def test_html_takes_anchors_outside_of_menus() -> None:
    page = (
        "<html><body><nav><a href='/home'>Home</a></nav><p><a href='old.html#x'>Old</a> <a name='x'>x</a>"
        "<a href='mailto:a@b.c'>m</a> <A HREF=\"?q=1&amp;r=2\">q</A></p><footer><a href='/f'>f</a></footer></body></html>"
    )
    assert links(page, "a.html") == ["old.html", "?q=1&r=2"]


def test_plain_text_chat_and_mail_take_urls() -> None:
    assert links("Title: x\nStatus: Final\n\nSee https://example.org/a.\n", "a.txt") == ["https://example.org/a"]
    assert links("[2026-01-02 10:00] A: https://example.org/b\n", "a.txt") == ["https://example.org/b"]
    mail = "From: a@example.org\nTo: b@example.org\nSubject: s\nDate: Fri, 2 Jan 2026 10:00:00 +0000\n"
    assert links(f"{mail}\nhttps://example.org/c\n", "a.eml") == ["https://example.org/c"]
    page = f"{mail}Content-Type: text/html\n\n<p><a href='d.html'>d</a></p>\n"
    assert links(page, "a.eml") == ["d.html"]


@pytest.mark.parametrize(("text", "name"), [('{"a": "https://x.org"}', "a.json"), ("a: https://x.org", "a.yaml")])
def test_data_has_no_links(text: str, name: str) -> None:
    assert links(text, name) == []


def test_at_most_five_hundred() -> None:
    many = links(" ".join(f"[x]({n}.md)" for n in range(600)))
    assert many == [f"{n}.md" for n in range(500)]
    assert links(f"[x]({'a' * 3000}.md) [y](y.md)") == ["y.md"]


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "](",
        "`",
        "``` ",
        "[a](",
        "<a ",
        "[a]: ",
        "<a href=",
        "\\",
        "[x](((",
        "https://",
        "![",
        "[a](b(",
        "`x <",
        ":a:`",
    ],
)
@pytest.mark.parametrize("name", ["a.md", "a.rst", "a.txt"])
def test_hostile_text_takes_linear_time(piece: str, name: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    links(f"words\n{text}\n", name)
    assert time.process_time() - started < 5


@given(
    st.text(alphabet="[]()<>`\\!#: \nahtps/._~*-", max_size=80), st.sampled_from(["a.md", "a.rst", "a.txt", "a.html"])
)
def test_any_text_can_be_read(text: str, name: str) -> None:
    found = links(text, name)
    assert len(found) == len(set(found))
    assert all(link.strip() and "#" not in link for link in found)
