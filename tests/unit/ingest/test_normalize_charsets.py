from __future__ import annotations

import pytest

from services.ingest.domain.normalize import InvalidDocument, normalize
from services.ingest.domain.normalize.labels import codecs_of
from tests.unit.ingest.normalized_spans import assert_spans, bytes_of, read

SAMPLES = {
    "cp1251": "Срок хранения записей — 7 лет. Ответственный: архив.",
    "koi8-r": "Срок хранения записей 7 лет. Ответственный: архив.",
    "cp1252": "Le café est fermé à midi. Où est passée la clé du dépôt ?",
    "cp1250": "Kocioł jest sprawdzany każdego marca. Źródło: dział techniczny.",
    "cp1253": "Κάθε Μάρτιο ελέγχεται στον λέβητα.",
    "cp932": "ボイラーは毎年三月に点検される。担当は設備課です。",
    "euc_jp": "ボイラーは毎年三月に点検される。担当は設備課です。",
    "gb18030": "锅炉每年三月检查一次。负责人是设备科。",
    "cp950": "鍋爐每年三月檢查一次。負責人是設備科。",
    "cp949": "보일러는 매년 3월에 점검합니다. 담당은 설비과입니다.",
    "iso2022_jp": "ボイラーは毎年三月に点検される。",
}


@pytest.mark.parametrize("codec", SAMPLES)
@pytest.mark.parametrize("declared", ["", "utf-8", "iso-8859-1"])
def test_text_in_any_charset_is_read_right_although_it_is_undeclared_or_misdeclared(codec: str, declared: str) -> None:
    document = read(SAMPLES[codec].encode(codec), "a.txt", charset=declared)
    assert document.text == SAMPLES[codec]
    told = document.charset in {"iso2022_jp", *codecs_of(declared or "utf-8", b"\x80")} and not declared
    assert told or document.charset == "iso8859-1" or document.notices


@pytest.mark.parametrize("codec", SAMPLES)
def test_a_right_declaration_is_followed_without_a_notice(codec: str) -> None:
    document = read(SAMPLES[codec].encode(codec), "a.txt", charset=codec)
    assert (document.text, document.charset, document.notices) == (SAMPLES[codec], codec, ())


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("GB2312", "gb18030"),
        ("gbk", "gb18030"),
        ("Shift_JIS", "cp932"),
        ("ks_c_5601-1987", "cp949"),
        ("big5", "cp950"),
        ("latin1", "iso8859-1"),
        ("windows-1252", "cp1252"),
        ("x-cp1251", "cp1251"),
        ('"utf8"', "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("unicode", "utf-16-le"),
    ],
)
def test_labels_mean_the_supersets_of_the_encoding_standard(label: str, codec: str) -> None:
    assert codecs_of(label, b"")[0] == codec


def test_latin_1_with_c1_bytes_is_windows_1252() -> None:
    assert codecs_of("iso-8859-1", b"\x93")[0] == "cp1252"
    assert read(b"\x93quoted\x94 text", "a.txt", charset="iso-8859-1").text == "“quoted” text"


@pytest.mark.parametrize(
    "label", ["rot13", "base64", "idna", "utf-7", "unicode_escape", "no such", "", "x" * 60, "\x00", "bogus"]
)
def test_what_is_no_charset_has_no_codec(label: str) -> None:
    assert codecs_of(label, b"") == ()


def test_an_unknown_charset_is_told_and_the_evidence_followed() -> None:
    document = read("Größe".encode(), "a.txt", charset="utf-9000")
    assert document.text == "Größe"
    assert document.notices == ("the request names the charset 'utf-9000', which is unknown; it was ignored",)


