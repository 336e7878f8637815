"""Records of structured content: rows of a CSV file, entries of JSON and YAML, as places in a chunk's text."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass

import regex

_JSON_STRING = r'"(?:[^"\\]|\\.)*+"'
_JSON_PAIR = regex.compile(
    rf"({_JSON_STRING})\s*:\s*({_JSON_STRING}|-?\d[\d.eE+\-]*|true|false|null|\[[^\[\]{{}}]*+\])"
)
_JSON_TOKEN = regex.compile(rf"{_JSON_STRING}|[{{}}\[\]:,]")
_YAML_LINE = regex.compile(r"^( *)((?:- +)*)(?:([^\s#'\"][^:\n]*|'[^'\n]*'|\"[^\"\n]*\"):(?:[ \t]+(.*))?|(.*))$")
_YAML_COMMENT = regex.compile(r"^\s*(?:#.*|---\s*|\.\.\.\s*)?$")
_YAML_TAIL = regex.compile(r"\s#.*$")
_ENTRY_LIMIT_CHARS = 600


@dataclass(frozen=True, slots=True)
class Record:
    """One record and where it stands.

    Attributes:
        start: Code points into the chunk's text.
        end: Same, exclusive.
        pairs: Its columns or keys with their values; the name is empty where it isn't known.
        parents: Keys that enclose it, outermost first.
    """

    start: int
    end: int
    pairs: tuple[tuple[str, str], ...]
    parents: tuple[str, ...] = ()

    def render(self) -> str:
        """Write the record as a reader wants it.

        Returns:
            "name: value; name: value", empty values left out.
        """
        return "; ".join(f"{name}: {value}" if name else value for name, value in self.pairs if value)


def find_records(text: str, *, media_type: str, context: str) -> tuple[Record, ...]:
    """Find the records in a chunk of structured content.

    Args:
        text: The chunk's text.
        media_type: Of the document.
        context: Header row of a CSV file; not used by the others.

    Returns:
        Records in order; empty when the media type holds none or nothing in the text looks like one.
    """
    kind = media_type.partition(";")[0].strip().lower()
    if kind in {"text/csv", "text/tab-separated-values"}:
        return tuple(_rows(text, context))
    if kind.endswith("json") or kind in {"application/jsonl", "application/x-ndjson"}:
        return tuple(_json_entries(text))
    if kind.endswith("yaml"):
        return tuple(_yaml_entries(text))
    return ()


def _rows(text: str, header_row: str) -> Iterator[Record]:
    sample = header_row or text.partition("\n")[0]
    delimiter = max(",;\t|", key=sample.count)
    header = _cells(header_row, delimiter) if header_row else ()
    for start, end in _row_spans(text):
        cells = _cells(text[start:end], delimiter)
        if cells == header or not any(cells):
            continue
        # A row that was cut by the chunk's border can't be matched to its columns.
        names = header if len(header) == len(cells) else ("",) * len(cells)
        yield Record(start, end, tuple(zip(names, cells, strict=True)))


def _row_spans(text: str) -> Iterator[tuple[int, int]]:
    """Cut at line ends outside quotes; a quote that never closes ends with its line."""
    start = 0
    while start < len(text):
        end = start
        quoted = False
        while end < len(text) and (quoted or text[end] not in "\r\n"):
            quoted ^= text[end] == '"'
            end += 1
        if quoted:
            line = regex.compile(r"[\r\n]").search(text, start)
            end = line.start() if line else len(text)
        if text[start:end].strip():
            yield start, end
        start = end + 1


def _cells(row: str, delimiter: str) -> tuple[str, ...]:
    try:
        found = next(csv.reader([row], delimiter=delimiter), [])
    except csv.Error:
        found = row.split(delimiter)
    return tuple(cell.strip() for cell in found)


def _json_entries(text: str) -> Iterator[Record]:
    spans = tuple(_leaf_objects(text))
    for start, end, parents in spans:
        pairs = _json_pairs(text, start, end)
        if pairs:
            yield Record(start, end, pairs, parents)
    # Values that stand beside nested objects are records of their own.
    for match in _JSON_PAIR.finditer(text):
        inside = any(start <= match.start() and match.end() <= end for start, end, _ in spans)
        if not inside:
            yield Record(match.start(), match.end(), _json_pairs(text, match.start(), match.end()))


def _json_pairs(text: str, start: int, end: int) -> tuple[tuple[str, str], ...]:
    return tuple((_plain(match[1]), _plain(match[2])) for match in _JSON_PAIR.finditer(text, start, end))


def _plain(literal: str) -> str:
    if not literal.startswith('"'):
        return " ".join(literal.split())
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return literal[1:-1]


def _leaf_objects(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Find objects without an object inside; one that the chunk's border cuts counts up to the border."""
    stack: list[tuple[int, str, bool]] = []
    key = last = ""
    closed_before = False
    for token in _JSON_TOKEN.finditer(text):
        sign = token.group()
        if sign == ":":
            key = last
        elif sign in "{[":
            stack = [(at, name, leaf and sign == "[") for at, name, leaf in stack]
            stack.append((token.start(), key, sign == "{"))
            key = ""
        elif sign in "}]":
            if stack:
                at, name, leaf = stack.pop()
                if leaf and sign == "}":
                    yield at, token.end(), _parents(stack, name)
            elif sign == "}" and not closed_before:
                yield 0, token.end(), ()
            closed_before = True
            key = ""
        elif sign == ",":
            key = ""
        else:
            last = _plain(sign)
    if stack and stack[-1][2] and text[stack[-1][0]] == "{":
        at, name, _ = stack[-1]
        yield at, len(text.rstrip()), _parents(stack[:-1], name)


def _parents(stack: list[tuple[int, str, bool]], name: str) -> tuple[str, ...]:
    return tuple(key for _, key, _ in stack if key) + ((name,) if name else ())


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    indent: int
    item: bool
    key: str
    value: str


def _yaml_entries(text: str) -> Iterator[Record]:
    lines = tuple(_yaml_lines(text))
    at = 0
    parents: list[tuple[int, str]] = []
    while at < len(lines):
        line = lines[at]
        parents = [(indent, key) for indent, key in parents if indent < line.indent]
        enclosing = tuple(key for _, key in parents)
        after = at + 1
        if line.item:
            while after < len(lines) and lines[after].indent > line.indent:
                after += 1
            last = lines[after - 1]
            if last.end - line.start <= _ENTRY_LIMIT_CHARS:
                pairs = tuple((entry.key, entry.value) for entry in lines[at:after] if entry.key or entry.value)
                if pairs:
                    yield Record(line.start, last.end, pairs, enclosing)
                at = after
                continue
        if line.value:
            yield Record(line.start, line.end, ((line.key, line.value),), enclosing)
        elif line.key:
            parents.append((line.indent, line.key))
        at += 1


def _yaml_lines(text: str) -> Iterator[_Line]:
    start = 0
    for raw in text.splitlines(keepends=True):
        line = raw.rstrip("\r\n")
        match = None if _YAML_COMMENT.match(line) else _YAML_LINE.match(line)
        if match:
            key = (match[3] or "").strip().strip("'\"")
            value = _YAML_TAIL.sub("", match[4] or match[5] or "").strip()
            item = bool(match[2])
            begin = start + len(match[1]) + len(match[2])
            yield _Line(begin, start + len(line.rstrip()), len(match[1]), item, key, value.strip("'\""))
        start += len(raw)
