"""The parts of an e-mail, found in place."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser

from services.ingest.domain.normalize.model import InvalidDocument

MAX_DEPTH = 20
# The standard parser takes square time on the parameters of one header, so a header block has its limit.
_MAX_HEADER_CHARS = 65_536
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANK_LINE = re.compile(r"(?>\r\n|\n|\r)[ \t]*(?>\r\n|\n|\r)")
_DELIMITER = re.compile(r"(?:^|(?<=\r))--[^\r\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """One leaf of a message. `start` to `end` are bytes of the whole mail; `group` numbers its set of alternatives."""

    headers: Message
    start: int
    end: int
    group: int

    @property
    def media_type(self) -> str:
        """Its type, lower case."""
        return self.headers.get_content_type()

    @property
    def charset(self) -> str:
        """The declared charset, or nothing."""
        return str(self.headers.get_content_charset() or "")

    @property
    def encoding(self) -> str:
        """The transfer encoding, lower case."""
        return str(self.headers.get("content-transfer-encoding") or "").strip().lower()

    @property
    def attachment(self) -> str:
        """Name of an attachment, or nothing for a part that is shown."""
        name = str(self.headers.get_filename() or "")
        return (name or "unnamed") if name or self.headers.get_content_disposition() == "attachment" else ""


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail taken apart: its headers, the bytes that hold them, and its leaves in order."""

    headers: Message
    start: int
    header_end: int
    parts: tuple[Part, ...]


def mail_of(source: str, start: int) -> Mail:
    """Take a mail apart.

    Args:
        source: The bytes of the mail, each as one Latin-1 character.
        start: Where it starts, after a byte order mark.

    Raises:
        InvalidDocument: Parts are nested deeper than `MAX_DEPTH`.
    """
    splitter = _Splitter(source)
    envelope = re.compile(r"From [^\r\n]*(?>\r\n|\n|\r)").match(source, start)
    first = envelope.end() if envelope else start
    headers, body = splitter.head(first, len(source))
    splitter.entity(headers, body, len(source))
    return Mail(headers, first, body, tuple(splitter.parts))


class _Splitter:
    def __init__(self, source: str) -> None:
        self._source = source
        self._delimiters: dict[str, list[tuple[int, int]]] = {}
        for match in _DELIMITER.finditer(source):
            self._delimiters.setdefault(match.group()[2:].rstrip(), []).append(match.span())
        self._groups = 0
        self.parts: list[Part] = []

    def head(self, start: int, end: int) -> tuple[Message, int]:
        """Headers at a place, and where the body after them starts."""
        first = _LINE_END.match(self._source, start)
        if first:
            return HeaderParser().parsestr(""), first.end()
        blank = _BLANK_LINE.search(self._source, start, end)
        stop, body = blank.span() if blank else (end, end)
        text = self._source[start : min(stop, start + _MAX_HEADER_CHARS)]
        return HeaderParser().parsestr(_LINE_END.sub("\n", text)), body

    def entity(self, headers: Message, start: int, end: int) -> None:
        """Note the leaves of an entity; what is nested waits on a stack, so that depth costs no recursion."""
        todo = [(headers, start, end, 0, 0)]
        while todo:
            headers, start, end, group, depth = todo.pop()
            if depth > MAX_DEPTH:
                raise InvalidDocument(
                    f"parts of the mail are nested deeper than {MAX_DEPTH} levels at byte {start}; send them one by one"
                )
            boundary = str(headers.get_boundary() or "").rstrip()
            kind = headers.get_content_type()
            if kind.startswith("multipart/") and boundary:
                if kind == "multipart/alternative":
                    self._groups += 1
                    group = self._groups
                spans = reversed(list(self._spans(boundary, start, end)))
                todo += [(*self.head(*span), span[1], group, depth + 1) for span in spans]
            elif kind == "message/rfc822":
                inner, body = self.head(start, end)
                todo.append((inner, body, end, group, depth + 1))
            else:
                self.parts.append(Part(headers, min(start, end), end, group))

    def _spans(self, boundary: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Bodies between the delimiter lines of a multipart; the line end before a delimiter belongs to it."""
        places = self._delimiters.get(boundary, [])
        last = self._between(self._delimiters.get(boundary + "--", []), start, end)
        stop = last[0][0] if last else end
        opened = [(first, self._after_line_end(after)) for first, after in self._between(places, start, stop)]
        edges = [first for first, _ in opened[1:]] + [stop]
        for (_, body), edge in zip(opened, edges, strict=bool(opened)):
            yield body, max(body, self._before_line_end(edge) if edge < end else edge)

    @staticmethod
    def _between(places: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
        return places[bisect_left(places, (start, 0)) : bisect_left(places, (end, 0))]

    def _after_line_end(self, place: int) -> int:
        line_end = _LINE_END.match(self._source, place)
        return line_end.end() if line_end else place

    def _before_line_end(self, place: int) -> int:
        return place - 2 if self._source.startswith("\r\n", place - 2) else place - 1
