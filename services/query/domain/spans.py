"""From a place in a chunk's text back to the exact place in the original bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from services.query.domain.values import Run

_STATEFUL = ("iso-2022", "iso2022", "hz", "utf-7", "utf7")
# Codecs that write a byte order mark: it stands once in a file, not before every piece.
_WITHOUT_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the original; offsets from 0, ends exclusive.

    Attributes:
        char_start: Code points.
        char_end: Code points.
        byte_start: Bytes.
        byte_end: Bytes.
        verbatim: True when the chunk's text at the place equals the decoded original.
    """

    char_start: int
    char_end: int
    byte_start: int
    byte_end: int
    verbatim: bool


def locate(text: str, runs: Sequence[Run], start: int, end: int, *, charset: str) -> Span | None:
    """Find where a piece of a chunk's text lies in the original.

    A verbatim run maps code point by code point; of a run that was rewritten only the whole is known, so a piece
    of it is widened to the run's borders in the original and the span is not verbatim.

    Args:
        text: The chunk's text.
        runs: Its runs, ordered by text_start.
        start: Code points into text.
        end: Same, exclusive; greater than start.
        charset: Codec of the original bytes.

    Returns:
        The span, or None where no run holds any of the piece.
    """
    touched = [run for run in runs if run.text_start < end and run.text_end > start]
    if not touched:
        return None
    first, last = touched[0], touched[-1]
    skipped = text[first.text_start : start] if first.verbatim and start > first.text_start else ""
    kept = text[last.text_start : end] if last.verbatim and end < last.text_end else ""
    skipped_bytes, kept_bytes = encode_piece(skipped, charset), encode_piece(kept, charset)
    if skipped_bytes is None or kept_bytes is None:
        return Span(first.char_start, last.char_end, first.byte_start, last.byte_end, verbatim=False)
    char_end = last.char_start + len(kept) if kept else last.char_end
    byte_end = last.byte_start + len(kept_bytes) if kept else last.byte_end
    verbatim = (
        all(run.verbatim for run in touched)
        and first.text_start <= start
        and last.text_end >= end
        and all(_touch(left, right) for left, right in pairwise(touched))
    )
    return Span(first.char_start + len(skipped), char_end, first.byte_start + len(skipped_bytes), byte_end, verbatim)


def _touch(left: Run, right: Run) -> bool:
    """Two runs follow each other in the text and in the original alike."""
    return left.text_end == right.text_start and left.byte_end == right.byte_start and left.char_end == right.char_start


def encode_piece(piece: str, charset: str) -> bytes | None:
    """Encode a piece from the middle of a file.

    Args:
        piece: Text.
        charset: Codec name.

    Returns:
        Its bytes, or None where they can't be known: the codec is unknown, lacks a character, or keeps a state across
        characters (ISO-2022, HZ, UTF-7), so that a piece's bytes depend on what stands before it.
    """
    plain = charset.lower().replace("_", "-")
    if plain.startswith(_STATEFUL):
        return None
    try:
        return piece.encode(_WITHOUT_MARK.get(plain, charset))
    except (LookupError, UnicodeEncodeError):
        return None
