"""Cutting a tree of values into records: the largest values that are still small, each with the path to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from services.ingest.domain.normalize.model import Block, BlockKind, InvalidDocument

RECORD_CHARS = 1_000
MAX_DEPTH = 100
# Each record costs memory far above its own size.
MAX_RECORDS = 2_000_000
_KEY_CHARS = 80


class Step(NamedTuple):
    """One step through a tree.

    `start` is where the value, or the key before it, starts. "map" and "list" open a container and "end" closes it;
    "small_map" and "small_list" are whole containers that are known to be small; "leaf" is a scalar.
    """

    kind: Literal["map", "list", "end", "leaf", "small_map", "small_list"]
    start: int
    end: int = 0
    key: str = ""


@dataclass(slots=True)
class _Frame:
    kind: str
    start: int
    path: tuple[str, ...]
    key: str
    members: int = 0
    has_maps: bool = False
    # A frame that is too large to be one record; what it holds becomes records.
    open: bool = False
    pending: list[tuple[int, int, str, bool]] = field(default_factory=list)


def too_deep(line: int) -> InvalidDocument:
    """The refusal of values nested deeper than `MAX_DEPTH`."""
    return InvalidDocument(
        f"values are nested deeper than {MAX_DEPTH} levels at line {line}; flatten the document, or send it as text/plain"
    )


def too_many(count: int = MAX_RECORDS) -> InvalidDocument:
    """The refusal of a document with more than `MAX_RECORDS` records."""
    return InvalidDocument(f"the document has more than {count} records; split it into several documents")


def split(steps: Iterable[Step], *, limit: int = RECORD_CHARS) -> tuple[Block, ...]:
    """Blocks of kind RECORD for a tree.

    A container of at most `limit` code points is one record; a larger one is opened, its scalars in groups of about that
    size and its containers by the same rule. The elements of a list at the root, and of a list of maps right below it,
    are always records of their own.

    Args:
        steps: The tree in document order.
        limit: Size of a record in code points.

    Returns:
        The records in order; the context of each is the path to it, list elements counted from 0.

    Raises:
        InvalidDocument: There are too many records.
    """
    splitter = _Splitter(limit)
    for step in steps:
        splitter.take(step)
    return tuple(splitter.blocks)


class _Splitter:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._frames: list[_Frame] = []
        self.blocks: list[Block] = []

    def take(self, step: Step) -> None:
        if step.kind in {"map", "list"}:
            self._enter(step)
        elif step.kind == "end":
            self._leave(step.end)
        else:
            if self._frames and step.kind == "small_map":
                self._frames[-1].has_maps = True
            self._member(step.start, step.end, step.key, container=step.kind != "leaf")

    def _label(self, key: str) -> str:
        parent = self._frames[-1]
        return key if parent.kind == "map" else str(parent.members)

    def _enter(self, step: Step) -> None:
        if not self._frames:
            self._frames.append(_Frame(step.kind, step.start, (), ""))
            return
        label = self._label(step.key)
        parent = self._frames[-1]
        parent.has_maps |= step.kind == "map"
        self._frames.append(_Frame(step.kind, step.start, (*parent.path, clip(label)), step.key))

    def _leave(self, end: int) -> None:
        frame = self._frames[-1]
        depth = len(self._frames) - 1
        if frame.kind == "list" and (depth == 0 or (depth == 1 and frame.has_maps)):
            self._open_all()
        if frame.open:
            self._settle(frame)
        self._frames.pop()
        if frame.open:
            for parent in self._frames[-1:]:
                parent.members += 1
        elif self._frames or frame.members:
            self._member(frame.start, end, frame.key, container=True)

    def _member(self, start: int, end: int, key: str, *, container: bool) -> None:
        if not self._frames:
            self._emit(start, end, ())
            return
        frame = self._frames[-1]
        label = self._label(key)
        frame.members += 1
        if not frame.open and end - frame.start > self._limit:
            self._open_all()
        if frame.open and container:
            self._settle(frame)
            self._emit(start, end, (*frame.path, clip(label)))
            return
        if frame.open and frame.pending and end - frame.pending[0][0] > self._limit:
            self._settle(frame)
        frame.pending.append((start, end, label, container))

    def _open_all(self) -> None:
        """The innermost frame is too large for one record, and so are those around it."""
        for frame in self._frames:
            frame.open = True
            self._settle(frame)

    def _settle(self, frame: _Frame) -> None:
        """Turn what waits in an open frame into records: scalars in groups, containers one by one."""
        group: tuple[int, int] | None = None
        for start, end, label, container in frame.pending:
            if container or (group and end - group[0] > self._limit):
                self._emit_group(group, frame.path)
                group = None
            if container:
                self._emit(start, end, (*frame.path, clip(label)))
            else:
                group = (group[0] if group else start, end)
        self._emit_group(group, frame.path)
        frame.pending.clear()

    def _emit_group(self, group: tuple[int, int] | None, path: tuple[str, ...]) -> None:
        if group:
            self._emit(*group, path)

    def _emit(self, start: int, end: int, path: tuple[str, ...]) -> None:
        if len(self.blocks) >= MAX_RECORDS:
            raise too_many()
        self.blocks.append(Block(BlockKind.RECORD, start, end, (), " > ".join(path)))


def clip(key: str) -> str:
    """A key for people: white space collapsed, and short."""
    words = " ".join(key.split())
    return words if len(words) <= _KEY_CHARS else words[: _KEY_CHARS - 1] + "\u2026"
