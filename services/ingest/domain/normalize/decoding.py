"""Which charset a document is in: evidence before declarations, and never damaged text without a notice."""

import re
from dataclasses import dataclass

from services.ingest.domain.normalize.alignment import Alignment, Damage, align
from services.ingest.domain.normalize.guessing import (
    guess_charset,
    guess_shifted,
    guess_wide,
    looks_wrong,
    reads_well,
    sample_of,
)
from services.ingest.domain.normalize.labels import LATIN, MULTIBYTE, STATEFUL, WIDE, codecs_of
from services.ingest.domain.normalize.model import InvalidDocument, MappedText

_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_ESCAPES = re.compile("[\udc80-\udcff]+")
_CESU = re.compile("\udced[\udca0-\udcbf][\udc80-\udcbf]")
# Above these shares the text would be more hole than text.
_MOST_UNDECODABLE = 0.05
_MOST_CONTROLS = 0.1
_CONTROLS = [chr(code) for code in range(0x20) if code not in (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B)]


@dataclass(frozen=True, slots=True)
class Declared:
    """A charset as the document or its sender states it."""

    where: str
    label: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text of a document, the codec that gave it, and what a reader should know about it."""

    content: MappedText
    charset: str
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    codec: str
    skip: int = 0
    notices: tuple[str, ...] = ()


def decode(body: bytes, declared: tuple[Declared, ...]) -> Decoded:
    """Decode a document.

    Args:
        body: The original bytes.
        declared: What its charset is said to be, the most trustworthy statement first; labels may be wrong or unknown.

    Returns:
        The text without byte order mark; NUL characters, lone surrogates and undecodable bytes are U+FFFD, with a notice.

    Raises:
        InvalidDocument: It is no text, or more than a few percent of it can't be decoded.
    """
    choice = _choose(body, declared)
    alignment = align(body, choice.codec, choice.skip)
    _check(alignment, choice.codec)
    return Decoded(alignment.content, choice.codec, choice.notices + _damage_notices(alignment, choice.codec))


def _choose(body: bytes, declared: tuple[Declared, ...]) -> _Choice:
    known = tuple((item, codecs) for item in declared if item.label and (codecs := codecs_of(item.label, body)))
    unknown = tuple(
        f"the {item.where} names the charset {item.label[:40]!r}, which is unknown; it was ignored"
        for item in declared
        if item.label and not codecs_of(item.label, body)
    )
    mark = next(((len(mark), codec) for mark, codec in _MARKS if body.startswith(mark)), None)
    if mark:
        return _Choice(mark[1], mark[0], unknown + _disagreement(known, mark[1], "byte order mark"))
    codec, reason = _codec_of(body, known)
    return _Choice(codec, 0, unknown + _disagreement(known, codec, reason))


def _disagreement(known: tuple[tuple[Declared, tuple[str, ...]], ...], codec: str, reason: str) -> tuple[str, ...]:
    """A notice for each declaration that wasn't followed, or for a guess that nothing declared."""
    wrong = [item for item, codecs in known if codec not in codecs]
    if wrong:
        return tuple(
            f"the {item.where} declares the charset {item.label.strip()[:40]!r}, but the text was read as {codec} "
            f"(evidence: {reason})"
            for item in wrong
        )
    if not known and reason == _GUESSED:
        return (f"no charset was declared; {codec} was guessed from the bytes, so declare it if the text reads wrong",)
    return ()


_GUESSED = "the bytes read as words"


def _codec_of(body: bytes, known: tuple[tuple[Declared, tuple[str, ...]], ...]) -> tuple[str, str]:
    """Codec of a body without byte order mark, and the evidence for it."""
    candidates = [(item, codec) for item, codecs in known for codec in codecs]
    wide = guess_wide(body, asked=tuple(codec for _, codec in candidates if codec in WIDE))
    if wide:
        return wide, "zero bytes beside the letters"
    escaped = body.decode("utf-8", "surrogateescape")
    if not _ESCAPES.search(escaped):
        return _codec_of_valid_utf8(body, escaped, candidates)
    good, broken = _utf8_evidence(escaped)
    for item, codec in candidates:
        overruled = codec not in MULTIBYTE and good > 1 and good > 2 * broken
        if (
            codec != "utf-8"
            and codec not in WIDE
            and not overruled
            and _decodes(body, codec)
            and not _suspicious(body, codec)
        ):
            return codec, item.where
    said_utf8 = any(codec == "utf-8" for _, codec in candidates)
    if good > 2 * broken or (said_utf8 and broken < 4):
        return "utf-8", "most of the bytes are valid UTF-8"
    return _codec_of_broken_utf8(body, candidates)


