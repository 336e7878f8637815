"""Which format a document is in: by its media type, else its name, else its content."""

import re
from enum import Enum

from services.ingest.domain.normalize.conversation import is_chat_text
from services.ingest.domain.normalize.mail import looks_like_mail
from services.ingest.domain.normalize.model import InvalidDocument
from services.ingest.domain.normalize.origin import extension


class Format(Enum):
    """Formats that can be read; the value is the media type recorded for them."""

    MARKDOWN = "text/markdown"
    HTML = "text/html"
    RESTRUCTURED = "text/x-rst"
    PLAIN = "text/plain"
    JSON = "application/json"
    JSON_LINES = "application/x-ndjson"
    YAML = "application/yaml"
    CSV = "text/csv"
    TSV = "text/tab-separated-values"
    MAIL = "message/rfc822"


SUPPORTED = (
    "Markdown, HTML, reStructuredText, plain text, JSON, JSON lines, YAML, CSV, TSV, e-mail (RFC 822), "
    "chat exports (JSON list or '[time] name: text' lines) and meeting notes (Markdown or text)"
)

_MEDIA_TYPES = {
    **{item.value: item for item in Format},
    "text/x-markdown": Format.MARKDOWN, "text/vnd.daringfireball.markdown": Format.MARKDOWN,
    "application/xhtml+xml": Format.HTML,
    "text/restructuredtext": Format.RESTRUCTURED, "text/prs.fallenstein.rst": Format.RESTRUCTURED,
    "text/json": Format.JSON, "application/x-json": Format.JSON,
    "application/jsonl": Format.JSON_LINES, "application/x-jsonlines": Format.JSON_LINES,
    "application/jsonlines": Format.JSON_LINES, "application/ndjson": Format.JSON_LINES, "text/jsonl": Format.JSON_LINES,
    "application/x-yaml": Format.YAML, "text/yaml": Format.YAML, "text/x-yaml": Format.YAML, "text/vnd.yaml": Format.YAML,
    "application/csv": Format.CSV, "text/x-csv": Format.CSV, "application/vnd.ms-excel.csv": Format.CSV,
    "text/tsv": Format.TSV,
    "message/global": Format.MAIL, "application/eml": Format.MAIL, "application/x-eml": Format.MAIL,
}  # fmt: skip
_EXTENSIONS = {
    "md": Format.MARKDOWN, "markdown": Format.MARKDOWN, "mdown": Format.MARKDOWN, "mkd": Format.MARKDOWN, "mdx": Format.MARKDOWN,
    "html": Format.HTML, "htm": Format.HTML, "xhtml": Format.HTML,
    "rst": Format.RESTRUCTURED, "rest": Format.RESTRUCTURED,
    "txt": Format.PLAIN, "text": Format.PLAIN, "log": Format.PLAIN,
    "json": Format.JSON, "jsonl": Format.JSON_LINES, "ndjson": Format.JSON_LINES,
    "yaml": Format.YAML, "yml": Format.YAML,
    "csv": Format.CSV, "tsv": Format.TSV, "tab": Format.TSV,
    "eml": Format.MAIL,
}  # fmt: skip
# Say nothing about the content, so name and content decide.
_UNSPECIFIC = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown"}
)
# Text types that would read as clutter.
_REFUSED_TEXT = frozenset({"text/xml", "text/rtf", "text/calendar", "text/vcard", "text/xsl"})
_REFUSED_EXTENSIONS = frozenset(
    {
        "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", "rtf", "epub", "pages", "numbers", "key",
        "zip", "gz", "bz2", "xz", "7z", "rar", "tar", "tgz", "zst", "jar", "whl", "png", "jpg", "jpeg", "gif", "bmp", "tif",
        "tiff", "webp", "ico", "svg", "heic", "mp3", "mp4", "wav", "ogg", "flac", "avi", "mov", "mkv", "webm", "exe", "dll",
        "so", "bin", "iso", "class", "pyc", "wasm", "sqlite", "db", "parquet", "avro", "orc", "npy", "msg", "pst", "mbox",
        "xml", "ics", "vcf", "mht", "mhtml", "woff", "woff2", "ttf", "otf", "psd",
    }
)  # fmt: skip
_SIGNATURES = (
    (b"%PDF-", "a PDF file"), (b"%!PS", "a PostScript file"), (b"{\\rtf", "an RTF file"),
    (b"PK\x03\x04", "a zip archive or an Office file"), (b"PK\x05\x06", "a zip archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file"),
    (b"\x1f\x8b", "a gzip archive"), (b"BZh", "a bzip2 archive"), (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"), (b"Rar!\x1a\x07", "a rar archive"), (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x89PNG", "a PNG image"), (b"\xff\xd8\xff", "a JPEG image"), (b"GIF8", "a GIF image"), (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"), (b"RIFF", "a RIFF media file"), (b"OggS", "an Ogg media file"), (b"ID3", "an MP3 file"),
    (b"\x7fELF", "a program"), (b"MZ\x90", "a program"), (b"\xca\xfe\xba\xbe", "a program"), (b"\x00asm", "a program"),
    (b"SQLite format 3\x00", "a SQLite database"), (b"PAR1", "a Parquet file"),
)  # fmt: skip
# These may start a text, so they count only where bytes follow that no text has.
_TEXT_LIKE = frozenset({b"BZh", b"GIF8", b"RIFF", b"OggS", b"ID3", b"PAR1", b"MZ\x90", b"II*\x00", b"MM\x00*"})
_HTML = re.compile(r"\s*(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])", re.IGNORECASE)
_HTML_BYTES = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,2000}?-->\s*)?(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])",
                         re.IGNORECASE | re.DOTALL)  # fmt: skip
