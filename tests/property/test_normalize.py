"""Whatever comes in: a normalised document whose spans hold, or a clear refusal."""

from __future__ import annotations

import json
import string

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from services.ingest.domain.normalize import InvalidDocument, Normalized, normalize
from tests.unit.ingest.normalized_spans import assert_spans

NAMES = ("a", "a.md", "a.html", "a.rst", "a.txt", "a.json", "a.jsonl", "a.yaml", "a.csv", "a.tsv", "a.eml")
CODECS = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1251", "cp1252", "koi8-r", "gb18030", "cp932",
    "shift_jis_2004", "euc_jp", "euc_jis_2004", "big5", "big5hkscs", "cp949", "iso2022_jp", "iso2022_kr", "hz", "cp037",
)  # fmt: skip
LABELS = ("", "", "", *CODECS, "gb2312", "latin-1", "bogus", "rot13")
MARKS = (
    "# ", "## x\n", "```\n", "~~~", "---\n", "+++\n", "===\n", "- ", "* ", "1. ", "> ", "|", "|-|-|\n", "a|b\n-|-\n", "    ",
    "::\n", ".. note:: x\n", ".. x\n", ":f: v\n", "+-+\n", "== ==\n", ">>> ", "<p>", "</p>", "<h1>", "</h1>", "<div>", "</div>",
    "<table><tr><td>", "</table>", "<ul><li>", "</ul>", "<pre>\n", "</pre>", "<nav>", "</nav>", "<br>", "<!--", "-->", "<script>",
    "</script>", "<title>", "<b", "&amp;", "&nbsp;", "&#0;", "&#55296;", "&x", "{", "}", "[", "]", ",", ":", '"', '{"a": 1}', "[1,2]",
    "\\u0416", "\\ud800", "\\ud83d\\ude00", "a: b\n", "? ", "&a ", "*a", "!!", "'", ";", "\t", '"x""y"', "[12:01] Ann: hi\n",
    "From: a\n", "Subject: =?utf-8?q?=C3=A9?=\n", "Date: x\n", "To: b\n", "--B\n", "--B--\n", "=C3=A9", "=\n",
    "Content-Type: multipart/mixed; boundary=B\n", "Content-Type: text/html\n", "Content-Transfer-Encoding: base64\n\n", "QUJD\n",
    "Content-Transfer-Encoding: quoted-printable\n\n", "Attendees: x\n", "Actions: y\n", "Title: t\n", "\n", "\n\n", "\r\n", "\r", " ",
    "  ", "é", "ß", "Срок", "保存期限", "か゚", "Ê̄", "☕", "😀", "\x00", "\u2028", "\x85", "\x0b", "\ufeff", "\ufffd", "word ", "x" * 300,
)  # fmt: skip

texts = st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=12)), max_size=40).map("".join)


def checked(body: bytes, name: str, charset: str = "", media_type: str = "") -> Normalized | None:
    try:
        document = normalize(body, source_id=name, media_type=media_type, charset=charset)
    except InvalidDocument as refusal:
        str(refusal).encode("utf-8")
        return None
    assert_spans(body, document)
    return document


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(texts, st.sampled_from(NAMES), st.sampled_from(CODECS), st.sampled_from(LABELS))
@example("Ê̄", "a.txt", "big5hkscs", "big5hkscs")
@example("\x1b\x00$B=D0F", "a.txt", "utf-8", "latin-1")
@example("\xd7# # # ", "a", "iso2022_kr", "iso2022_kr")
def test_spans_hold_for_any_text_in_any_charset(text: str, name: str, codec: str, label: str) -> None:
    checked(text.encode(codec, "ignore"), name, label)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(texts, st.binary(max_size=6), st.integers(0, 400), st.sampled_from(NAMES), st.sampled_from(LABELS))
