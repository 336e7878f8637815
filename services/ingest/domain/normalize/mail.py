"""E-mail: headers and readable parts as one text, each piece mapped to the original bytes."""

import re
from collections.abc import Iterable, Iterator
from email.errors import MessageError
from email.header import decode_header

from services.ingest.domain.normalize.decoding import Declared, Decoded, decode
from services.ingest.domain.normalize.html_charset import declared_in_html
from services.ingest.domain.normalize.html_text import read_html
from services.ingest.domain.normalize.labels import PAIRING, STATEFUL, WIDE, codecs_of
from services.ingest.domain.normalize.links import Links, plain_links
from services.ingest.domain.normalize.mapping import RunBuilder
from services.ingest.domain.normalize.metadata import Collector, clean
from services.ingest.domain.normalize.mime import Mail, Part, mail_of
from services.ingest.domain.normalize.model import Block, BlockKind, InvalidDocument, MappedText, Reading, Run
from services.ingest.domain.normalize.transfer import Transfer, decode_transfer

_SHOWN = frozenset({"from", "to", "cc", "date", "subject"})
_METADATA = (*sorted(_SHOWN), "message-id", "in-reply-to", "references", "reply-to", "sender", "keywords", "list-id",
             "organization", "supersedes", "superseded-by", "obsoletes", "obsoleted-by", "replaces", "replaced-by",
             "updates", "requires", "implements", "see-also", "effective", "effective-date", "effective-from",
             "valid-from", "in-force-since", "version", "family", "review-date", "expires", "withdrawn-on")  # fmt: skip
_NAMES = {"message-id": "Message-ID", "list-id": "List-ID"}
_HEADER = re.compile(
    r"(?:^|(?<=\r))([A-Za-z][A-Za-z0-9-]*)[ \t]*:[ \t]*((?:[^\r\n]|(?>\r\n|\n|\r)(?=[ \t]))*+)", re.MULTILINE
)
_FOLD = re.compile(r"(?>\r\n|\n|\r)[ \t]*")
_ASCII = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]+")
_READABLE = frozenset({"text/plain", "text/html", "text/markdown", "text/x-markdown", "text/x-rst", "text/enriched"})
_CONTEXT_CHARS = 1_000
# Each is tried on the whole mail.
_MOST_CHARSETS = 4
_NAMED_ATTACHMENTS = 10


def looks_like_mail(text: str) -> bool:
    """Whether a text starts with the headers of an e-mail."""
    names = {
        match[1].lower()
        for match in _HEADER.finditer(text[:16_384].split("\n\n", maxsplit=1)[0].split("\r\n\r\n", maxsplit=1)[0])
    }
    first = _HEADER.match(text)
    others = {"to", "date", "subject", "message-id", "received", "delivered-to", "mime-version"}
    return first is not None and "from" in names and len(names & others) >= 2


def read_mail(body: bytes) -> tuple[Reading, str]:
    """Read one e-mail.

    Args:
        body: The original bytes.

    Returns:
        Its text, the shown headers first, as one record; and the codec that the runs are verbatim in. Attachments are
        named in a notice, and of alternatives the plain text is taken.

    Raises:
        InvalidDocument: It has no headers, is nested too deeply, or no part of it can be read.
    """
    reader = _MailReader(body)
    return reader.read(), reader.charset


class _Characters:
    """Characters before a byte of the original; asked for in nearly ascending order."""

    def __init__(self, body: bytes, charset: str) -> None:
        self._body = body
        self._charset = charset
        self._byte = self._character = 0

    def at(self, byte: int) -> int:
        """The number of characters that the bytes before `byte` decode to."""
        low, high = sorted((self._byte, byte))
        count = len(self._body[low:high].decode(self._charset, "replace"))
        self._character += count if byte >= self._byte else -count
        self._byte = byte
        return self._character


