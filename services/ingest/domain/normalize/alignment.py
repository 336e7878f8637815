"""Bytes to text with exact offsets, for any codec: what can't be decoded becomes U+FFFD and is counted."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.ingest.domain.normalize.labels import EXACT, PAIRING, STATEFUL, WIDE
from services.ingest.domain.normalize.mapping import RunBuilder
from services.ingest.domain.normalize.model import REPLACEMENT, InvalidDocument, MappedText

_DAMAGE = re.compile("\x00|[\ud800-\udfff]+")
_ESCAPES = re.compile("[\udc80-\udcff]")
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
            # `decode(..., "replace")` sees one error for each of these bytes.
            self._add(pair.decode("utf-16-le", "replace"), size=size, chars=size)
            position = match.end()
        self._undecoded(found[position:])

    def _undecoded(self, found: bytes) -> None:
        if found:
            self._undecodable = self._undecodable.more(len(found), self._byte)
            text = REPLACEMENT * len(found.decode(self._codec, "replace"))
            self._add(text, size=len(found))

    def whole_or_by_line(self, body: bytes) -> None:
        """Any codec: at once where the text encodes back to the bytes."""
        text = self._decodes_exactly(body)
        if text is None:
            self.by_line(body)
        else:
            self.damaged(text)

    def _decodes_exactly(self, piece: bytes) -> str | None:
        """The text of some bytes, where it encodes back to them and so does each prefix."""
        if self._codec in STATEFUL:
            return None
        text = piece.decode(self._codec, "surrogateescape")
        pairs = self._codec in PAIRING and _PAIRS.search(text)
        return text if not pairs and text.encode(self._codec, "replace") == piece else None

    def by_line(self, body: bytes) -> None:
        """Any codec, line by line: a line that encodes back is taken whole, another one character by character."""
        decoder = codecs.getincrementaldecoder(self._codec)("surrogateescape")
        start = 0
        while start < len(body):
            end = body.find(b"\n", start) + 1 or len(body)
            line = body[start:end]
            text = self._decodes_exactly(line)
            if text is None:
                self._by_character(line, decoder, last=end == len(body))
            else:
                self.damaged(text)
            # Shift sequences at the end of a line belong to no character.
            self._byte = start = end

    def _by_character(self, line: bytes, decoder: codecs.IncrementalDecoder, *, last: bool) -> None:
        held, size = "", 0
        for text, code in _steps(line, decoder, last=last):
            if not _DAMAGE.search(text) and not self._is_exact(text, code):
                held, size = held + text, size + len(code)
                continue
            self._add(held, size=size)
            held, size = "", 0
            # What stands before the character itself is a shift sequence.
            self._byte += len(code) - len(text) if self._codec in STATEFUL else 0
            for character in text:
                self._exact_or_damaged(character)
        self._add(held, size=size)

    def _exact_or_damaged(self, character: str) -> None:
        if _ESCAPES.match(character):
            self._undecoded(character.encode("ascii", "surrogateescape"))
        else:
            self.damaged(character)

    def _is_exact(self, text: str, code: bytes) -> bool:
        if self._codec in STATEFUL:
            return text.isascii() and text != "~" and code[-1:] == text.encode("ascii")
        return len(text) == 1 and text.encode(self._codec, "replace") == code


def _steps(line: bytes, decoder: codecs.IncrementalDecoder, *, last: bool) -> Iterator[tuple[str, bytes]]:
    """Characters of a line, each with the bytes that it came from, shift sequences before it included."""
    start = 0
    for index in range(len(line)):
        text = decoder.decode(line[index : index + 1], last and index + 1 == len(line))
        if text:
            yield text, line[start : index + 1]
            start = index + 1