def test_gb2312_label_over_gb18030_characters() -> None:
    text = "人名㐀㒨、编号 𠀀。" * 3
    document = read(text.encode("gb18030"), "a.txt", charset="gb2312")
    assert (document.text, document.charset) == (text, "gb18030")


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-32-be"])
def test_byte_order_marks_are_followed_and_left_out(codec: str) -> None:
    mark = "" if codec in {"utf-8-sig", "utf-16", "utf-32"} else "\ufeff"
    body = (mark + "# Größe ☕\n\nText 😀 hier.\n").encode(codec)
    document = read(body, "a.md", charset="iso-8859-1")
    assert document.headings == ("Größe ☕",)
    assert document.text.startswith("# Größe")
    assert document.runs[0].char_start == 1
    assert len(document.notices) == 1
    bytes_of(body, document, "Text 😀 hier.")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_text_without_a_mark_is_told_by_its_zero_bytes(codec: str) -> None:
    document = read("Plain words, line one.\nLine two.\n".encode(codec), "a.txt")
    assert document.text.startswith("Plain words")
    assert document.charset == codec


def test_wide_text_without_ascii_needs_its_label() -> None:
    body = "保存期限为七年".encode("utf-16-le")
    assert read(body, "a.txt", charset="utf-16").text == "保存期限为七年"


def test_a_wide_label_over_plain_bytes_is_not_followed() -> None:
    document = read("Plain words, all ASCII.", "a.txt", charset="utf-16")
    assert (document.text, document.charset) == ("Plain words, all ASCII.", "utf-8")
    assert document.notices


def test_utf_16_with_a_lone_surrogate_and_a_cut_unit() -> None:
    body = b"\xff\xfe" + "a\ud800b\x00".encode("utf-16-le", "surrogatepass") + b"\x41"
    document = read(body, "a.txt")
    assert document.text == "a\ufffdb\ufffd\ufffd"
    assert document.notices == (
        "1 NUL character replaced by U+FFFD at byte 8",
        "1 lone surrogate replaced by U+FFFD at byte 4",
        "1 byte that can't be decoded as utf-16-le replaced by U+FFFD at byte 10",
    )


def test_utf_32_code_beyond_unicode_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="byte 8"):
        read(b"\xff\xfe\x00\x00a\x00\x00\x00\x00\x00\x00\x7f", "a.txt")


def test_cesu_pairs_are_characters_and_lone_halves_are_replaced() -> None:
    body = "a \ud83d\ude00 b \udc00 c".encode("utf-8", "surrogatepass")
    document = read(body, "a.txt")
    assert document.text == "a 😀 b \ufffd c"
    assert document.notices == ("1 lone surrogate replaced by U+FFFD at byte 11",)
    emoji = document.runs[1]
    assert (emoji.verbatim, emoji.byte_start, emoji.byte_end) == (False, 2, 8)


def test_few_broken_bytes_are_replaced_and_counted() -> None:
    body = "Der Kessel wird jährlich geprüft, größtenteils im März.".encode() * 5 + b" \xff\xfe"
    document = read(body, "a.txt")
    assert document.text.endswith("\ufffd\ufffd")
    assert document.notices == (
        f"2 bytes that can't be decoded as utf-8 replaced by U+FFFD, the first at byte {len(body) - 2}",
    )


def test_one_broken_byte_of_a_declared_utf_8_is_replaced() -> None:
    assert read(b"Boiler \xff works.", "a.txt", charset="utf-8").text == "Boiler \ufffd works."


def test_one_accent_is_evidence_only_inside_a_word() -> None:
    assert read(b"caf\xe9", "a.txt").text == "café"
    assert read(b"abc \xff def", "a.txt").text == "abc \ufffd def"


def test_a_declared_charset_with_a_damaged_byte_is_kept() -> None:
    body = "锅炉每年三月检查一次。".encode("gb18030") * 30 + b"\xff\n"
    document = read(body, "a.txt", charset="gb2312")
    assert document.charset == "gb18030"
    assert document.text.count("\ufffd") == 1


def test_mostly_broken_text_is_refused_with_the_place() -> None:
    with pytest.raises(InvalidDocument, match="128 bytes can't be decoded as utf-8, the first at byte 0"):
        read(bytes(range(128, 256)), "a.txt")