class _MailReader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        start = 3 if body.startswith(b"\xef\xbb\xbf") else 0
        self._mail: Mail = mail_of(body.decode("iso8859-1"), start)
        self.charset = _charset_of(body, self._mail.parts)
        self._characters = _Characters(body, self.charset)
        self._builder = RunBuilder()
        self._notices: list[str] = []
        self._left_out: list[str] = []
        self._links = Links()

    def read(self) -> Reading:
        metadata = self._metadata()
        values = dict(metadata)
        if not _SHOWN & {name.lower() for name in values}:
            raise InvalidDocument(
                "no e-mail headers (From, To, Date, Subject) at the start; send the file as text/plain"
            )
        self._headers()
        wanted = list(self._wanted())
        read = [self._part(part) for part in wanted]
        if wanted and not any(read):
            raise InvalidDocument(f"no part of the mail can be read: {self._notices[-1]}")
        self._notices += self._attachments()
        content = self._builder.build()
        end = len(content.text.rstrip())
        summary = " \u00b7 ".join(values[name] for name in ("Subject", "From", "Date") if name in values)
        context = summary[:_CONTEXT_CHARS] if end > _CONTEXT_CHARS else ""
        blocks = (Block(BlockKind.RECORD, 0, end, (), context),) if end else ()
        title = values.get("Subject", "")
        return Reading(content, blocks, (), metadata, title, "informal", tuple(self._notices), self._links.all())

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        collector = Collector()
        for name in _METADATA:
            for value in self._mail.headers.get_all(name, []):
                collector.add(_NAMES.get(name, name.title()), self._value(str(value)))
        return collector.pairs()

    def _value(self, raw: str) -> str:
        """A header's value with encoded words and folded lines undone."""
        text = _FOLD.sub(" ", raw).encode("iso8859-1", "replace").decode(self.charset, "replace")
        if "=?" not in text:
            return clean(text)
        try:
            return clean("".join(_word(*pair) for pair in decode_header(text)))
        except (MessageError, ValueError):
            return clean(text)

    def _headers(self) -> None:
        """The shown header lines, as they stand where nothing in them is encoded or folded."""
        source = self._body[self._mail.start : self._mail.header_end].decode("iso8859-1")
        for match in _HEADER.finditer(source):
            if match[1].lower() not in _SHOWN:
                continue
            start, end = (
                self._mail.start + match.start(),
                self._mail.start + match.start() + len(match.group().rstrip()),
            )
            line = self._body[start:end].decode(self.charset, "replace")
            plain = line.isprintable() and "=?" not in line and "\ufffd" not in line
            text = line if plain else f"{match[1]}: {self._value(match[2])}".rstrip()
            self._add(text, start, end, verbatim=plain)
            self._add("\n", end, end, verbatim=False)

    def _wanted(self) -> Iterator[Part]:
        """Parts to read: of each set of alternatives the plain text if it has any, else the HTML."""
        plain = {
            part.group for part in self._mail.parts
            if part.media_type == "text/plain" and not part.attachment and self._body[part.start : part.end].strip()
        }  # fmt: skip
        for part in self._mail.parts:
            kind = part.media_type
            if part.attachment or kind not in _READABLE:
                if part.attachment or not kind.startswith("multipart/"):
                    name = clean(self._value(part.attachment or "unnamed"))[:100]
                    self._left_out.append(f"{name!r} ({kind[:60]})")
            elif not (part.group and part.group in plain and kind == "text/html"):
                yield part

    def _attachments(self) -> Iterator[str]:
        count = len(self._left_out)
        if count:
            noun = "attachment wasn't" if count == 1 else "attachments weren't"
            named = ", ".join(self._left_out[:_NAMED_ATTACHMENTS]) + (", ..." if count > _NAMED_ATTACHMENTS else "")
            yield f"{count} {noun} read: {named}; send them as documents of their own"

    def _part(self, part: Part) -> bool:
        try:
            transfer = decode_transfer(self._body, part.start, part.end, part.encoding)
            data = transfer.data
            inner = (Declared("meta tag", declared_in_html(data)),) if part.media_type == "text/html" else ()
            decoded = decode(data, (Declared("part", part.charset), *inner))
            content = self._mapped(decoded, transfer, data)
            links: Iterable[str] = plain_links(content.text)
            if part.media_type == "text/html":
                page = read_html(content, self.charset)
                content, links = page.content, page.links
            for link in links:
                self._links.add(link)
        except ValueError as error:
            self._notices.append(f"the {part.media_type} part at byte {part.start} wasn't read: {error}")
            return False
        self._notices += [f"the part at byte {part.start}: {notice}" for notice in decoded.notices]
        self._append(content, part)
        return True

    def _append(self, content: MappedText, part: Part) -> None:
        self._add("\n", part.start, part.start, verbatim=False)
        for run in content.runs:
            text = content.text[run.text_start : run.text_end]
            chars, span = (run.char_start, run.char_end), (run.byte_start, run.byte_end)
            self._builder.add(text, chars=chars, span=span, verbatim=run.verbatim)

    def _mapped(self, decoded: Decoded, transfer: Transfer, data: bytes) -> MappedText:
        """The text of a part with runs into the mail."""
        builder = RunBuilder()
        for run in decoded.content.runs:
            text = decoded.content.text[run.text_start : run.text_end]
            pieces = (
                _pieces(text, run, transfer, data, decoded.charset)
                if run.verbatim
                else [(text, run.byte_start, run.byte_end)]
            )
            for piece, start, end in pieces:
                exact = run.verbatim and transfer.segment(start).exact and transfer.segment(end - 1).exact
                self._add_piece(piece, transfer.source(start, end), builder, exact=exact, codec=decoded.charset)
        return builder.build()

    def _add_piece(self, text: str, span: tuple[int, int], builder: RunBuilder, *, exact: bool, codec: str) -> None:
        """A piece of a part; where its charset isn't the mail's, only its ASCII is verbatim."""
        if not exact or codec == self.charset:
            self._add(text, *span, verbatim=exact, builder=builder)
            return
        start = span[0]
        for match in _ASCII.finditer(text):
            end = start + len(match.group().encode(codec))
            self._add(
                match.group(), start, end, verbatim=match.group().isascii() and codec not in WIDE, builder=builder
            )
            start = end

    def _add(self, text: str, start: int, end: int, *, verbatim: bool, builder: RunBuilder | None = None) -> None:
        chars = (self._characters.at(start), self._characters.at(end))
        (builder or self._builder).add(text, chars=chars, span=(start, end), verbatim=verbatim)


