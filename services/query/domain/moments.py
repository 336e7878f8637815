"""Points in time that a question names: "as of 3 May 2021", "in force in 2021", "in March 2019", "before 2020".

A period stands for its last instant, so that what came into force within it counts; "before" stands for the last
instant ahead of the period, "start of" for its first. A year that merely occurs is no point in time: it needs one of
these wordings, and a question about an event in that period ("accepted in 2019") isn't one about what held then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import regex

_FLAGS = regex.IGNORECASE | regex.V1
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_YEAR = r"(?:19|20)\d\d"
_DATE = (
    rf"(?P<iso>{_YEAR}-\d\d(?:-\d\d)?(?!\d))"
    rf"|(?P<dmy>\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}(?!\d))"
    rf"|(?P<mdy>{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+{_YEAR}(?!\d))"
    rf"|(?P<my>{_MONTH},?\s+(?:of\s+)?{_YEAR}(?!\d))"
    rf"|(?P<quarter>Q[1-4]\s+(?:of\s+)?{_YEAR}(?!\d))"
    rf"|(?P<year>{_YEAR}(?![\d.\-]))"
)
_EDGE = r"(?P<edge>(?:the\s+)?(?:very\s+)?(?P<first>start|beginning|outset)\s+of\s+|(?:the\s+)?end\s+of\s+)?"
_WHEN = rf"{_EDGE}(?:the\s+year\s+|the\s+date\s+of\s+)?(?:{_DATE})"
# Wordings that name a point in time by themselves.
_PLAIN = regex.compile(
    r"\b(?P<lead>as\s+(?:of|at|it\s+stood\s+(?:on|in|at))|back\s+in|prior\s+to|(?P<before>before)|by|"
    r"(?:in\s+(?:force|effect)|valid|applicable|effective|binding|current|applied)\s+(?:as\s+of|on|in|at|during|by))\s+"
    rf"{_WHEN}",
    _FLAGS,
)
_AT_EDGE = regex.compile(
    rf"\b(?:at|by|towards)\s+(?:the\s+)?(?:very\s+)?(?:(?P<first>start|beginning|outset)|end)\s+of\s+(?:{_DATE})",
    _FLAGS,
)
# Wordings that name one unless the question is about an event of that time.
_LOOSE = regex.compile(rf"\b(?:in|on|during)\s+(?:the\s+year\s+)?(?:{_DATE})", _FLAGS)
_EVENT = regex.compile(
    r"\b(?:accepted|adopted|announced|appear(?:ed)?|approved|became|began|changed|created|dated|deprecated|elected|happened"
    r"|held|introduced|issued|launched|merged|planned|proposed|published|rejected|released?|removed|renamed|replaced?"
    r"|retired|revised|signed|split|started|superseded|updated|withdrawn|written|when)\b",
    _FLAGS,
)
_PAST = regex.compile(r"\b(?:was|were|did|had|could|might|used\s+to|applied|said|held\s+then)\b", _FLAGS)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class PointInTime:
    """A point in time that a question names.

    Attributes:
        as_of: The instant, with a time zone.
        text: The question without the words that name it; as it was where nothing else would be left.
    """

    as_of: datetime
    text: str


def read_point_in_time(question: str, now: datetime) -> PointInTime | None:
    """Find the point in time that a question asks about.

    Args:
        question: As asked.
        now: With a time zone; a period that isn't over yet stands for this instant.

    Returns:
        The point; None when the question names none, or a date that doesn't exist.
    """
    match = _AT_EDGE.search(question) or _PLAIN.search(question) or _loose(question)
    if match is None:
        return None
    period = _period(match)
    if period is None:
        return None
    start, end = period
    named = match.groupdict()
    lead = (named.get("lead") or "").casefold()
    if named.get("before") or lead.startswith("prior"):
        as_of = start - _TICK
    elif named.get("first"):
        as_of = start
    else:
        as_of = min(end - _TICK, now) if start <= now else end - _TICK
    rest = " ".join((question[: match.start()] + " " + question[match.end() :]).split())
    return PointInTime(as_of, rest if len(regex.findall(r"\w+", rest)) > 1 else question)


def _loose(question: str) -> regex.Match[str] | None:
    match = _LOOSE.search(question)
    if match is None or _EVENT.search(question):
        return None
    whole_year = match["year"] is not None
    return match if not whole_year or _PAST.search(question) else None


def _period(match: regex.Match[str]) -> tuple[datetime, datetime] | None:
    """First instant of the period and the first one after it."""
    try:
        return _named_period(match)
    except (ValueError, OverflowError):
        return None


def _named_period(match: regex.Match[str]) -> tuple[datetime, datetime]:
    if match["iso"]:
        parts = [int(part) for part in match["iso"].split("-")]
        return _month(parts[0], parts[1]) if len(parts) == 2 else _day(*parts)
    text = next(match[name] for name in ("dmy", "mdy", "my", "quarter", "year") if match[name])
    numbers = [int(number) for number in regex.findall(r"\d+", text)]
    if match["year"]:
        return datetime(numbers[0], 1, 1, tzinfo=UTC), datetime(numbers[0] + 1, 1, 1, tzinfo=UTC)
    if match["quarter"]:
        start, _ = _month(numbers[1], 3 * numbers[0] - 2)
        return start, _month(numbers[1], 3 * numbers[0])[1]
    month = _month_number(text)
    return _month(numbers[0], month) if match["my"] else _day(numbers[1], month, numbers[0])


def _month_number(text: str) -> int:
    word = next(item for item in regex.findall(r"\p{L}+", text.casefold()) if len(item) > 2)
    return next(number for number, name in enumerate(_MONTHS, start=1) if name.startswith(word[:3]))


def _month(year: int, month: int) -> tuple[datetime, datetime]:
    start = datetime(year, month, 1, tzinfo=UTC)
    return start, datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)


def _day(year: int, month: int, day: int) -> tuple[datetime, datetime]:
    start = datetime(year, month, day, tzinfo=UTC)
    return start, start + timedelta(days=1)
