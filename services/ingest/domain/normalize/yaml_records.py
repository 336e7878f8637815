"""YAML: checked event by event without building objects, and cut into records."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import yaml

from services.ingest.domain.normalize.lines import line_number
from services.ingest.domain.normalize.metadata import Collector, clean, relational
from services.ingest.domain.normalize.model import Block, InvalidDocument, MappedText, Pairs, Reading
from services.ingest.domain.normalize.records import MAX_DEPTH, Step, clip, split, too_deep

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")


_Kind = Literal["map", "list", "end", "scalar", "alias"]
_KINDS: Mapping[type, _Kind] = MappingProxyType(
    {
        yaml.MappingStartEvent: "map",
        yaml.SequenceStartEvent: "list",
        yaml.MappingEndEvent: "end",
        yaml.SequenceEndEvent: "end",
        yaml.ScalarEvent: "scalar",
        yaml.AliasEvent: "alias",
    }
)


class _Event(NamedTuple):
    """What libyaml met: `start` to `end` in code points, `line` from 1; `plain` tells a scalar without quotes."""

    kind: _Kind
    start: int
    end: int
    line: int
    value: str = ""
    plain: bool = False


def _events(text: str) -> Iterator[_Event]:
    """Events of a YAML text, one at a time, so that reading can stop early.

    Raises:
        InvalidDocument: The text is no YAML.
    """
    # Only escapes can give characters that the text itself doesn't have.
    tidy = clean if "\\" in text else str
    loader = yaml.CSafeLoader(text)
    try:
        while loader.check_event():
            # The stubs allow for no event and no marks, which libyaml never gives.
            event: Any = loader.get_event()
            kind = _KINDS.get(type(event))
            if kind:
                first = event.start_mark
                scalar = kind == "scalar"
                value, plain = (tidy(event.value), not event.style) if scalar else ("", False)
                yield _Event(kind, first.index, event.end_mark.index, first.line + 1, value, plain)
    except yaml.YAMLError as error:
        raise _invalid(text, error) from error
    finally:
        loader.dispose()


def _invalid(text: str, error: yaml.YAMLError) -> InvalidDocument:
    found = _UNPRINTABLE.search(text)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        where = f" at line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
        what = error.problem or str(error)
    else:
        where = f" at line {line_number(text, found.start())}" if found else ""
        what = f"the character U+{ord(found.group()):04X} isn't allowed" if found else str(error)
    return InvalidDocument(f"invalid YAML{where}: {clean(what)}; correct the file, or send it as text/plain")


@dataclass(slots=True)
class _Open:
    """A collection that is being read; in a mapping `key` is set while its value is awaited."""

    mapping: bool
    keys: set[tuple[str, bool]] = field(default_factory=set)
    key: str | None = None
    key_start: int = 0


class YamlTree:
    """YAML documents as steps. Aliases stay what they are, so nothing grows."""

    def __init__(self, text: str, *, nested: bool = False) -> None:
        self._text = text
        self._nested = nested
        self._events = _events(text)
        self._stack: list[_Open] = []
        # The scalars below the root, or with `nested` all of them by their dotted paths.
        self.scalars = Collector()

    def steps(self) -> Iterator[Step]:
        """The trees in document order.

        Raises:
            InvalidDocument: The text is no YAML, a key comes twice in a mapping, or it is nested too deeply.
        """
        for event in self._events:
            parent = self._stack[-1] if self._stack else None
            if event.kind == "end":
                self._stack.pop()
                self._value_done()
                yield Step("end", event.start, event.end)
            elif parent and parent.mapping and parent.key is None:
                self._take_key(parent, event)
            else:
                yield self._value(parent, event)

    def _value(self, parent: _Open | None, event: _Event) -> Step:
        key, start = (parent.key or "", parent.key_start) if parent and parent.mapping else ("", event.start)
        if event.kind in {"map", "list"}:
            if len(self._stack) >= MAX_DEPTH:
                raise too_deep(event.line)
            self._stack.append(_Open(event.kind == "map"))
            return Step(event.kind, start, 0, key)
        if event.kind == "scalar":
            self._collect(key, event.value)
        self._value_done()
        return Step("leaf", start, max(event.end, start), key)

    def _value_done(self) -> None:
        if self._stack:
            self._stack[-1].key = None

    def _collect(self, key: str, value: str) -> None:
        if len(self._stack) > 1 and not (self._nested or self._lists_documents()):
            return
        names = [frame.key or "" for frame in self._stack[:-1]]
        # A list of mappings has no one value for a name.
        if self._stack and all(names):
            self.scalars.add(".".join([*names, key] if key else names), value)

    def _lists_documents(self) -> bool:
        """Whether the scalar at hand is one of the documents that a key of the root names."""
        return len(self._stack) == 2 and not self._stack[1].mapping and relational(self._stack[0].key or "")

    def _take_key(self, parent: _Open, event: _Event) -> None:
        end = event.end
        if event.kind == "scalar":
            self._check_new(parent, event)
        else:
            end = self._end_of_key(event)
        parent.key, parent.key_start = event.value or clip(self._text[event.start : end]) or "?", event.start

    def _check_new(self, parent: _Open, event: _Event) -> None:
        known = (event.value, event.plain)
        if known in parent.keys and event.value != "<<":
            raise InvalidDocument(
                f"the key {clip(event.value)!r} comes twice in one mapping, the second time at line {event.line}; "
                "remove or rename one"
            )
        parent.keys.add(known)

    def _end_of_key(self, event: _Event) -> int:
        """End of a key that is an alias or a whole collection."""
        depth, inner = 0, event
        while True:
            depth += (inner.kind in {"map", "list"}) - (inner.kind == "end")
            if depth > MAX_DEPTH:
                raise too_deep(inner.line)
            if not depth:
                return inner.end
            inner = next(self._events)


def read_yaml(content: MappedText) -> Reading:
    """Read YAML documents.

    Args:
        content: The decoded text, not blank.

    Raises:
        InvalidDocument: The text is no YAML, has a duplicate key, is too deep, or has too many records.
    """
    tree = YamlTree(content.text)
    blocks = _tiled(content.text, split(tree.steps()))
    return Reading(content, blocks, metadata=tree.scalars.pairs(), form="structured")


def yaml_mapping(text: str) -> tuple[tuple[Block, ...], Pairs] | None:
    """Records and scalars, by their dotted paths, of a text that is one YAML mapping; None when it is something else.

    Raises:
        InvalidDocument: As for `read_yaml`.
    """
    tree = YamlTree(text, nested=True)
    steps = tree.steps()
    first = next(steps, None)
    if first is None or first.kind != "map":
        return None
    return _tiled(text, split(chain((first,), steps))), tree.scalars.pairs()


def _tiled(text: str, records: tuple[Block, ...]) -> tuple[Block, ...]:
    """Let each record start where the last ended, so that comments, dashes and the keys above belong to one."""
    blocks: list[Block] = []
    position = 0
    for record in records:
        gap = text[position : record.text_start]
        start = position + len(gap) - len(gap.lstrip())
        end = record.text_start + len(text[record.text_start : record.text_end].rstrip())
        blocks.append(Block(record.kind, start, end, (), record.context))
        position = end
    return tuple(blocks)
