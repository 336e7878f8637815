"""Meeting notes: Markdown or text that names attendees, a date, decisions and actions."""

import re
from dataclasses import replace

from services.ingest.domain.normalize.metadata import Collector
from services.ingest.domain.normalize.model import Pairs, Reading

_SAMPLE_CHARS = 200_000
# A label is a heading, or the start of a line up to a colon; marks of Markdown and RST may stand around it.
_LABEL = re.compile(
    r"^[ \t]{0,3}(?:\#{1,6}[ \t]+|[-*+][ \t]+|:)?[*_]{0,2}"
    r"(attendees|participants|present|in attendance|apologies|absent|chair|minute taker|note taker|date|when|location"
    r"|agenda|decisions?(?: made)?|resolutions?|actions?(?: items| points)?|action items?|next steps|follow-ups?|to-?dos?"
    r"|minutes|meeting notes|next meeting)"
    r"[ \t]*[*_]{0,2}[ \t]*(:?)[*_]{0,2}[ \t]*([^\r\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_PEOPLE = frozenset({"attendees", "participants", "present", "in attendance"})
_OUTCOMES = re.compile(r"decision|resolution|action|next steps|follow-up|to-?do", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*[-*+][ \t]+([^\r\n]+)")


def with_minutes(reading: Reading) -> Reading:
    """A text as it is, or as meeting notes where it is such: informal, with attendees and date as metadata."""
    found = meeting_metadata(reading.content.text)
    if found is None:
        return reading
    known = {name.lower() for name, _ in reading.metadata}
    added = tuple((name, value) for name, value in found if name not in known)
    return replace(reading, metadata=reading.metadata + added, form="informal")


def meeting_metadata(text: str) -> Pairs | None:
    """Tell meeting notes by their labels.

    Args:
        text: A Markdown or plain text.

    Returns:
        Attendees, date and the like; None when the text names no attendees, or neither decisions nor actions.
    """
    people = outcomes = False
    collector = Collector()
    for match in _LABEL.finditer(text[:_SAMPLE_CHARS].replace("\r\n", "\n").replace("\r", "\n")):
        label, colon, value = match[1].lower(), match[2], match[3].strip().strip("*_")
        heading = match.group().lstrip().startswith("#")
        if not (colon or (heading and not value)):
            continue
        people |= label in _PEOPLE
        outcomes |= _OUTCOMES.match(label) is not None
        if not _OUTCOMES.match(label) and label not in {"agenda", "minutes", "meeting notes"}:
            collector.add(label, value or _listed(match))
    return collector.pairs() if people and outcomes else None


def _listed(match: re.Match[str]) -> str:
    """The items of the list below a label, in one line."""
    names = []
    position = match.end()
    for line in match.string[position : position + 4_000].split("\n")[1:]:
        item = _ITEM.match(line)
        if item:
            names.append(item[1].strip())
        elif line.strip():
            break
    return ", ".join(names)
