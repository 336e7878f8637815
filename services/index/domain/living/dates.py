"""Dates as documents write them."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta

_DAY_FIRST = re.compile(r"(\d{1,2})[-\s.]+([A-Za-z]{3,9})\.?[-\s,]+(\d{4})")
_MONTH_FIRST = re.compile(r"([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})")
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_INTERVAL = re.compile(r"(\d{1,4})\s*(day|week|month|year)s?", re.IGNORECASE)
_MONTHS = {name[:3].lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS_IN = {"month": 1, "year": 12}
_DAYS_IN = {"day": 1, "week": 7}


def parse_date(text: str) -> datetime | None:
    """Read a date, or an instant with a time zone.

    Args:
        text: "2024-05-31", "2024-05-31T12:00:00Z", "31-May-2024", "31 May 2024", "May 31, 2024".

    Returns:
        In UTC; a date means its beginning. None for anything else, and for a time that names no zone.
    """
    text = text.strip().strip("\"'")
    if "T" in text or ":" in text:
        return _instant(text)
    try:
        return _day(text)
    except ValueError:
        return None


def parse_interval(text: str) -> tuple[int, int] | None:
    """Read "6 months", "1 year", "90 days".

    Args:
        text: As the document has it.

    Returns:
        Months and days; None when it is no interval.
    """
    found = _INTERVAL.fullmatch(text.strip())
    if not found:
        return None
    count, unit = int(found[1]), found[2].lower()
    return count * _MONTHS_IN.get(unit, 0), count * _DAYS_IN.get(unit, 0)


def later(moment: datetime, months: int, days: int) -> datetime | None:
    """Add an interval; the last day of a month stays within it. None beyond the calendar's end."""
    year, month = divmod(moment.month - 1 + months, 12)
    year, month = moment.year + year, month + 1
    try:
        day = min(moment.day, calendar.monthrange(year, month)[1])
        return moment.replace(year=year, month=month, day=day) + timedelta(days=days)
    except (ValueError, OverflowError):
        return None


def _instant(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def _day(text: str) -> datetime | None:
    if found := _YEAR_FIRST.fullmatch(text):
        return datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC)
    if found := _DAY_FIRST.fullmatch(text):
        day, name, year = found[1], found[2], found[3]
    elif found := _MONTH_FIRST.fullmatch(text):
        name, day, year = found[1], found[2], found[3]
    else:
        return None
    month = _MONTHS.get(name[:3].lower())
    return datetime(int(year), month, int(day), tzinfo=UTC) if month else None
