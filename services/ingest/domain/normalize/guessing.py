"""Guessing the charset of bytes that declare none, or a wrong one."""

import re
import unicodedata
from collections.abc import Sequence

from charset_normalizer import from_bytes

from services.ingest.domain.normalize.labels import LATIN

_SAMPLE_BYTES = 32_768
_HIGH = re.compile(rb"[\x80-\xff]")
# Tried by the detector, and preferred in this order where several read the bytes alike.
_GUESSABLE = (
    "cp1252", "cp1251", "cp1250", "gb18030", "cp932", "euc_jp", "cp949", "cp950", "koi8-r",
    "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874", "cp866", "iso2022_jp",
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")
# Of the letters in words with accents; French and Vietnamese stay far below.
_MOST_ACCENTED = 0.7
_SHIFTED = re.compile(rb"\x1b\$[@B]")
# Besides letters, what stands in Latin prose: quotes, dashes, currency, section and degree signs, no-break space.
_PROSE_MARKS = frozenset("\u00a0\u00a1\u00a3\u00a7\u00a9\u00ab\u00ae\u00b0\u00b7\u00bb\u00bf\u00d7"
                         "\u2013\u2014\u2018\u2019\u201a\u201c\u201d\u201e\u2020\u2022\u2026\u20ac\u2122")  # fmt: skip

_WORDS_OF_ONE_LETTER = frozenset("\u00c0\u00e0\u00c1\u00e1\u00c9\u00e9\u00c5\u00e5\u00d3\u00f3\u00d4\u00f4\u00d6\u00f6")


def guess_wide(body: bytes, asked: Sequence[str]) -> str | None:
    """UTF-16 or UTF-32 without byte order mark, told by where the zero bytes are.

    Args:
        body: The original bytes.
        asked: Wide codecs that were declared; they need less evidence.

    Returns:
        The codec, or None.
    """
    sample = body[:_SAMPLE_BYTES]
    zeros = [sample[offset::4].count(0) for offset in range(4)]
    quarter = len(sample) // 4
    if quarter and not len(body) % 4:
        if zeros[0] < quarter and min(zeros[2], zeros[3]) == quarter:
            return "utf-32-le"
        if zeros[3] < quarter and min(zeros[0], zeros[1]) == quarter:
            return "utf-32-be"
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    need = max(1, len(sample) // 50) if asked else max(4, len(sample) // 8)
    if odd >= need and odd > 8 * even:
        return "utf-16-le"
    if even >= need and even > 8 * odd:
        return "utf-16-be"
    return _wide_without_zeros(body, asked)


def _wide_without_zeros(body: bytes, asked: Sequence[str]) -> str | None:
    """A declared wide text that holds no ASCII at all, for example one line of Chinese."""
    if "\ufffd" not in body.decode("utf-8", "replace"):
        return None
    texts = ((codec, body.decode(codec, "replace")) for codec in asked)
    return next((codec for codec, text in texts if "\ufffd" not in text and reads_well(text)), None)


def guess_charset(body: bytes) -> str | None:
    """Codec under which the bytes read as words, or None. The body isn't valid UTF-8."""
    sample = sample_of(body)
    if len(_HIGH.findall(sample)) < 4:
        return "cp1252" if reads_well(sample.decode("cp1252", "replace")) else None
    for match in from_bytes(sample, cp_isolation=list(_GUESSABLE)):
        # These read the sample alike, so the widely used one is named.
        readings = _canonical((match.encoding, *match.could_be_from_charset))
        codec = min(readings, key=_GUESSABLE.index, default="utf-8")
        text = str(match)
        if reads_well(text) and not looks_wrong(text, codec):
            return codec
    return None


def _canonical(names: Sequence[str]) -> set[str]:
    spelled = {name.replace("-", "_"): name for name in _GUESSABLE}
    return {spelled[name] for name in (name.replace("-", "_") for name in names) if name in spelled}


def sample_of(body: bytes) -> bytes:
    """Lines around the first bytes above ASCII, which are all that tells charsets apart."""
    first = _HIGH.search(body)
    start = body.rfind(b"\n", 0, first.start()) + 1 if first else 0
    if len(body) - start <= _SAMPLE_BYTES:
        return body[start:]
    end = body.rfind(b"\n", start, start + _SAMPLE_BYTES) + 1
    return body[start : end if end > start else start + _SAMPLE_BYTES]


def guess_shifted(body: bytes) -> str | None:
    """ISO-2022-JP that declares nothing: plain ASCII bytes with the escape sequences of that charset."""
    if not _SHIFTED.search(body):
        return None
    try:
        text = body.decode("iso2022_jp")
    except UnicodeDecodeError:
        return None
    return None if text.isascii() else "iso2022_jp"


def reads_well(text: str) -> bool:
    """Whether the characters above ASCII stand where words and their punctuation do."""
    return _share_of_words(text) >= 0.9


def _share_of_words(text: str) -> float:
    """Share of the characters above ASCII that are letters beside letters, or marks of prose."""
    total = good = 0
    padded = f" {text[:_SAMPLE_BYTES]} "
    for index in range(1, len(padded) - 1):
        character = padded[index]
        if character > "\x7f":
            total += 1
            good += _is_in_place(character, padded[index - 1], padded[index + 1])
    return good / total if total else 1.0


def _is_in_place(character: str, before: str, after: str) -> bool:
    if character in _PROSE_MARKS:
        return character in "\u00b7\u2018\u2019\u2013\u2014" or not (before.isalpha() and after.isalpha())
    category = unicodedata.category(character)
    if character > "\u2e80":
        return category in {"Lo", "Po", "Ps", "Pe", "Lm", "So", "Nd", "Pd"}
    if category[0] not in "LM" or character == "\u00ff":
        return False
    if character > "\u0250":
        # Words don't mix scripts, but they may be one letter long.
        return not (_is_latin(before) or _is_latin(after))
    alone = before == after == " " and character in _WORDS_OF_ONE_LETTER
    return before.isalpha() or after.isalpha() or alone


def _is_latin(character: str) -> bool:
    return character.isascii() and character.isalpha()


def looks_wrong(text: str, codec: str) -> bool:
    """Whether text that was read as Latin is letter salad, as other scripts and charsets give when misread."""
    if codec not in LATIN:
        return False
    if not reads_well(text):
        return True
    words = "".join(word for word in _WORD.findall(text[:_SAMPLE_BYTES]) if not word.isascii())
    accented = sum(1 for character in words if character > "\x7f")
    return accented >= 8 and accented > _MOST_ACCENTED * len(words)
