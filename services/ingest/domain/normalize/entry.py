"""Bytes of any supported format into text with structure and places."""

from collections.abc import Callable, Mapping
from email.message import Message
from types import MappingProxyType

from services.ingest.domain.normalize.conversation import is_chat_json, is_chat_text, read_chat_text
from services.ingest.domain.normalize.decoding import Declared, Decoded, decode
from services.ingest.domain.normalize.delimited import read_delimited
from services.ingest.domain.normalize.formats import Format, format_of, format_of_text
from services.ingest.domain.normalize.html_charset import declared_in_html
from services.ingest.domain.normalize.html_text import read_html
from services.ingest.domain.normalize.json_records import read_json, read_json_lines
from services.ingest.domain.normalize.mail import read_mail
from services.ingest.domain.normalize.markdown import read_markdown
from services.ingest.domain.normalize.metadata import clean, value_of
from services.ingest.domain.normalize.minutes import with_minutes
from services.ingest.domain.normalize.model import InvalidDocument, Normalized, Reading
from services.ingest.domain.normalize.origin import stem
from services.ingest.domain.normalize.plain import read_plain
from services.ingest.domain.normalize.restructured import read_restructured
from services.ingest.domain.normalize.yaml_records import read_yaml

# A message is one record up to this size, since its parts say little by themselves.
_MESSAGE_CHARS = 50_000
_TITLE_CHARS = 500
_MOST_NOTICES = 50
# White space and byte order marks of any charset.
_BLANK_BYTES = b" \t\r\n\x0b\x0c\x00\xef\xbb\xbf\xff\xfe"


def normalize(body: bytes, *, source_id: str, media_type: str, charset: str) -> Normalized:
    """Make text with structure and exact places out of a document.

    Args:
        body: The original bytes.
        source_id: Its name, a path with "/" as separator; tells the format where the media type doesn't.
        media_type: As the sender states it, parameters included, or empty.
        charset: As the sender states it, or empty. Evidence in the bytes wins over it, with a notice.

    Returns:
        The document. Empty and blank ones have no blocks.

    Raises:
        InvalidDocument: The format isn't supported, or the bytes aren't valid in it. The message says where and what to
            do.
    """
    stated, parameter = _content_type(media_type)
    kind = format_of(body, source_id=source_id, media_type=stated)
    if kind is Format.MAIL and not _is_blank(body):
        return _normalized(kind, *read_mail(body), source_id)
    inner = (Declared("meta tag", declared_in_html(body)),) if kind is Format.HTML else ()
    decoded = decode(body, (*inner, Declared("request", charset or parameter)))
    if not decoded.content.text.strip():
        blank = Reading(decoded.content, (), notices=decoded.notices)
        return _normalized(kind or Format.PLAIN, blank, decoded.charset, source_id)
    if kind is None:
        kind, reading = _sniffed(decoded, source_id)
        if kind is Format.MAIL:
            return _normalized(kind, *read_mail(body), source_id)
    else:
        reading = _READERS[kind](decoded)
    return _normalized(kind, reading, decoded.charset, source_id, decoded.notices)


def _is_blank(body: bytes) -> bool:
    """Whether bytes hold nothing but white space in some charset."""
    return not body.strip(_BLANK_BYTES) and not decode(body, ()).content.text.strip()


def _content_type(value: str) -> tuple[str, str]:
    """Media type in lower case, and its charset parameter."""
    message = Message()
    message["content-type"] = " ".join(clean(value).split())[:500]
    stated = value.partition(";")[0].strip().lower()
    return stated, str(message.get_param("charset", "") if ";" in value else "")


def _sniffed(decoded: Decoded, source_id: str) -> tuple[Format, Reading]:
    """Read a document whose format only its text tells; what looks like JSON and isn't is plain text."""
    kind = format_of_text(decoded.content.text, source_id=source_id)
    if kind is Format.MAIL:
        return kind, Reading(decoded.content, ())
    for attempt in (Format.JSON, Format.JSON_LINES) if kind is Format.JSON else (kind,):
        try:
            return attempt, _READERS[attempt](decoded)
        except InvalidDocument:
            if kind is not Format.JSON:
                raise
    return Format.PLAIN, _read_plain(decoded)


def _read_plain(decoded: Decoded) -> Reading:
    content = decoded.content
    return read_chat_text(content) if is_chat_text(content.text) else with_minutes(read_plain(content))


def _read_json(decoded: Decoded) -> Reading:
    reading, samples = read_json(decoded.content, decoded.charset)
    if not is_chat_json(samples):
        return reading
    messages, _ = read_json(decoded.content, decoded.charset, limit=_MESSAGE_CHARS)
    return Reading(
        messages.content, messages.blocks, metadata=messages.metadata, form="informal", notices=messages.notices
    )


_READERS: Mapping[Format, Callable[[Decoded], Reading]] = MappingProxyType(
    {
        Format.MARKDOWN: lambda decoded: with_minutes(read_markdown(decoded.content)),
        Format.HTML: lambda decoded: read_html(decoded.content, decoded.charset),
        Format.RESTRUCTURED: lambda decoded: read_restructured(decoded.content),
        Format.PLAIN: _read_plain,
        Format.JSON: _read_json,
        Format.JSON_LINES: lambda decoded: read_json_lines(decoded.content, decoded.charset),
        Format.YAML: lambda decoded: read_yaml(decoded.content),
        Format.CSV: lambda decoded: read_delimited(decoded.content),
        Format.TSV: lambda decoded: read_delimited(decoded.content, delimiter="\t"),
    }
)


def _normalized(
    kind: Format, reading: Reading, charset: str, source_id: str, notices: tuple[str, ...] = ()
) -> Normalized:
    names = ("title", "name") if reading.form == "structured" else ("title",)
    named = value_of(reading.metadata, *names) or next(iter(reading.headings), "") or reading.title
    title = " ".join(clean(named or stem(source_id) or source_id).split())[:_TITLE_CHARS]
    return Normalized(
        media_type=kind.value,
        charset=charset,
        form=reading.form,
        title=title,
        text=reading.content.text,
        runs=reading.content.runs,
        blocks=reading.blocks,
        headings=reading.headings,
        metadata=reading.metadata,
        notices=_bounded(notices + reading.notices),
        links=reading.links,
    )


def _bounded(notices: tuple[str, ...]) -> tuple[str, ...]:
    more = len(notices) - _MOST_NOTICES
    return notices if more <= 0 else (*notices[:_MOST_NOTICES], f"{more} more notices were left out")
