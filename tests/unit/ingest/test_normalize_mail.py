from __future__ import annotations

import base64

import pytest

from services.ingest.domain.normalize import BlockKind, InvalidDocument
from services.ingest.domain.normalize.transfer import decode_transfer
from tests.unit.ingest.normalized_spans import bytes_of, read

HEAD = b"From: Ann Lee <ann@example.org>\r\nTo: bob@example.org\r\nDate: Wed, 1 May 2024 10:00:00 +0000\r\nSubject: Pump P-4\r\n"


def mail(*parts: bytes, kind: str = "mixed") -> bytes:
    body = b"".join(b"--B\r\n" + part + b"\r\n" for part in parts)
    return (
        HEAD
        + f'Content-Type: multipart/{kind}; boundary="B"\r\n\r\npreamble\r\n'.encode()
        + body
        + b"--B--\r\nepilogue"
    )


def part(content_type: str, body: bytes, encoding: str = "", more: str = "") -> bytes:
    transfer = f"Content-Transfer-Encoding: {encoding}\r\n" if encoding else ""
    return f"Content-Type: {content_type}\r\n{transfer}{more}\r\n".encode() + body


def test_a_plain_mail() -> None:
    body = HEAD + b"\r\nThe rating is 16 bar.\r\n"
    document = read(body, "a.eml")
    assert document.text.startswith("From: Ann Lee <ann@example.org>\nTo: bob@example.org\n")
    assert document.text.endswith("Subject: Pump P-4\n\nThe rating is 16 bar.\r\n")
    assert [block.kind for block in document.blocks] == [BlockKind.RECORD]
    assert document.blocks[0].context == ""
    assert dict(document.metadata)["From"] == "Ann Lee <ann@example.org>"
    assert (document.title, document.form, document.media_type) == ("Pump P-4", "informal", "message/rfc822")
    bytes_of(body, document, "The rating is 16 bar.")
    bytes_of(body, document, "Subject: Pump P-4")


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_line_ends_of_any_kind(end: str) -> None:
    document = read(HEAD.decode().replace("\r\n", end) + end + "Body." + end, "a.eml")
    assert document.text.rstrip().endswith("Subject: Pump P-4\n\nBody.")


def test_an_mbox_envelope_and_a_byte_order_mark_are_skipped() -> None:
    assert read(b"\xef\xbb\xbfFrom ann@x Wed May 1\r\n" + HEAD + b"\r\nx", "a.eml").title == "Pump P-4"


def test_headers_only() -> None:
    document = read(HEAD, "a.eml")
    assert document.text.rstrip().endswith("Subject: Pump P-4")
    assert len(document.blocks) == 1


def test_encoded_and_folded_headers() -> None:
    head = b"From: =?koi8-r?B?8MXU0g==?= <p@x>\r\nSubject: =?utf-8?q?Gr=C3=B6=C3=9Fe?=\r\n =?utf-8?q?_zwei?=\r\nCc: a,\r\n b\r\n\r\nx"
    document = read(head, "a.eml")
    assert dict(document.metadata) == {"Cc": "a, b", "From": "Петр <p@x>", "Subject": "Größe zwei"}
    assert document.text.startswith("From: Петр <p@x>\nSubject: Größe zwei\nCc: a, b\n")


@pytest.mark.parametrize(
    "subject", ["=?utf-8?b?%%%?= x", "=?utf-8?b?a?=", "=? odd", "=?bogus?q?x?=", "=?utf-8?q?=FF?=", "Größe"]
)
def test_odd_headers_are_read_somehow(subject: str) -> None:
    document = read(f"From: a\r\nSubject: {subject}\r\n\r\nx".encode(), "a.eml")
    assert document.title