def _utf8_evidence(escaped: str) -> tuple[int, int]:
    """Characters above ASCII that are valid UTF-8 (surrogates included), and bytes that aren't."""
    halves = len(_CESU.findall(escaped))
    wrong = sum(len(match) for match in _ESCAPES.findall(escaped))
    above = len(escaped) - len(escaped.encode("ascii", "ignore"))
    return above - wrong + halves, wrong - 3 * halves


def _codec_of_valid_utf8(body: bytes, text: str, candidates: list[tuple[Declared, str]]) -> tuple[str, str]:
    narrow = [(item, codec) for item, codec in candidates if codec not in WIDE]
    if text.isascii():
        shifted = guess_shifted(body)
        if shifted:
            return next(
                ((codec, item.where) for item, codec in narrow if codec in STATEFUL and _decodes(body, codec)),
                (shifted, "its shift sequences"),
            )
        for item, codec in narrow:
            # Plain ASCII reads alike in nearly every charset; shift sequences are the exception.
            if _decodes(body, codec) and (codec in STATEFUL or body.decode(codec) == text):
                return codec, item.where
        return "utf-8", "plain ASCII"
    others = len(text) - len(text.encode("ascii", "ignore"))
    for item, codec in narrow:
        # A few bytes of a legacy double-byte text may happen to be valid UTF-8; many don't.
        if codec == "utf-8" or (codec in MULTIBYTE and others < 4 and _decodes(body, codec)):
            return codec, item.where
    return "utf-8", "the bytes are valid UTF-8"


def _codec_of_broken_utf8(body: bytes, candidates: list[tuple[Declared, str]]) -> tuple[str, str]:
    guess = guess_charset(body)
    for item, codec in candidates:
        # Latin charsets decode nearly anything, so a guess counts more than they do.
        contested = codec in LATIN and guess not in {None, codec}
        if codec not in WIDE | STATEFUL | {"utf-8"} and not contested and _nearly_decodes(body, codec):
            return codec, item.where
    return (guess, _GUESSED) if guess else ("utf-8", "the bytes fit no other charset")


def _nearly_decodes(body: bytes, codec: str) -> bool:
    """Whether a declared charset fits, a few damaged bytes apart."""
    text = body.decode(codec, "ignore")
    kept = len(text.encode(codec, "ignore"))
    return len(body) - kept <= _MOST_UNDECODABLE * len(text) and reads_well(text) and not looks_wrong(text, codec)


def _decodes(body: bytes, codec: str) -> bool:
    try:
        body.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _suspicious(body: bytes, codec: str) -> bool:
    """A Latin label over text in another script: it decodes, but to letter salad."""
    text = sample_of(body).decode(codec, "ignore")
    return looks_wrong(text, codec) and guess_charset(body) not in (None, codec)


def _check(alignment: Alignment, codec: str) -> None:
    text = alignment.content.text
    broken = alignment.undecodable
    if broken.count > 2 and broken.count > _MOST_UNDECODABLE * len(text):
        raise InvalidDocument(
            f"{broken.count} bytes can't be decoded as {codec}, the first at byte {broken.first_byte}; "
            "declare the right charset, or send the file as UTF-8"
        )
    controls = sum(text.count(control) for control in _CONTROLS) + alignment.nuls.count
    if controls > 8 and controls > _MOST_CONTROLS * len(text):
        raise InvalidDocument(
            f"{controls} of {len(text)} characters are control characters, so this is binary data, not text; "
            "send a text format"
        )


def _damage_notices(alignment: Alignment, codec: str) -> tuple[str, ...]:
    kinds = (
        (alignment.nuls, "NUL character", ""),
        (alignment.surrogates, "lone surrogate", ""),
        (alignment.undecodable, "byte", f" that can't be decoded as {codec}"),
    )
    return tuple(replaced_notice(damage, noun, clause) for damage, noun, clause in kinds if damage.count)


def replaced_notice(damage: Damage, noun: str, clause: str = "") -> str:
    """Say in words what was replaced and where the first was."""
    if damage.count == 1:
        return f"1 {noun}{clause} replaced by U+FFFD at byte {damage.first_byte}"
    return f"{damage.count} {noun}s{clause} replaced by U+FFFD, the first at byte {damage.first_byte}"
