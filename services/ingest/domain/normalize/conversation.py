"""Chat exports: `[time] name: text` lines, and JSON lists of messages."""

import re
from collections.abc import Mapping, Sequence

from services.ingest.domain.normalize.lines import Lines
from services.ingest.domain.normalize.links import links_of, plain_links
from services.ingest.domain.normalize.metadata import Collector
from services.ingest.domain.normalize.model import Block, BlockKind, MappedText, Reading
from services.ingest.domain.normalize.records import MAX_RECORDS, too_many

# A time stands in brackets and holds an hour and minute, or a date.
_MESSAGE = re.compile(
    r"[\u200e\u200f]?\[(?=[^\]\r\n]{0,40}\d[:/.-]\d)[^\]\r\n]{3,40}\][ \t]+([^:\r\n]{1,80}?)[ \t]*:(?:[ \t]|\Z)"
)
_SAMPLE_LINES = 200
_MAX_NAMES = 50
_TEXT_KEYS = frozenset({"text", "content", "message", "body", "msg"})
_NAME_KEYS = frozenset({"from", "author", "sender", "user", "name", "username", "user_name", "speaker", "display_name"})
_TIME_KEYS = frozenset({"time", "ts", "timestamp", "date", "datetime", "sent", "sent_at", "created_at", "createdat"})


def is_chat_text(text: str) -> bool:
    """Whether a text consists of chat lines: the first is one, and so is about a third of all; others continue one."""
    lines = [
        line for line in re.split(r"\r\n|\r|\n", text[:65_536], maxsplit=_SAMPLE_LINES)[:_SAMPLE_LINES] if line.strip()
    ]
    found = sum(1 for line in lines if _MESSAGE.match(line))
    return bool(lines) and _MESSAGE.match(lines[0]) is not None and found * 3 >= len(lines)


def is_chat_json(samples: Sequence[Mapping[str, object]]) -> bool:
    """Whether the elements of a JSON list are messages: each has a text and a name, and a time or a role."""
    return bool(samples) and all(_is_message(sample) for sample in samples)


def _is_message(sample: Mapping[str, object]) -> bool:
    keys = {key.lower() for key in sample}
    named = keys & _NAME_KEYS and keys & _TIME_KEYS
    return bool(keys & _TEXT_KEYS) and bool(named or "role" in keys)


def read_chat_text(content: MappedText) -> Reading:
    """Read chat lines.

    Args:
        content: The decoded text.

    Returns:
        A record for each message, with the lines that continue it; the names of those who speak as metadata.

    Raises:
        InvalidDocument: There are too many messages.
    """
    lines = Lines(content.text)
    starts: list[int] = []
    names: dict[str, None] = {}
    for index in range(len(lines)):
        message = _MESSAGE.match(lines[index])
        if message:
            starts.append(index)
            if len(names) < _MAX_NAMES:
                names[" ".join(message[1].split())] = None
        elif not starts and not lines.is_blank(index):
            starts.append(index)
    if len(starts) > MAX_RECORDS:
        raise too_many()
    blocks = tuple(
        Block(BlockKind.RECORD, *lines.span(first, end))
        for first, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    )
    collector = Collector()
    collector.add("participants", ", ".join(names))
    links = links_of(plain_links(content.text))
    return Reading(content, blocks, metadata=collector.pairs(), form="informal", links=links)