def test_quoted_printable_keeps_plain_stretches_verbatim() -> None:
    text = "Der Kessel=20wird j=C3=A4hrlich gepr=\r\n=C3=BCft. =  \r\nEnde=zz  \r\nletzte \t"
    body = mail(part("text/plain; charset=utf-8", text.encode(), "quoted-printable"))
    document = read(body, "a.eml")
    assert document.text.endswith("\n\nDer Kessel wird jährlich geprüft. Ende=zz\r\nletzte")
    bytes_of(body, document, "hrlich gepr")


def test_base64_maps_line_by_line() -> None:
    text = "Срок хранения записей — семь лет. " * 8
    code = base64.encodebytes(text.encode()).replace(b"\n", b"\r\n")
    body = mail(part("text/plain; charset=utf-8", code, "base64"))
    document = read(body, "a.eml")
    assert document.text.rstrip().endswith(text.rstrip())
    start = document.text.index("Срок")
    runs = [run for run in document.runs if run.text_start >= start]
    assert len(runs) >= 8
    for run in runs:
        line = base64.b64decode(body[run.byte_start : run.byte_end].replace(b"\r\n", b"") + b"==")
        assert document.text[run.text_start : run.text_end].strip() in line.decode("utf-8", "ignore") or len(line) < 60


def test_broken_base64_is_left_out_with_a_notice() -> None:
    body = mail(part("text/plain", b"QUJ", "base64"), part("text/plain", b"kept"))
    document = read(body, "a.eml")
    assert document.text.endswith("kept")
    assert "wasn't read: 3 base64 characters are left over" in document.notices[0]
    with pytest.raises(InvalidDocument, match="no part of the mail can be read"):
        read(mail(part("text/plain", b"QUJ", "base64")), "a.eml")


def test_base64_of_odd_lines() -> None:
    code = b"VGh\nlIHJh\n\ndGluZyBp\ncy AxNg==\nignored"
    assert decode_transfer(code, 0, len(code), "base64").data == b"The rating is 16"


def test_of_alternatives_the_plain_text_is_taken() -> None:
    html = part("text/html", b"<p>hyper</p>")
    assert "hyper" not in read(mail(part("text/plain", b"plain"), html, kind="alternative"), "a.eml").text
    assert read(mail(html, kind="alternative"), "a.eml").text.endswith("\n\nhyper")
    assert read(mail(part("text/plain", b" \r\n"), html, kind="alternative"), "a.eml").text.endswith("hyper")


def test_html_parts_lose_their_markup_and_keep_their_places() -> None:
    page = b"<html><body><h1>Rating</h1><p>It is <b>16</b> bar &amp; more.</p></body></html>"
    body = mail(part("text/html; charset=utf-8", page))
    document = read(body, "a.eml")
    assert document.text.endswith("Rating\n\nIt is 16 bar & more.")
    bytes_of(body, document, "It is ")


def test_html_in_quoted_printable_with_its_own_meta_tag() -> None:
    page = '<meta charset="windows-1251"><p>Срок хранения записей</p>'.encode("cp1251")
    code = b"".join(b"=%02X" % byte if byte > 126 or byte == 61 else bytes([byte]) for byte in page)
    document = read(mail(part("text/html", code, "quoted-printable")), "a.eml")
    assert document.text.endswith("Срок хранения записей")


def test_parts_in_several_charsets() -> None:
    body = mail(
        part("text/plain; charset=koi8-r", "Срок хранения test".encode("koi8-r"), "8bit"),
        part("text/plain; charset=windows-1252", "Größe test".encode("cp1252"), "8bit"),
    )
    document = read(body, "a.eml")
    assert "Срок хранения test" in document.text
    assert "Größe test" in document.text


def test_a_charset_that_does_not_encode_back_is_not_that_of_the_mail() -> None:
    body = mail(part("text/plain; charset=shift_jis", b"\x87\x90 \x81\xe0 seven", "8bit"))
    assert read(body, "a.eml").charset == "iso8859-1"


def test_one_legacy_charset_is_that_of_the_mail() -> None:
    body = mail(part("text/plain; charset=koi8-r", "Срок хранения записей".encode("koi8-r"), "8bit"))
    document = read(body, "a.eml")
    assert document.charset == "koi8-r"
    bytes_of(body, document, "Срок хранения")


