"""Bytes to text with exact offsets, for any codec: what can't be decoded becomes U+FFFD and is counted."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.ingest.domain.normalize.labels import EXACT, PAIRING, STATEFUL, WIDE
from services.ingest.domain.normalize.mapping import RunBuilder
from services.ingest.domain.normalize.model import REPLACEMENT, InvalidDocument, MappedText

_DAMAGE = re.compile("\x00|[\ud800-\udfff]+")
_WINDOW_BYTES = 256
# Characters that start or are part of shift sequences.
_SHIFTS = frozenset("\x1b\x0e\x0f~")
# Second halves of the pairs that those codecs join.
_PAIRS = re.compile("[\u0300\u0301\u0304\u030c\u309a\u02e5\u02e9]")
# UTF-8 of UTF-16 surrogates, as CESU-8 and broken JSON writers leave it: a pair, or a lone half.
_CESU = re.compile(rb"(\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf])|(\xed[\xa0-\xbf][\x80-\xbf])")


@dataclass(frozen=True, slots=True)
class Damage:
    """How much of one kind was replaced, and the byte of the first."""

    count: int = 0
    first_byte: int = -1

    def more(self, count: int, byte: int) -> "Damage":
        """This and `count` more at `byte`."""
        return Damage(self.count + count, byte if self.first_byte < 0 else self.first_byte)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Decoded text with its runs, and what was replaced in it: NUL characters, lone surrogates, undecodable bytes."""

    content: MappedText
    nuls: Damage
    surrogates: Damage
    undecodable: Damage


def align(body: bytes, codec: str, skip: int) -> Alignment:
    """Decode with offsets.

    Args:
        body: The original bytes.
        codec: Python codec.
        skip: Length of the byte order mark, 0 when there is none; it is left out of the text and counts as a character.

    Raises:
        InvalidDocument: A wide codec meets a code that is no character.
    """
    aligner = _Aligner(codec, skip)
    if codec in WIDE:
        aligner.wide(body)
    elif codec in EXACT:
        aligner.damaged(body[skip:].decode(codec, "surrogateescape"))
    else:
        aligner.whole_or_by_line(body)
    return aligner.result()


