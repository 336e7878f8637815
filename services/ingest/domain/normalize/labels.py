"""Charset labels and the Python codecs that they stand for."""

import codecs
import re

# Encoded text of these carries a state from byte to byte, so that a slice of it can't be decoded by itself.
STATEFUL = frozenset(
    {
        "iso2022_jp",
        "iso2022_jp_1",
        "iso2022_jp_2",
        "iso2022_jp_2004",
        "iso2022_jp_3",
        "iso2022_jp_ext",
        "iso2022_kr",
        "hz",
    }
)
# These join some pairs of code points into one code, so that a prefix may encode differently from the whole.
PAIRING = frozenset({"big5hkscs", "euc_jisx0213", "euc_jis_2004", "shift_jisx0213", "shift_jis_2004"})
# Every decoded code point encodes to exactly the bytes that it came from.
EXACT = frozenset({"utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "ascii", "iso8859-1"})
LATIN = frozenset({"iso8859-1", "cp1252", "iso8859-15", "cp1250", "cp1254", "iso8859-2", "iso8859-9", "mac-roman"})
WIDE = frozenset({"utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})
MULTIBYTE = (
    STATEFUL
    | PAIRING
    | {"cp932", "shift_jis", "euc_jp", "gb2312", "gbk", "gb18030", "big5", "cp950", "cp949", "euc_kr", "johab"}
)

# Codecs that are no charset of a document, or that are unsafe to honour (the Encoding Standard bans UTF-7).
_REFUSED = frozenset({"idna", "punycode", "unicode_escape", "raw-unicode-escape", "raw_unicode_escape", "unicode-escape",
                      "undefined", "mbcs", "oem", "utf-7", "charmap", "unicode_internal"})  # fmt: skip
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+()-]{0,39}")
_C1 = re.compile(rb"[\x80-\x9f]")

# The Encoding Standard reads these labels as their supersets; the narrow codec stays as a second try.
_SUPERSETS = {
    "gb2312": ("gb18030",),
    "gbk": ("gb18030",),
    "hz": ("hz",),
    "shift_jis": ("cp932", "shift_jis", "shift_jis_2004"),
    "euc_jp": ("euc_jp", "euc_jis_2004"),
    "euc_kr": ("cp949",),
    "big5": ("cp950", "big5hkscs"),
    "cp950": ("cp950", "big5hkscs"),
    "utf-8-sig": ("utf-8",),
    "utf-16": ("utf-16-le", "utf-16-be"),
    "utf-32": ("utf-32-le", "utf-32-be"),
    "tis-620": ("cp874", "tis-620"),
    "iso8859-11": ("cp874", "iso8859-11"),
}
_C1_SUPERSETS = {"iso8859-1": "cp1252", "iso8859-9": "cp1254"}
# Labels of the Encoding Standard, and common slips, that Python doesn't know.
_ALIASES = {
    "unicode-1-1-utf-8": "utf-8", "unicode11utf8": "utf-8", "x-unicode20utf8": "utf-8", "utf8mb4": "utf-8",
    "unicode": "utf-16-le", "ucs-2": "utf-16-le", "iso-10646-ucs-2": "utf-16-le", "csunicode": "utf-16-le",
    "unicodefeff": "utf-16-le", "unicodefffe": "utf-16-be",
    "x-cp1250": "cp1250", "x-cp1251": "cp1251", "x-cp1252": "cp1252", "x-cp1254": "cp1254",
    "win-1251": "cp1251", "win1251": "cp1251", "ansi": "cp1252",
    "x-sjis": "shift_jis", "windows-31j": "cp932", "x-euc-jp": "euc_jp",
    "x-gbk": "gbk", "gb_2312-80": "gb2312", "x-euc-cn": "gb2312", "gb18030-2022": "gb18030",
    "x-x-big5": "big5", "cn-big5": "big5", "windows-949": "cp949", "ksc5601": "euc_kr",
    "ks_c_5601-1987": "euc_kr", "windows-874": "cp874", "dos-874": "cp874",
    "iso-8859-8-i": "iso8859-8", "iso-8859-8-e": "iso8859-8", "iso-8859-6-i": "iso8859-6",
    "macintosh": "mac-roman", "x-mac-roman": "mac-roman", "x-mac-cyrillic": "mac-cyrillic", "koi": "koi8-r",
}  # fmt: skip


def codecs_of(label: str, body: bytes) -> tuple[str, ...]:
    """Python codecs that a charset label may mean.

    Args:
        label: As a header or tag has it, for example "windows-1251".
        body: The labelled bytes; Latin labels mean the Windows superset when it holds C1 bytes.

    Returns:
        Codec names, the first to be tried first; empty when the label names no charset.
        Source of the supersets: WHATWG Encoding Standard, section 4.2.
    """
    name = label.strip().strip("\"'").lower()
    if not _LABEL.fullmatch(name):
        return ()
    try:
        info = codecs.lookup(_ALIASES.get(name, name))
    except (LookupError, ValueError):
        return ()
    # CPython's own test for "decodes bytes to text"; it has no public name.
    if not getattr(info, "_is_text_encoding", True) or info.name in _REFUSED:
        return ()
    if info.name in _C1_SUPERSETS and _C1.search(body):
        return _C1_SUPERSETS[info.name], info.name
    return _SUPERSETS.get(info.name, (info.name,))
