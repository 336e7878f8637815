"""Transfer encodings of e-mail: the decoded bytes, and where each stretch of them comes from."""

import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_QUOTED = re.compile(rb"((?:=[0-9A-Fa-f]{2})++)|=[ \t]*+(?>\r\n|\n|\r|\Z)|[ \t]++(\r\n|\n|\r|\Z)?")
_BASE64_PIECE = re.compile(rb"[A-Za-z0-9+/=]{1,76}")


@dataclass(frozen=True, slots=True)
class Segment:
    """Decoded bytes `start` to `end` and the original bytes that they come from; `exact` when those are the same."""

    start: int
    end: int
    source_start: int
    source_end: int
    exact: bool


class Transfer:
    """Decoded bytes with the way back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._segments: list[Segment] = []
        self._starts: list[int] = []
        self._length = 0

    @property
    def data(self) -> bytes:
        """The decoded bytes."""
        return b"".join(self._parts)

    def add(self, data: bytes, source_start: int, source_end: int, *, exact: bool) -> None:
        """Append decoded bytes."""
        if data:
            start, self._length = self._length, self._length + len(data)
            self._parts.append(data)
            self._starts.append(start)
            self._segments.append(Segment(start, self._length, source_start, source_end, exact))

    def segment(self, byte: int) -> Segment:
        """The segment of a decoded byte."""
        return self._segments[bisect_right(self._starts, byte) - 1]

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Original bytes that hold the decoded bytes `start` to `end`, at least one of them."""
        first, last = self.segment(start), self.segment(end - 1)
        return (
            first.source_start + start - first.start if first.exact else first.source_start,
            last.source_start + end - last.start if last.exact else last.source_end,
        )


def decode_transfer(body: bytes, start: int, end: int, encoding: str) -> Transfer:
    """Undo the transfer encoding of a part.

    Args:
        body: The whole mail.
        start: First byte of the part.
        end: Byte after its last.
        encoding: "base64", "quoted-printable", or any other name for bytes as they are.

    Raises:
        ValueError: The part is no base64.
    """
    transfer = Transfer()
    if encoding == "base64":
        _base64(body, start, end, transfer)
    elif encoding == "quoted-printable":
        _quoted_printable(body, start, end, transfer)
    else:
        transfer.add(body[start:end], start, end, exact=True)
    return transfer


def _quoted_printable(body: bytes, start: int, end: int, transfer: Transfer) -> None:
    position = start
    for match in _QUOTED.finditer(body, start, end):
        if match[1]:
            transfer.add(body[position : match.start()], position, match.start(), exact=True)
            transfer.add(bytes.fromhex(match[1].replace(b"=", b"").decode("ascii")), *match.span(), exact=False)
            position = match.end()
        elif match[2] is not None or match.group().startswith(b"="):
            # Spaces at a line's end were added on the way; an "=" there joins it to the next.
            transfer.add(body[position : match.start()], position, match.start(), exact=True)
            position = match.end() if match[2] is None else match.start(2)
    transfer.add(body[position:end], position, end, exact=True)


def _base64(body: bytes, start: int, end: int, transfer: Transfer) -> None:
    held, held_start = b"", start
    for piece in _pieces(body, start, end):
        code = held + piece.group()
        first = held_start if held else piece.start()
        whole = len(code) - len(code) % 4
        transfer.add(binascii.a2b_base64(code[:whole]), first, piece.end(), exact=False)
        held, held_start = code[whole:], piece.end() - (len(code) - whole)
    if held.strip(b"="):
        raise ValueError(f"{len(held)} base64 characters are left over at byte {held_start}")


def _pieces(body: bytes, start: int, end: int) -> Iterator[re.Match[bytes]]:
    """Stretches of base64 up to the padding."""
    for piece in _BASE64_PIECE.finditer(body, start, end):
        yield piece
        if piece.group().endswith(b"="):
            return
