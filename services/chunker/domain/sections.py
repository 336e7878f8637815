"""Sections: what lies under one heading. A chunk never reaches over the end of its section."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from services.chunker.domain.document import KEPT_WHOLE, Block, BlockKind, NormalizedText


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of the text, by rising start, none overlapping the next.

    Attributes:
        starts: First code points.
        ends: Code points after the last.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def around(self, at: int) -> tuple[int, int] | None:
        """The stretch that a cut at this position would go through.

        Args:
            at: Code point offset.

        Returns:
            Its start and end, or None when no stretch has the position strictly inside.
        """
        index = bisect_right(self.starts, at) - 1
        if index < 0 or not self.starts[index] < at < self.ends[index]:
            return None
        return self.starts[index], self.ends[index]


@dataclass(frozen=True, slots=True)
class Section:
    """Text under one heading, the heading's own line included.

    Attributes:
        start: First code point.
        end: Code point after the last.
        heading_path: Titles of the headings above, outermost first.
        whole: Stretches that fit into one chunk and stay whole.
        oversized: Stretches that would stay whole if they fitted; they are cut between lines.
        contexts: Start, end and context of each block that has one.
    """

    start: int
    end: int
    heading_path: tuple[str, ...]
    whole: Spans
    oversized: Spans
    contexts: tuple[tuple[int, int, str], ...]


class _Group:
    """Blocks gathered for one section."""

    def __init__(self, start: int, *blocks: Block) -> None:
        self.start = start
        self.heading_path = blocks[-1].heading_path if blocks else ()
        self.blocks = list(blocks)

    def add(self, block: Block) -> None:
        self.heading_path = block.heading_path
        self.blocks.append(block)

    def has_only_headings(self) -> bool:
        return all(block.kind is BlockKind.HEADING for block in self.blocks)

    def takes(self, block: Block) -> bool:
        deeper = (
            len(block.heading_path) > len(self.heading_path)
            and block.heading_path[: len(self.heading_path)] == self.heading_path
        )
        if block.kind is BlockKind.HEADING:
            # A heading with nothing of its own goes with the first section below it, never alone.
            return deeper and self.has_only_headings()
        return block.heading_path == self.heading_path or self.has_only_headings()


def sections(document: NormalizedText, size_chars: int) -> Iterator[Section]:
    """Divide a document at its headings.

    Args:
        document: The document.
        size_chars: Longest chunk, code points; decides what stays whole.

    Yields:
        Sections in order; together they cover the text.
    """
    groups: list[_Group] = []
    for block in document.blocks:
        if groups and groups[-1].takes(block):
            groups[-1].add(block)
        else:
            groups.append(_Group(block.start if groups else 0, block))
    groups = groups or [_Group(0)]
    ends = [group.start for group in groups[1:]] + [len(document.text)]
    for group, end in zip(groups, ends, strict=True):
        yield _section(group, end, size_chars)


def _section(group: _Group, end: int, size_chars: int) -> Section:
    whole: list[tuple[int, int]] = []
    oversized: list[tuple[int, int]] = []
    lead = group.blocks[0].start if group.blocks else end
    only_headings = True
    for block in group.blocks:
        if block.kind not in KEPT_WHOLE:
            only_headings = only_headings and block.kind is BlockKind.HEADING
            continue
        # The heading line must not stay behind alone when the cut moves before the block that follows it.
        start = lead if only_headings else block.start
        only_headings = False
        kin = whole if block.end - start <= size_chars else oversized
        inside_another = kin and start < kin[-1][1]
        if not inside_another:
            kin.append((start, block.end))
    return Section(
        start=group.start,
        end=end,
        heading_path=group.heading_path,
        whole=_spans(whole),
        oversized=_spans(oversized),
        contexts=tuple((block.start, block.end, block.context) for block in group.blocks if block.context),
    )


def _spans(pairs: list[tuple[int, int]]) -> Spans:
    return Spans(tuple(start for start, _ in pairs), tuple(end for _, end in pairs))
