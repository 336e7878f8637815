"""No input takes more than linear time: each of these took minutes, or all memory, under a plain approach."""

from __future__ import annotations

import time

import pytest

from services.ingest.domain.normalize import InvalidDocument, normalize

CASES = {
    "wide separator row": ("a.md", b"| a |\n|" + b"-" * 1_000_000 + b"|\n| b |\n"),
    "many columns": ("a.md", b"|a" * 100_000 + b"|\n" + b"|-" * 100_000 + b"|\n"),
    "brackets": ("a.md", b"[" * 1_000_000),
    "bracket lines": ("a.md", b"[\n" * 20_000),
    "link definitions": ("a.md", b"[a]: x\n" * 10_000),
    "quotes": ("a.md", b">" * 100_000),
    "nested list": ("a.md", b"".join(b" " * level + b"* a\n" for level in range(300))),
    "brackets in headings": ("a.md", (b"# " + b"[" * 490 + b"\n") * 200),
    "unclosed comments": ("a.md", b"<!-- " * 50_000),
    "unclosed fence": ("a.md", b"```\n" * 1 + b"a\n" * 50_000),
    "simple tables without end": ("a.rst", b"== ==\n\na\n" * 10_000),
    "adornments": ("a.rst", b"=" * 1_000_000),
    "blank lines": ("a.txt", b"\n" * 1_000_000),
    "small paragraphs": ("a.txt", b"a\n\n" * 100_000),
    "spaces": ("a.txt", (b" " * 1_000 + b"\n") * 500),
    "quotes in cells": ("a.csv", b'"a,\n' * 30_001),
    "one wide row": ("a.csv", b"a," * 200_000),
    "json brackets": ("a.json", b"[" * 1_000_000),
    "json lists": ("a.json", b"[" * 90 + b"1," * 20_000 + b"1" + b"]" * 90),
    "json digits": ("a.json", b"[" + b"1" * 1_000_000 + b"]"),
    "yaml brackets": ("a.yaml", b"[" * 1_000_000),
    "yaml keys": ("a.yaml", b"".join(b"k%d: v\n" % number for number in range(10_000))),
    "elements": ("a.html", b"<div>" * 1_000_000),
    "formatting": ("a.html", b"<font color=%d><p>" % 3 * 20_000),
    "open quotes": ("a.html", b"<a href='" * 100_000),
    "less-than signs": ("a.html", b"<" * 200_000),
    "end tags": ("a.html", b"</" * 200_000),
    "raw elements": ("a.html", b"<title>" * 50_000),
    "cells": ("a.html", b"<td>" * 50_000),
    "ampersands": ("a.html", b"&" * 200_000),
    "digits of a reference": ("a.html", b"&#" + b"1" * 1_000_000),
    "attributes": ("a.html", b"<p " + b"a " * 200_000),
    "header parameters": ("a.eml", b"From: a\nContent-Type: text/plain" + b';"' * 100_000 + b"\n\nx"),
    "encoded words": ("a.eml", b"From: a\nSubject: " + b"=?" * 200_000 + b"\n\nx"),
    "parts": ("a.eml", b"From: a\nContent-Type: multipart/mixed; boundary=B\n\n" + b"--B\n\nx\n" * 3_000),
    "spaces in quoted-printable": (
        "a.eml",
        b"From: a\nContent-Transfer-Encoding: quoted-printable\n\n" + b" " * 1_000_000 + b"x",
    ),
    "times of a chat": ("a.txt", b"[1:1" * 200_000),
    "fields": ("a.txt", b"Title: a\n" * 50_000),
    "labels of minutes": ("a.md", b"attendees " * 100_000),
    "zero bytes": ("a.txt", (b"a" * 50 + b"\x00") * 5_000),
    "broken bytes": ("a.txt", (b"a" * 60 + b"\xff") * 5_000),
}


@pytest.mark.parametrize("case", CASES)
def test_hard_inputs_end_soon(case: str) -> None:
    name, body = CASES[case]
    started = time.process_time()
    try:
        normalize(body, source_id=name, media_type="", charset="")
    except InvalidDocument as refusal:
        assert "line" in str(refusal) or "byte" in str(refusal)  # noqa: PT017  (reading it is as good)
    assert time.process_time() - started < 8