class _Aligner:
    """One pass over the bytes; `byte` and `char` are the place in the original."""

    def __init__(self, codec: str, skip: int) -> None:
        self._codec = codec
        self._byte = skip
        self._char = 1 if skip else 0
        self._builder = RunBuilder()
        self._nuls = self._surrogates = self._undecodable = Damage()

    def result(self) -> Alignment:
        return Alignment(self._builder.build(), self._nuls, self._surrogates, self._undecodable)

    def _add(self, text: str, *, size: int, chars: int | None = None, verbatim: bool = False) -> None:
        """Append text that stands for the next `size` bytes, which decode to `chars` characters."""
        char = self._char + (len(text) if chars is None else chars)
        span = (self._byte, self._byte + size)
        self._builder.add(text, chars=(self._char, char), span=span, verbatim=verbatim)
        self._char, self._byte = char, span[1]

    def wide(self, body: bytes) -> None:
        """UTF-16 and UTF-32: halves of pairs are single units, and a unit may be cut at the end."""
        unit = 2 if self._codec.startswith("utf-16") else 4
        end = len(body) - (len(body) - self._byte) % unit
        try:
            text = body[self._byte : end].decode(self._codec, "surrogatepass")
        except UnicodeDecodeError as error:
            raise InvalidDocument(
                f"byte {self._byte + error.start} is no {self._codec} character; send the file as UTF-8"
            ) from error
        self.damaged(text)
        if end < len(body):
            self._undecodable = self._undecodable.more(len(body) - end, end)
            self._add(REPLACEMENT, size=len(body) - end)

    def damaged(self, text: str) -> None:
        """Text of a codec whose prefixes encode exactly; surrogates in it stand for damage."""
        position = 0
        for match in _DAMAGE.finditer(text):
            self._whole(text[position : match.start()])
            self._replace(match.group())
            position = match.end()
        self._whole(text[position:])

    def _whole(self, text: str) -> None:
        if text:
            self._add(text, size=len(text.encode(self._codec)), verbatim=True)

    def _replace(self, found: str) -> None:
        if found == "\x00":
            self._nuls = self._nuls.more(1, self._byte)
            self._add(REPLACEMENT, size=len(found.encode(self._codec)))
        elif self._codec in WIDE:
            self._surrogates = self._surrogates.more(len(found), self._byte)
            for half in found:
                self._add(REPLACEMENT, size=len(half.encode(self._codec, "surrogatepass")))
        else:
            self._replace_bytes(found.encode("ascii", "surrogateescape"))

    def _replace_bytes(self, found: bytes) -> None:
        position = 0
        for match in _CESU.finditer(found) if self._codec == "utf-8" else ():
            self._undecoded(found[position : match.start()])
            size = match.end() - match.start()
            pair = match.group().decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
            if size == 3:
                self._surrogates = self._surrogates.more(1, self._byte)
            # None of these bytes can be decoded, so each is a character of the original.
            self._add(pair.decode("utf-16-le", "replace"), size=size, chars=size)
            position = match.end()
        self._undecoded(found[position:])

    def _undecoded(self, found: bytes) -> None:
        if found:
            self._undecodable = self._undecodable.more(len(found), self._byte)
            self._add(REPLACEMENT * len(found), size=len(found))

    def whole_or_by_line(self, body: bytes) -> None:
        """Any codec: at once where the text encodes back to the bytes, else line by line or character by character."""
        if self._codec in STATEFUL:
            self._by_character(_shifted_codes(body, self._codec))
            return
        text = self._decodes_exactly(body)
        if text is None:
            self._by_line(body)
        else:
            self.damaged(text)

    def _decodes_exactly(self, piece: bytes) -> str | None:
        """The text of some bytes, where it encodes back to them and so does each prefix."""
        try:
            text = piece.decode(self._codec)
        except UnicodeDecodeError:
            return None
        pairs = self._codec in PAIRING and _PAIRS.search(text)
        return text if not pairs and text.encode(self._codec, "replace") == piece else None

    def _by_line(self, body: bytes) -> None:
        # A line feed is never a part of a longer code, so lines can be decoded one by one.
        start = 0
        while start < len(body):
            end = body.find(b"\n", start) + 1 or len(body)
            for piece, decodable in _pieces(body[start:end], self._codec):
                if decodable:
                    self._piece(piece)
                else:
                    self._undecoded(piece)
            start = end

    def _piece(self, piece: bytes) -> None:
        text = self._decodes_exactly(piece)
        if text is None:
            self._by_character(_codes(piece, self._codec))
        else:
            self.damaged(text)

    def _by_character(self, codes: Iterator[tuple[str, bytes]]) -> None:
        held, size = "", 0
        for text, code in codes:
            if not self._is_exact(text, code):
                held, size = held + text, size + len(code)
                continue
            self._hold(held, size)
            held, size = "", 0
            # What stands before the character itself is a shift sequence.
            self._byte += len(code) - 1 if self._codec in STATEFUL else 0
            self.damaged(text)
        self._hold(held, size)

    def _hold(self, text: str, size: int) -> None:
        """Append characters that can't be cut apart; NUL characters of a stateful text are among them."""
        if "\x00" in text:
            self._nuls = self._nuls.more(text.count("\x00"), self._byte)
        self._add(text.replace("\x00", REPLACEMENT), size=size)

    def _is_exact(self, text: str, code: bytes) -> bool:
        if self._codec in STATEFUL:
            # The last byte of a longer code may be any character of ASCII as well.
            return len(text) == 1 and text.isascii() and code[-1:] == text.encode() and text not in _SHIFTS
        return len(text) == 1 and text.encode(self._codec, "replace") == code


def _pieces(line: bytes, codec: str) -> Iterator[tuple[bytes, bool]]:
    """A line cut into what can be decoded and single bytes that can't; windows keep the cost of an error small."""
    start = 0
    while start < len(line):
        window = line[start : start + _WINDOW_BYTES]
        try:
            window.decode(codec)
            size, decodable = len(window), True
        except UnicodeDecodeError as error:
            # A window may cut a code in two, which is whole at the start of the next one.
            size, decodable = error.start or 1, error.start > 0
        yield window[:size], decodable
        start += size


def _codes(piece: bytes, codec: str) -> Iterator[tuple[str, bytes]]:
    """Characters of a decodable piece with their bytes."""
    start = 0
    for end in range(1, len(piece) + 1):
        try:
            text = piece[start:end].decode(codec)
        except UnicodeDecodeError:
            continue
        yield text, piece[start:end]
        start = end


def _shifted_codes(body: bytes, codec: str) -> Iterator[tuple[str, bytes]]:
    """Characters of a stateful text, each with the bytes that it came from, shift sequences before it included."""
    decoder = codecs.getincrementaldecoder(codec)()
    start = 0
    for index in range(len(body)):
        text = decoder.decode(body[index : index + 1], index + 1 == len(body))
        if text:
            yield text, body[start : index + 1]
            start = index + 1