_MARKDOWN = re.compile(r"^(?:#{1,6}[ \t]+\S|```|~~~|\[[^\]\r\n]{1,80}\]\([^)\r\n]{1,200}\))", re.MULTILINE)
_FRONT_MATTER = re.compile(r"---[ \t]*(?>\r\n|\n|\r)[A-Za-z_][\w-]*:")


def format_of(body: bytes, *, source_id: str, media_type: str) -> Format | None:
    """The format that media type, name or first bytes tell.

    Args:
        body: The original bytes.
        source_id: Its name; the extension counts.
        media_type: As the sender states it, without parameters and lower case; may be empty.

    Returns:
        The format, or None where only the decoded text can tell.

    Raises:
        InvalidDocument: The format isn't supported.
    """
    for signature, what in _SIGNATURES:
        if body.startswith(signature) and (signature not in _TEXT_LIKE or b"\x00" in body[:1024]):
            raise _unsupported(f"the document is {what}")
    if media_type in _MEDIA_TYPES:
        return _MEDIA_TYPES[media_type]
    if media_type.endswith("+json"):
        return Format.JSON
    if media_type.endswith("+yaml"):
        return Format.YAML
    if media_type.startswith("text/") and media_type not in _REFUSED_TEXT:
        return Format.PLAIN
    if media_type not in _UNSPECIFIC:
        raise _unsupported(f"the media type {media_type[:80]!r} isn't supported")
    name = extension(source_id)
    if name in _REFUSED_EXTENSIONS:
        raise _unsupported(f"files named .{name} aren't supported")
    return _EXTENSIONS.get(name) or (Format.HTML if _HTML_BYTES.match(body[:8_192]) else None)


def _unsupported(what: str) -> InvalidDocument:
    return InvalidDocument(f"{what}; supported are {SUPPORTED}; convert it first")


def format_of_text(text: str, *, source_id: str) -> Format:
    """The format of a text that neither its type nor its name tells.

    Args:
        text: The decoded text.
        source_id: Its name; comment lines look like headings, so a name with an extension is never taken for Markdown.
    """
    start = text[:65_536].lstrip()
    if _HTML.match(start):
        return Format.HTML
    if looks_like_mail(text):
        return Format.MAIL
    if is_chat_text(text):
        return Format.PLAIN
    if start[:1] in {"{", "["} and text[-65_536:].rstrip()[-1:] in {"}", "]"}:
        return Format.JSON
    if _FRONT_MATTER.match(text) or (not extension(source_id) and len(_MARKDOWN.findall(start)) >= 2):
        return Format.MARKDOWN
    return Format.PLAIN