def _pieces(text: str, run: Run, transfer: Transfer, data: bytes, codec: str) -> Iterator[tuple[str, int, int]]:
    """A verbatim run cut where the transfer encoding cuts it: text, and its decoded bytes."""
    position, byte = 0, run.byte_start
    while position < len(text):
        segment = transfer.segment(byte)
        stop = min(segment.end, run.byte_end)
        # A character that goes on in the next segment is left for a piece of its own.
        piece = data[byte:stop].decode(codec, "ignore") or text[position]
        end = byte + len(piece.encode(codec))
        yield piece, byte, end
        position, byte = position + len(piece), end


def _word(value: bytes | str, charset: str | None) -> str:
    if isinstance(value, str):
        return value
    for codec in codecs_of(charset or "utf-8", value):
        try:
            return value.decode(codec)
        except UnicodeDecodeError:
            continue
    return value.decode("utf-8", "replace")


def _charset_of(body: bytes, parts: tuple[Part, ...]) -> str:
    """One codec under which the mail as a whole can be cut: UTF-8, that of a part, or Latin-1, which takes any bytes."""
    labels = list(dict.fromkeys(part.charset for part in parts))[:_MOST_CHARSETS]
    for codec in ("utf-8", *(codec for label in labels for codec in codecs_of(label, body))):
        if codec in STATEFUL or codec in PAIRING or codec in WIDE:
            continue
        try:
            if body.decode(codec).encode(codec) == body and "a".encode(codec) == b"a":
                return codec
        except UnicodeError:
            continue
    return "iso8859-1"
