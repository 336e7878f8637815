"""Chunking: the sizes that hold, and the chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from services.chunker.domain.cuts import SectionCutter
from services.chunker.domain.document import Chunk, NormalizedText
from services.chunker.domain.sections import Section, sections
from services.chunker.domain.spans import Locator, original_span

DEFAULT_SIZE_CHARS = 1_000
DEFAULT_OVERLAP_CHARS = 200
MIN_SIZE_CHARS = 50
MAX_SIZE_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes that a document is cut with.

    Attributes:
        size_chars: Longest chunk, code points.
        overlap_chars: Code points that a chunk shares with the one before, at most half of the size.
        notices: What was changed and why, in words.
    """

    size_chars: int
    overlap_chars: int
    notices: tuple[str, ...] = ()


def effective_sizes(size_chars: int | None, overlap_chars: int | None, *, max_input_chars: int = 0) -> Sizes:
    """Bring wanted sizes into their ranges.

    Args:
        size_chars: Wanted size, None for the default.
        overlap_chars: Wanted overlap, None for the default.
        max_input_chars: Most code points that the embedding provider takes, 0 for no limit.

    Returns:
        The sizes that hold, with a notice for each value that was lowered.

    Raises:
        ValueError: When the size is out of range.
    """
    size = DEFAULT_SIZE_CHARS if size_chars is None else size_chars
    overlap = DEFAULT_OVERLAP_CHARS if overlap_chars is None else overlap_chars
    if not MIN_SIZE_CHARS <= size <= MAX_SIZE_CHARS:
        raise ValueError(f"chunk_size {size} is out of range: choose {MIN_SIZE_CHARS} to {MAX_SIZE_CHARS} characters")
    notices: list[str] = []
    if 0 < max_input_chars < size:
        notices.append(
            f"chunk_size {size} was lowered to {max_input_chars}: "
            f"the embedding provider takes at most {max_input_chars} characters"
        )
        size = max_input_chars
    if overlap > size // 2:
        notices.append(f"chunk_overlap {overlap} was lowered to {size // 2}: it can't exceed half of chunk_size {size}")
        overlap = size // 2
    return Sizes(size, overlap, tuple(notices))


def chunk(document: NormalizedText, *, size_chars: int, overlap_chars: int) -> tuple[Chunk, ...]:
    """Cut a document.

    Args:
        document: The document.
        size_chars: Longest chunk, code points, at least 1.
        overlap_chars: Code points shared with the chunk before, 0 to half of the size.

    Returns:
        Chunks in order. Joined without their overlaps they give the text back, white space between them aside as
        `SectionCutter.pieces` says. Empty when the text is empty or white space.

    Raises:
        ValueError: When a size is out of range or the charset is unknown.
    """
    if size_chars < 1 or not 0 <= overlap_chars <= size_chars // 2:
        raise ValueError(f"size {size_chars} with overlap {overlap_chars}: the overlap is at most half of the size")
    locator = Locator(document)
    chunks: list[Chunk] = []
    for section in sections(document, size_chars):
        cutter = SectionCutter(document.text, section, size_chars=size_chars, overlap_chars=overlap_chars)
        contexts = _Contexts(section)
        for piece in cutter.pieces():
            runs = locator.locate(piece.start, piece.end)
            chunks.append(
                Chunk(
                    len(chunks),
                    document.text[piece.start : piece.end],
                    section.heading_path,
                    contexts.of(piece.start, piece.end),
                    runs,
                    piece.fresh - piece.start,
                    *original_span(runs),
                )
            )
    return tuple(chunks)


class _Contexts:
    """Context of the first block in a piece that has one; ask for pieces in order."""

    def __init__(self, section: Section) -> None:
        self._rest: Iterator[tuple[int, int, str]] = iter(section.contexts)
        self._current = next(self._rest, None)

    def of(self, start: int, end: int) -> str:
        while self._current is not None and self._current[1] <= start:
            self._current = next(self._rest, None)
        return self._current[2] if self._current is not None and self._current[0] < end else ""
