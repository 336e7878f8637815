"""What a caller says about a document: source ids, limits, and metadata."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from blake3 import blake3

from services.ingest.domain import effect, settings
from services.ingest.domain.normalize.metadata import relational
from services.ingest.domain.refusals import Refused

MAX_SOURCE_ID_CHARS: Final = 1_024
MAX_TITLE_CHARS: Final = 1_024
MAX_URI_CHARS: Final = 2_048
MAX_LABEL_CHARS: Final = 256
MAX_METADATA_ENTRIES: Final = 64
MAX_METADATA_KEY_CHARS: Final = 256
MAX_METADATA_VALUE_BYTES: Final = 8_192
# Set by the server alone, so that no caller can pass a document off as another one or as another crate's.
RESERVED_KEYS: Final = frozenset({"crate_id", "document_id", "source_id", "source_domain"})
RESERVED_PREFIX: Final = "affidavit"
_STATE_KEYS: Final = frozenset(
    {
        *effect.KEYS, "status", "state", "version", "family", "series", "class", "title", "date", "withdrawn",
        "withdrawn_on", "deprecated", "archived", "retired", "expires", "expiry", "expiry_date", "valid_until", "review",
        "review_by", "review_date", "next_review",
    }
)  # fmt: skip
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the caller says about a document; every field but the source id may be empty.

    Attributes:
        source_id: Name of the document in its crate.
        media_type: Empty: guessed.
        charset: Charset that the caller claims.
        uri: Where it can be read by people.
        title: Empty: taken from the document.
        metadata: Keys and values, sorted by key.
        job_id: Ingest job whose chunk settings count.
        effective_at: When it comes into force; None: when it is recorded.
        source_domain: Independent origin; empty: derived.
    """

    source_id: str
    media_type: str = ""
    charset: str = ""
    uri: str = ""
    title: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    job_id: str = ""
    effective_at: datetime | None = None
    source_domain: str = ""


def source_id(value: str) -> str:
    """Bring a source id to its one form.

    Args:
        value: What the caller gave: a path with "/" relative to the job's root, or any other name.

    Returns:
        The id in Unicode form NFC.

    Raises:
        Refused: When it can't name a document.
    """
    _check_unicode("source_id", value)
    name = unicodedata.normalize("NFC", value)
    if not name.strip():
        raise Refused("source_id is empty: give the document a name that is unique in its crate")
    if len(name) > MAX_SOURCE_ID_CHARS:
        raise Refused(f"source_id has {len(name)} characters: at most {MAX_SOURCE_ID_CHARS} are allowed")
    if "\x00" in name:
        raise Refused(f"source_id has a NUL character at {name.index(chr(0))}: leave it out")
    if name.startswith("/") or _DRIVE.match(name):
        raise Refused(f"source_id {name[:80]!r} is absolute: give it relative to the folder that is ingested")
    if ".." in name.split("/"):
        raise Refused(f"source_id {name[:80]!r} has a '..' in it: give it relative to the folder that is ingested")
    return name


def document_id(secret: bytes, name: str) -> str:
    """Id of a document: tells nothing about its name to those who don't hold the crate's secret.

    Args:
        secret: The crate's 32 bytes.
        name: Source id as `source_id` returns it.

    Returns:
        32 hex digits: 128 bits of BLAKE3 keyed with the secret.
    """
    return blake3(name.encode(), key=secret).hexdigest(length=16)


def submission_id(secret: bytes, source: str, event_id: str) -> str:
    """Stand-in for a publisher's event in idempotency keys, see `document_id`.

    Args:
        secret: The crate's 32 bytes.
        source: CloudEvents source.
        event_id: CloudEvents id.

    Returns:
        32 hex digits.
    """
    name = f"{len(source)}:{source}:{event_id}"
    return blake3(name.encode("utf-8", "surrogatepass"), key=secret).hexdigest(length=16)


def check_header(header: Header) -> tuple[Header, tuple[str, ...]]:
    """Check a header and clean what can be cleaned.

    Args:
        header: As the caller gave it.

    Returns:
        The header with the source id in its one form, and a notice for each value that was cleaned.

    Raises:
        Refused: When a field is over its limit or can't be used.
    """
    if header.job_id:
        settings.job_id(header.job_id)
    for field, limit in (
        ("media_type", MAX_LABEL_CHARS),
        ("charset", MAX_LABEL_CHARS),
        ("uri", MAX_URI_CHARS),
        ("source_domain", MAX_LABEL_CHARS),
    ):
        _check_label(field, getattr(header, field), limit)
    if len(header.title) > MAX_TITLE_CHARS:
        raise Refused(f"title has {len(header.title)} characters: at most {MAX_TITLE_CHARS} are allowed")
    title, notices = clean("the given title", header.title)
    metadata, more = check_metadata(header.metadata)
    cleaned = replace(
        header,
        source_id=source_id(header.source_id),
        title=title,
        metadata=metadata,
        effective_at=utc(header.effective_at),
    )
    return cleaned, (*notices, *more)


