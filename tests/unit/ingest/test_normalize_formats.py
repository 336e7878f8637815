from __future__ import annotations

import pytest

from services.ingest.domain.normalize import InvalidDocument, normalize, source_domain
from services.ingest.domain.normalize.formats import Format
from services.ingest.domain.normalize.origin import extension, stem
from tests.unit.ingest.normalized_spans import read


@pytest.mark.parametrize(
    ("body", "name", "media_type", "expected"),
    [
        ("# T", "a.md", "", "text/markdown"),
        ("# T", "a.txt", "text/markdown", "text/markdown"),
        ("# T", "a.md", "text/plain", "text/plain"),
        ("# T", "a", "TEXT/X-Markdown; charset=utf-8", "text/markdown"),
        ("x", "a.MD", "application/octet-stream", "text/markdown"),
        ("x", "a.py", "text/x-python", "text/plain"),
        ("x", "a.py", "", "text/plain"),
        ('{"a": 1}', "a", "application/ld+json", "application/json"),
        ("a: 1", "a", "application/openapi+yaml", "application/yaml"),
        ("a: 1", "a", "application/x-yaml", "application/yaml"),
        ("<p>x", "a", "application/xhtml+xml", "text/html"),
        ("a,b", "a", "text/csv", "text/csv"),
        ("x\n=\n", "a", "text/x-rst", "text/x-rst"),
        ("<!DOCTYPE html><p>x</p>", "page", "", "text/html"),
        ("\ufeff <!-- c -->\n<HTML><p>x</p></HTML>", "page", "", "text/html"),
        ('{"a": 1}', "data", "", "application/json"),
        ('{"a": 1}\n{"a": 2}', "data", "", "application/x-ndjson"),
        ("{not json}", "data", "", "text/plain"),
        ("[draft] words [x]", "data", "", "text/plain"),
        ("From: a@b\nTo: c@d\nSubject: s\n\nbody", "mail", "", "message/rfc822"),
        ("From: a@b\n\nbody", "mail", "", "text/plain"),
        ("---\ntitle: x\n---\n", "page", "", "text/markdown"),
        ("# T\n\n```\nx\n```\n", "README", "", "text/markdown"),
        ("# comment\n# more\nx=1\n", "settings.conf", "", "text/plain"),
        ("just words", "README", "", "text/plain"),
        ("<html> in the middle", "notes.txt", "", "text/plain"),
    ],
)
def test_media_type_then_name_then_content(body: str, name: str, media_type: str, expected: str) -> None:
    assert read(body, name, media_type).media_type == expected


def test_a_sniffed_format_is_refused_as_a_stated_one() -> None:
    with pytest.raises(InvalidDocument, match="nested deeper"):
        read(("<html>" + "<div>" * 1_000).encode("utf-16"), "page")


def test_wide_html_without_name_is_found_by_its_text() -> None:
    assert read("<html><p>x</p></html>".encode("utf-16"), "page").media_type == "text/html"


@pytest.mark.parametrize(
    ("body", "name", "media_type", "what"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "a.pdf", "application/pdf", "a PDF file"),
        (b"%PDF-1.7 text", "a.md", "text/markdown", "a PDF file"),
        (b"PK\x03\x04rest", "a.docx", "", "a zip archive or an Office file"),
        (b"\x89PNG\r\n\x1a\n", "a", "", "a PNG image"),
        (b"\x1f\x8b\x08", "a.txt.gz", "", "a gzip archive"),
        (b"RIFF\x00\x00\x00\x00WAVE", "a", "", "a RIFF media file"),
        (b"words", "a.docx", "", "files named .docx aren't supported"),
        (b"words", "a", "application/x-foo", "the media type 'application/x-foo' isn't supported"),
        (b"<a/>", "a", "text/xml", "the media type 'text/xml' isn't supported"),
        (b"\x00\x01\x02\x03" * 40, "a.bin2", "", "binary data"),
    ],
)
def test_unsupported_formats_are_refused_by_name(body: bytes, name: str, media_type: str, what: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        normalize(body, source_id=name, media_type=media_type, charset="")
    assert what in str(caught.value)
    if "binary" not in what:
        assert "supported are Markdown, HTML" in str(caught.value)


def test_words_that_look_like_a_signature_are_text() -> None:
    assert read("RIFFRAFF is no media file, BZh neither.", "a.txt").text.startswith("RIFF")


def test_every_format_names_its_media_type() -> None:
    assert len({item.value for item in Format}) == len(Format)


@pytest.mark.parametrize(
    ("uri", "source_id", "expected"),
    [
        ("https://Docs.Example.org:8443/a/b", "x/y.md", "docs.example.org"),
        ("", "policies/leave.md", "policies"),
        ("", "/policies/leave.md", "policies"),
        ("file:///srv/x.md", "x.md", "main"),
        ("not a uri", "x.md", "main"),
        ("http://[broken", "a/b", "a"),
        ("", "./x.md", "main"),
        ("", "", "main"),
    ],
)
def test_source_domain(uri: str, source_id: str, expected: str) -> None:
    assert source_domain(uri, source_id, "main") == expected


@pytest.mark.parametrize(
    ("source_id", "name", "suffix"),
    [
        ("a/b/leave.md", "leave", "md"),
        ("policy-v1.0", "policy-v1.0", "0"),
        (".profile", ".profile", ""),
        ("plain", "plain", ""),
        ("a.tar.GZ", "a.tar", "gz"),
        ("folder.d/", "folder", "d"),
    ],
)
def test_names(source_id: str, name: str, suffix: str) -> None:
    assert (stem(source_id), extension(source_id)) == (name, suffix)


def test_titles_come_from_the_best_place() -> None:
    assert read("---\ntitle: Meta\n---\n# Head\n", "stem.md").title == "Meta"
    assert read("# Head\n", "stem.md").title == "Head"
    assert read("words", "folder/stem.md").title == "stem"
    assert read("words", "").title == ""
    assert read("# " + "x" * 600, "a.md").title == "x" * 500


def test_notices_are_bounded() -> None:
    parts = "".join(f"--B\nContent-Type: text/plain; charset=bad{number}\n\nx\n" for number in range(60))
    document = read(f"From: a\nSubject: s\nContent-Type: multipart/mixed; boundary=B\n\n{parts}--B--\n", "a.eml")
    assert len(document.notices) == 51
    assert document.notices[-1] == "10 more notices were left out"
