"""When a document says of itself that it comes into force."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Final

# Explicit about effect, the first one counts; "date" and "created" say when something was written.
KEYS: Final = (
    "effective_at",
    "effective_date",
    "effective_from",
    "effective_since",
    "effective",
    "valid_from",
    "in_force_since",
    "in_force_from",
    "date_effective",
    "entry_into_force",
    "applies_from",
)
AHEAD: Final = timedelta(minutes=5)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ISO: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_ISO_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]+\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?\s*(?:[Zz]|UTC|GMT|[+-]\d\d:?\d\d)?"
)
_COMPACT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)", re.ASCII)
_DAY_FIRST: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?[ -]+([A-Za-z]{3,9})\.?,?[ -]+(\d{4})", re.ASCII)
_MONTH_FIRST: Final = re.compile(r"([A-Za-z]{3,9})\.?[ ]+(\d{1,2})(?:st|nd|rd|th)?,?[ ]+(\d{4})", re.ASCII)


def key(name: str) -> str:
    """A metadata key in its one form: lower case, words joined by "_"."""
    return re.sub(r"[\s_.-]+", "_", _WORD_START.sub("_", name.strip())).lower()


def stated(metadata: Iterable[tuple[str, str]]) -> tuple[datetime | None, tuple[str, ...]]:
    """Read when a document comes into force out of its metadata.

    Args:
        metadata: Keys and values.

    Returns:
        The time, aware and in UTC, None when nothing says so; and notices: of a value that can't be read, and of a time
        that names no zone, which is read as UTC. A plain date means UTC midnight.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, value in metadata:
        if value.strip():
            found.setdefault(key(name), (name, value.strip()))
    notices: list[str] = []
    for wanted in KEYS:
        if wanted not in found:
            continue
        name, value = found[wanted]
        moment, guessed = _moment(value)
        if moment is None:
            notices.append(
                f"{name} {value[:40]!r} isn't a time that can be read: write YYYY-MM-DD, or send effective_at; it was "
                "left out"
            )
            continue
        if guessed:
            notices.append(f"{name} {value[:40]!r} names no time zone: it was read as UTC")
        return moment, tuple(notices)
    return None, tuple(notices)


def day(value: str) -> date | None:
    """Read a plain date: "2024-09-15", "15th September 2024", "Sep 15, 2024"; None for anything else."""
    try:
        moment = _day(value)
    except ValueError:
        return None
    return moment.date() if moment else None


def ahead(sent_at: datetime | None, now: datetime) -> tuple[str, ...]:
    """Note a publisher's clock that is ahead of ours.

    Args:
        sent_at: What the publisher's event says of its time; None when it says nothing.
        now: Aware.

    Returns:
        A notice when it is more than `AHEAD` in the future, else nothing.
    """
    if sent_at is None or sent_at - now <= AHEAD:
        return ()
    seconds = int((sent_at - now).total_seconds())
    return (f"the publisher's clock is {seconds} s ahead of this server's: check both; nothing rests on it",)


def _moment(value: str) -> tuple[datetime | None, bool]:
    """The time that a value means, and whether its zone had to be guessed."""
    try:
        if _ISO_TIME.fullmatch(value):
            return _time(value)
        return _day(value), False
    except (ValueError, OverflowError):
        return None, False


def _time(value: str) -> tuple[datetime, bool]:
    text = re.sub(r"\s*(?:UTC|GMT|[Zz])$", "+00:00", value)
    day, clock = re.split(r"[Tt ]+", text, maxsplit=1)
    moment = datetime.fromisoformat(f"{day}T{clock.replace(' ', '')}")
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC), True
    return moment.astimezone(UTC), False


def _day(value: str) -> datetime | None:
    iso = _ISO.fullmatch(value) or _COMPACT.fullmatch(value)
    if iso:
        return datetime(int(iso[1]), int(iso[2]), int(iso[3]), tzinfo=UTC)
    named = _DAY_FIRST.fullmatch(value)
    if named:
        return _named(named[3], named[2], named[1])
    named = _MONTH_FIRST.fullmatch(value)
    return _named(named[3], named[1], named[2]) if named else None


def _named(year: str, month: str, day: str) -> datetime | None:
    short = month[:3].lower()
    return datetime(int(year), _MONTHS.index(short) + 1, int(day), tzinfo=UTC) if short in _MONTHS else None
