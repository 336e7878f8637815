"""JSON: validated, read in place, and cut into records."""

import json
import re
from collections.abc import Iterator
from typing import Any

from services.ingest.domain.normalize.alignment import Damage
from services.ingest.domain.normalize.decoding import replaced_notice
from services.ingest.domain.normalize.lines import Lines, line_number
from services.ingest.domain.normalize.mapping import Extractor
from services.ingest.domain.normalize.metadata import Collector, clean, relational
from services.ingest.domain.normalize.model import (
    REPLACEMENT,
    Block,
    BlockKind,
    InvalidDocument,
    MappedText,
    Reading,
)
from services.ingest.domain.normalize.records import (
    MAX_DEPTH,
    MAX_RECORDS,
    RECORD_CHARS,
    Step,
    split,
    too_deep,
    too_many,
)

_SPACE = re.compile(r"[ \t\n\r]*")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE_CHARS = 6
# Writers escape these for the sake of HTML; quotes, backslashes and controls have to stay escaped.
_READABLE_ASCII = frozenset("<>&'=")
_SAMPLES = 5
_CLOSERS = {"{": "}", "[": "]"}


def unescape(source: MappedText, charset: str) -> tuple[MappedText, tuple[str, ...]]:
    r"""Turn `\uXXXX` into the characters they stand for, so that words in any script can be found.

    Args:
        source: JSON text.
        charset: Codec of its bytes.

    Returns:
        The text, still the same JSON, and notices; a lone surrogate becomes U+FFFD.
    """
    if "\\u" not in source.text:
        return source, ()
    extractor = Extractor(source, charset)
    lone: list[int] = []
    position = 0
    for match in _ESCAPES.finditer(source.text):
        if match.group()[1] == "u" and len(match.group()) >= _ESCAPE_CHARS:
            extractor.copy(position, match.start())
            _unescape_stretch(match.group(), match.start(), extractor, lone)
            position = match.end()
    extractor.copy(position, len(source.text))
    content = extractor.build()
    if not lone:
        return content, ()
    first = next(run.byte_start for run in content.runs if run.text_end > lone[0])
    return content, (replaced_notice(Damage(len(lone), first), "lone surrogate escape"),)


def _unescape_stretch(stretch: str, offset: int, extractor: Extractor, lone: list[int]) -> None:
    whole: str = json.loads(f'"{stretch}"')
    if min(whole) >= "\u00a0" and not _SURROGATE.search(whole):
        extractor.put(whole, offset, offset + len(stretch))
        return
    units = b"".join(
        int(stretch[at + 2 : at + 6], 16).to_bytes(2, "big") for at in range(0, len(stretch), _ESCAPE_CHARS)
    )
    text, start, at = "", offset, offset
    for character in units.decode("utf-16-be", "surrogatepass"):
        size = _ESCAPE_CHARS * (2 if character > "\uffff" else 1)
        if "\ud800" <= character <= "\udfff":
            lone.append(extractor.length + len(text))
            text += REPLACEMENT
        elif character >= "\u00a0" or character in _READABLE_ASCII:
            text += character
        else:
            extractor.put(text, start, at)
            extractor.copy(at, at + size)
            text, start = "", at + size
        at += size
    extractor.put(text, start, at)