def test_control_characters_make_it_binary() -> None:
    with pytest.raises(InvalidDocument, match="binary data"):
        read(bytes(range(1, 32)) * 4, "a.txt")


@pytest.mark.parametrize(
    "codec", ["cp932", "shift_jis_2004", "euc_jis_2004", "big5hkscs", "iso2022_jp", "iso2022_kr", "hz"]
)
def test_spans_hold_in_codecs_that_are_hard_to_cut(codec: str) -> None:
    words = {
        "hz": "检查 test ~\nplain\n",
        "iso2022_kr": "보일러 test\n점검 ~ two\n",
        "big5hkscs": "Ê̄ê̌ 鍋爐 test\nplain\n",
    }
    text = words.get(codec, "点検 test ~ か゚\nplain\n" if "2004" in codec else "点検 test ~\nplain\n")
    body = text.encode(codec)
    document = read(body, "a.txt", charset=codec)
    assert document.text == text
    bytes_of(body, document, "test")


def test_codes_that_do_not_encode_back_are_not_verbatim() -> None:
    body = b"\x87\x90 = \x81\xe0 and \x81x\n"  # two codes of one character, and a lead byte that leads nowhere
    document = normalize(body + b"plain words here\n" * 3, source_id="a.txt", media_type="", charset="shift_jis")
    assert_spans(body + b"plain words here\n" * 3, document)
    assert document.charset == "cp932"
    assert document.text.startswith("≒ = ≒ and")


def test_nul_between_shift_sequences() -> None:
    body = "点検".encode("iso2022_jp") + b"\x00 plain"
    document = read(body, "a.txt", charset="iso-2022-jp")
    assert document.text == "点検\ufffd plain"
    assert document.notices == ("1 NUL character replaced by U+FFFD at byte 10",)
    mixed = b"\x1b\x00$B=D0F and \x1b$B=D0F\x1b(B"
    assert read(mixed, "a.txt", charset="iso-2022-jp").text.count("\ufffd") == 1


def test_a_label_under_which_plain_ascii_reads_differently_is_not_followed() -> None:
    document = read("Plain ASCII words.", "a.txt", charset="cp037")
    assert (document.text, document.charset, len(document.notices)) == ("Plain ASCII words.", "utf-8", 1)


def test_valid_utf_8_wins_over_a_legacy_label_unless_it_may_be_chance() -> None:
    document = read("Größe und Länge", "a.txt", charset="iso-8859-1")
    assert (document.text, document.charset) == ("Größe und Länge", "utf-8")
    assert "the bytes are valid UTF-8" in document.notices[0]
    few = "é".encode()
    assert read(few, "a.txt", charset="gb18030").charset == "gb18030"
    assert read("é".encode() * 4, "a.txt", charset="gb18030").charset == "utf-8"


def test_the_guess_looks_at_the_lines_with_accents() -> None:
    head = b"Plain ASCII line of a long file.\n" * 4_000
    document = read(head + SAMPLES["cp1251"].encode("cp1251") + b"\n" + head, "a.txt", charset="iso-8859-1")
    assert (document.charset, document.text.count("\u0430") > 2) == ("cp1251", True)
    long_line = (SAMPLES["cp1251"] * 1_500).encode("cp1251")
    assert read(long_line, "a.txt").charset == "cp1251"


def test_escape_sequences_that_are_no_charset_stay() -> None:
    assert read("\x1b[1mbold\x1b[0m \x1b$B!", "a.txt").charset == "utf-8"
    assert read("\x1b$B!", "a.txt").charset == "utf-8"


def test_ebcdic_is_read_when_declared() -> None:
    body = "Retention is seven years.".encode("cp037")
    assert read(body, "a.txt", charset="cp037").text == "Retention is seven years."


def test_media_type_parameters_declare_a_charset() -> None:
    document = read("Größe".encode("cp1252"), "a.txt", "text/plain; charset=windows-1252")
    assert (document.text, document.charset, document.notices) == ("Größe", "cp1252", ())