def check_metadata(given: Iterable[tuple[str, str]]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Check a caller's metadata.

    Args:
        given: Keys and values.

    Returns:
        The entries sorted by key, and a notice for each value that was cleaned.

    Raises:
        Refused: When there are too many entries, or one is too long or reserved; the message names the key.
    """
    entries = sorted(given)
    if len(entries) > MAX_METADATA_ENTRIES:
        raise Refused(f"metadata has {len(entries)} entries: at most {MAX_METADATA_ENTRIES} are allowed")
    kept: list[tuple[str, str]] = []
    notices: list[str] = []
    for key, value in entries:
        problem = _metadata_problem(key, value)
        if problem:
            raise Refused(f"metadata key {key[:80]!r} {problem}")
        cleaned, more = clean(f"metadata {key!r}", value)
        kept.append((key, cleaned))
        notices += more
    return tuple(kept), tuple(notices)


def merge_metadata(
    given: tuple[tuple[str, str], ...], found: Mapping[str, str]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Add what the document says about itself to what the caller says; the caller wins.

    Args:
        given: The caller's entries, checked.
        found: The document's own, unchecked: what doesn't fit is left out, since its text still holds it.

    Returns:
        The entries sorted by key, and a notice for each that was left out or cleaned.
    """
    merged = dict(given)
    notices: list[str] = []
    # What living states rest on is kept first, however many other names a document has.
    for key, value in sorted(found.items(), key=lambda item: (not _tells_state(item[0]), item)):
        if key in merged:
            continue
        problem = _metadata_problem(key, value)
        if not problem and len(merged) >= MAX_METADATA_ENTRIES:
            problem = f"is beyond the {MAX_METADATA_ENTRIES} entries that are kept"
        if problem:
            notices.append(f"the document's own metadata key {clean('', key)[0][:80]!r} was left out: it {problem}")
            continue
        merged[key], more = clean(f"the document's metadata {key!r}", value)
        notices += more
    return tuple(sorted(merged.items())), tuple(notices)


def clean(what: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Replace what tables and messages can't hold: NUL and lone surrogates.

    Args:
        what: Name of the text, for the notice.
        text: Text.

    Returns:
        The text with U+FFFD in their place, and a notice when there were any.
    """
    cleaned, count = _UNSTORABLE.subn(REPLACEMENT, text)
    if not count:
        return text, ()
    return cleaned, (f"{count} NUL or surrogate character{'s' if count > 1 else ''} replaced in {what}",)


def _tells_state(name: str) -> bool:
    return relational(name) or effect.key(name) in _STATE_KEYS


def _metadata_problem(key: str, value: str) -> str:
    if not key.strip() or _UNSTORABLE.search(key):
        return "is empty or holds a NUL or surrogate character"
    if len(key) > MAX_METADATA_KEY_CHARS:
        return f"has {len(key)} characters: at most {MAX_METADATA_KEY_CHARS} are allowed"
    if key.lower() in RESERVED_KEYS or key.lower().startswith(RESERVED_PREFIX):
        return "is reserved: it is set by the server"
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > MAX_METADATA_VALUE_BYTES:
        return f"has a value of {size} bytes: at most {MAX_METADATA_VALUE_BYTES} are allowed"
    return ""


def utc(moment: datetime | None) -> datetime | None:
    """Bring an effective time to UTC.

    Args:
        moment: As the caller gave it; None when it gave none.

    Returns:
        The same instant.

    Raises:
        Refused: When it names no time zone, or is no time of the calendar in UTC.
    """
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise Refused("effective_at names no time zone: nobody may guess one")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise Refused("effective_at isn't a time between the years 1 and 9999") from error


def _check_label(field: str, value: str, limit: int) -> None:
    if len(value) > limit:
        raise Refused(f"{field} has {len(value)} characters: at most {limit} are allowed")
    if not value.isprintable():
        raise Refused(f"{field} holds an invisible or control character: leave it out")


def _check_unicode(field: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"{field} isn't valid Unicode at character {error.start}: name it without surrogates") from error