class JsonTree:
    """One JSON text as steps; what it meets on the way helps to tell what it is."""

    def __init__(self, text: str, *, limit: int = RECORD_CHARS) -> None:
        self._text = text
        self._limit = limit
        self._stack: list[str] = []
        # Key of the container that was entered last right below the root.
        self._list = ""
        # Digits are kept as they are: a number of a million digits is nobody's attack.
        self._decoder = json.JSONDecoder(parse_int=str, parse_float=str)
        self.scalars = Collector()
        self.samples: list[dict[str, Any]] = []

    def steps(self) -> Iterator[Step]:
        """The tree in document order.

        Raises:
            InvalidDocument: The text is no JSON, or nested too deeply.
        """
        position, key, start = self._skip(0), "", self._skip(0)
        while True:
            step, position = self._value(position, start, key)
            yield step
            after_value = step.kind not in {"map", "list"}
            while self._stack and self._text.startswith(self._stack[-1], position):
                self._stack.pop()
                yield Step("end", position, position + 1)
                position, after_value = self._skip(position + 1), True
            if not self._stack:
                break
            position = self._comma(position) if after_value else position
            key, start, position = self._key(position) if self._stack[-1] == "}" else ("", position, position)
        if position < len(self._text):
            raise self._error("text follows the value (one value per line is application/x-ndjson)", position)

    def _value(self, position: int, start: int, key: str) -> tuple[Step, int]:
        """The step for the value at a place, and the place after it; a large container is only entered."""
        opener = self._text[position : position + 1]
        if opener not in _CLOSERS:
            value, end = self._scalar(position)
            if self._stack == ["}"]:
                self.scalars.add(key, value)
            elif self._stack == ["}", "]"] and relational(self._list):
                self.scalars.add(self._list, value)
            return Step("leaf", start, end, key), self._skip(end)
        end = self._atom(position)
        if end:
            return Step("small_map" if opener == "{" else "small_list", start, end, key), self._skip(end)
        if len(self._stack) >= MAX_DEPTH:
            raise too_deep(line_number(self._text, position))
        if self._stack == ["}"]:
            self._list = key
        self._stack.append(_CLOSERS[opener])
        return Step("map" if opener == "{" else "list", start, 0, key), self._skip(position + 1)

    def _atom(self, position: int) -> int:
        """End of a container that is small enough for one record, 0 if it isn't."""
        if not self._stack or (len(self._stack) == 1 and self._text[position] == "["):
            return 0
        snippet = self._text[position : position + self._limit]
        try:
            value, size = self._decoder.raw_decode(snippet)
        except (json.JSONDecodeError, RecursionError):
            # Too large, or broken; entering it tells which.
            return 0
        if snippet.count("[", 0, size) + snippet.count("{", 0, size) > MAX_DEPTH - len(self._stack) and (
            _depth(value) > MAX_DEPTH - len(self._stack)
        ):
            return 0
        if self._stack[-1] == "]" and isinstance(value, dict) and len(self.samples) < _SAMPLES:
            self.samples.append(value)
        return position + size

    def _scalar(self, position: int) -> tuple[str, int]:
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except json.JSONDecodeError as error:
            raise self._error(error.msg, error.pos) from error
        return (str(value) if isinstance(value, str) else json.dumps(value)), end

    def _key(self, position: int) -> tuple[str, int, int]:
        if not self._text.startswith('"', position):
            raise self._error("a key in double quotes is expected", position)
        key, end = self._scalar(position)
        colon = self._skip(end)
        if not self._text.startswith(":", colon):
            raise self._error("a colon is expected after the key", colon)
        return clean(key), position, self._skip(colon + 1)

    def _comma(self, position: int) -> int:
        if not self._text.startswith(",", position):
            raise self._error(f"a comma or {self._stack[-1]!r} is expected", position)
        return self._skip(position + 1)

    def _skip(self, position: int) -> int:
        space = _SPACE.match(self._text, position)
        return space.end() if space else position

    def _error(self, what: str, position: int) -> InvalidDocument:
        column = position - max(self._text.rfind("\n", 0, position), self._text.rfind("\r", 0, position))
        return InvalidDocument(
            f"invalid JSON at line {line_number(self._text, position)}, column {column}: {what}; "
            "correct the file, or send it as text/plain"
        )


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [member for item in level for member in (item.values() if isinstance(item, dict) else item)]
    return depth


def read_json(content: MappedText, charset: str, *, limit: int = RECORD_CHARS) -> tuple[Reading, list[dict[str, Any]]]:
    """Read a JSON document.

    Args:
        content: The decoded text, not blank.
        charset: Codec of its bytes.
        limit: Size of a record in code points.

    Returns:
        The records, and the first few small maps that are elements of a list.

    Raises:
        InvalidDocument: The text is no JSON, too deep, or has too many records.
    """
    readable, notices = unescape(content, charset)
    tree = JsonTree(readable.text, limit=limit)
    blocks = split(tree.steps(), limit=limit)
    metadata = tree.scalars.pairs()
    return Reading(readable, blocks, metadata=metadata, form="structured", notices=notices), tree.samples


def read_json_lines(content: MappedText, charset: str) -> Reading:
    """Read one JSON value per line; blank lines are skipped, and broken ones are skipped and counted.

    Args:
        content: The decoded text, not blank.
        charset: Codec of its bytes.

    Raises:
        InvalidDocument: No line is JSON, or there are too many.
    """
    readable, notices = unescape(content, charset)
    lines = Lines(readable.text)
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    blocks: list[Block] = []
    broken: list[int] = []
    for index in range(len(lines)):
        whole = lines[index]
        line = whole.strip(" \t")
        if not line.strip():
            continue
        start = lines.starts[index] + whole.index(line[0])
        try:
            decoder.decode(line)
        except (json.JSONDecodeError, RecursionError):
            broken.append(index + 1)
            continue
        blocks.append(Block(BlockKind.RECORD, start, start + len(line)))
    if broken and not blocks:
        raise InvalidDocument(
            f"none of {len(broken)} lines is JSON, the first is line {broken[0]}; send the file as text/plain"
        )
    if len(blocks) > MAX_RECORDS:
        raise too_many()
    if broken:
        noun = "line that is no JSON was" if len(broken) == 1 else "lines that are no JSON were"
        notices = (*notices, f"{len(broken)} {noun} skipped, the first is line {broken[0]}")
    return Reading(readable, tuple(blocks), form="structured", notices=notices)