@example("PEPé\t:[ 3\n\x00T=D0", b"\xd36", 5, "a.md", "gb2312")
@example("Cl80\n\n", b"\xaf80\x853", 2, "a.txt", "gb2312")
def test_spans_hold_around_broken_bytes(text: str, broken: bytes, place: int, name: str, label: str) -> None:
    body = text.encode("utf-8", "ignore")
    checked(body[:place] + broken + body[place:], name, label)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(NAMES), st.sampled_from(LABELS))
def test_any_bytes_are_read_or_refused(body: bytes, name: str, label: str) -> None:
    checked(body, name, label)


plain_texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cc"]), max_size=60)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(plain_texts, min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["a.txt", "a.md", "a.rst", "a.csv"]),
)
def test_verbatim_formats_keep_every_character(lines: list[str], end: str, name: str) -> None:
    body = end.join(lines).encode()
    document = checked(body, name)
    assert document is not None
    assert document.text == body.decode().removeprefix("\ufeff")
    assert len(document.runs) <= 1
    assert document.charset == "utf-8"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=40,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(values, st.sampled_from([None, 1]), st.booleans())
@example({"00": [{}], "0": None, "": [{}]}, None, False)
def test_json_records_hold_every_scalar(value: object, indent: int | None, ascii_only: bool) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    document = checked(body, "a.json")
    assert document is not None
    if "\ufffd" not in document.text:
        assert json.loads(document.text) == json.loads(body.decode("utf-8"))
    covered = "".join(document.text[block.text_start : block.text_end] for block in document.blocks)
    for word in _scalars(json.loads(document.text)):
        assert json.dumps(word, ensure_ascii=False) in covered or "\\" in json.dumps(word, ensure_ascii=False)


def _scalars(value: object) -> list[str]:
    if isinstance(value, dict):
        return [word for member in value.values() for word in _scalars(member)]
    if isinstance(value, list):
        return [word for member in value for word in _scalars(member)]
    return [value] if isinstance(value, str) and value.isprintable() and value.isalpha() else []


words = st.text(string.ascii_letters + "éжк ", min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(st.one_of(words, st.just('a "quoted"\ncell, too')), min_size=2, max_size=4), min_size=2, max_size=8
    )
)
def test_csv_rows_come_back(rows: list[list[str]]) -> None:
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    document = checked("\n".join(lines).encode(), "a.csv")
    assert document is not None
    assert [document.text[block.text_start : block.text_end] for block in document.blocks] == lines


@settings(max_examples=100, deadline=None)
@given(
    st.lists(words.filter(str.strip), min_size=1, max_size=10),
    st.sampled_from(["<p>{}</p>", "<div>{}", "<li>{}</li>", "<h2>{}</h2>", "<td>{}", "{}<br>"]),
)
def test_html_keeps_the_words_in_order(pieces: list[str], frame: str) -> None:
    body = "".join(frame.format(piece) for piece in pieces).encode()
    document = checked(body, "a.html")
    assert document is not None
    assert document.text.split() == " ".join(pieces).split()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            words.filter(str.strip),
            st.sampled_from(["utf-8", "koi8-r", "utf-16"]),
            st.sampled_from(["base64", "quoted-printable", "8bit"]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_mail_parts_come_back_whatever_their_encoding(parts: list[tuple[str, str, str]]) -> None:
    body = b"From: a\r\nSubject: s\r\nContent-Type: multipart/mixed; boundary=BB\r\n\r\n"
    for text, charset, encoding in parts:
        raw = (text.strip() + " end.").encode(charset, "ignore")
        coded = {"base64": _base64, "quoted-printable": _quoted}.get(encoding, bytes)(raw)
        body += f"--BB\r\nContent-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n".encode()
        body += coded + b"\r\n"
    document = checked(body + b"--BB--\r\n", "a.eml")
    assert document is not None
    assert document.text.count(" end.") == len(parts)


def _base64(raw: bytes) -> bytes:
    import base64

    return base64.encodebytes(raw)


def _quoted(raw: bytes) -> bytes:
    return b"".join(b"=%02X" % byte for byte in raw)