@pytest.mark.parametrize("charset", ["iso-2022-jp", "utf-16", "big5-hkscs"])
def test_parts_whose_charset_can_not_be_that_of_the_mail(charset: str) -> None:
    text = "保存期限 seven years"
    body = mail(part(f"text/plain; charset={charset}", text.encode(charset), "8bit"))
    assert read(body, "a.eml").text.rstrip().endswith(text)


def test_attachments_are_named() -> None:
    body = mail(
        part("text/plain", b"see attached"),
        part("application/pdf", b"JVBERi0=", "base64", 'Content-Disposition: attachment; filename="plan.pdf"\r\n'),
        part("text/csv", b"a,b", more="Content-Disposition: attachment\r\n"),
        part("image/png", b"x"),
    )
    document = read(body, "a.eml")
    (notice,) = document.notices
    assert notice == (
        "3 attachments weren't read: 'plan.pdf' (application/pdf), 'unnamed' (text/csv), 'unnamed' (image/png); "
        "send them as documents of their own"
    )
    many = mail(part("text/plain", b"x"), *[part("image/png", b"x")] * 12)
    assert read(many, "a.eml").notices[0].count("image/png") == 10


def test_forwarded_and_nested_mails() -> None:
    inner = b"Content-Type: message/rfc822\r\n\r\nFrom: carl\r\nSubject: inner\r\n\r\ninner body"
    nested = b'Content-Type: multipart/related; boundary="C"\r\n\r\n--C\r\n\r\ndeep\r\n--C--'
    assert read(mail(part("text/plain", b"outer"), inner, nested), "a.eml").text.endswith("\n\nouter\ninner body\ndeep")


def test_a_multipart_without_end_or_delimiters() -> None:
    cut = mail(part("text/plain", b"first"), part("text/plain", b"second")).split(b"\r\n--B--")[0]
    assert read(cut, "a.eml").text.endswith("first\nsecond")
    bare = HEAD + b"Content-Type: multipart/mixed\r\n\r\nwords"
    assert read(bare, "a.eml").text.endswith("Pump P-4\n")
    assert read(HEAD + b"Content-Type: multipart/mixed; boundary=B\r\n\r\nwords", "a.eml").text.endswith("P-4\n")


def test_deep_mails_are_refused() -> None:
    deep = b"".join(
        f"Content-Type: multipart/mixed; boundary=B{level}\r\n\r\n--B{level}\r\n".encode() for level in range(30)
    )
    with pytest.raises(InvalidDocument, match="nested deeper than 20"):
        read(HEAD + deep, "a.eml")


@pytest.mark.parametrize("body", [b"just words", b"X-Note: a\r\n\r\nwords", b"\r\nFrom: a\r\n\r\nwords"])
def test_what_has_no_headers_is_no_mail(body: bytes) -> None:
    with pytest.raises(InvalidDocument, match="no e-mail headers"):
        read(body, "a.eml")


def test_a_long_mail_carries_its_headers_as_context() -> None:
    document = read(HEAD + b"\r\n" + b"words and more words\r\n" * 100, "a.eml")
    assert document.blocks[0].context == "Pump P-4 · Ann Lee <ann@example.org> · Wed, 1 May 2024 10:00:00 +0000"


def test_an_undecodable_part_is_told() -> None:
    body = mail(part("text/plain; charset=utf-8", bytes(range(128, 256)), "8bit"), part("text/plain", b"kept"))
    document = read(body, "a.eml")
    assert "wasn't read: 128 bytes can't be decoded" in document.notices[0]


def test_notices_of_a_part_name_it() -> None:
    body = mail(part("text/plain; charset=nope", b"words"))
    assert read(body, "a.eml").notices == (
        f"the part at byte {body.index(b'words')}: the part names the charset 'nope', which is unknown; it was ignored",
    )
