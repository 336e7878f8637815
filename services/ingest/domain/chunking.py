"""Chunk settings of a job: defaults, merging, clamping, and the digest that stands for them in keys."""

from __future__ import annotations

from dataclasses import dataclass

from blake3 import blake3

from services.ingest.domain.refusals import Refused

MIN_SIZE_CHARS = 50
MAX_SIZE_CHARS = 100_000
DIGEST_HEX = 16


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How a document is cut.

    Attributes:
        size_chars: Longest chunk, Unicode code points.
        overlap_chars: Code points that a chunk shares with the one before, at most half of the size.
    """

    size_chars: int = 1_000
    overlap_chars: int = 200


@dataclass(frozen=True, slots=True)
class ChunkPatch:
    """Wanted changes; None leaves a setting as it is."""

    size_chars: int | None = None
    overlap_chars: int | None = None


def configure(current: ChunkSettings, patch: ChunkPatch) -> tuple[ChunkSettings, tuple[str, ...]]:
    """Apply a patch and clamp the overlap.

    Args:
        current: Settings before.
        patch: Wanted changes.

    Returns:
        Settings after, and a notice for each value that was clamped.

    Raises:
        Refused: When the size is out of range.
    """
    size = current.size_chars if patch.size_chars is None else patch.size_chars
    overlap = current.overlap_chars if patch.overlap_chars is None else patch.overlap_chars
    if not MIN_SIZE_CHARS <= size <= MAX_SIZE_CHARS:
        raise Refused(
            f"chunk_size {size} is out of range: choose {MIN_SIZE_CHARS} to {MAX_SIZE_CHARS} characters "
            "(default 1000); nothing was changed"
        )
    half = size // 2
    if overlap < 0:
        notice = f"chunk_overlap {overlap} was raised to 0: it can't be negative, whatever chunk_size {size} is"
        return ChunkSettings(size, 0), (notice,)
    if overlap > half:
        notice = f"chunk_overlap {overlap} was lowered to {half}: it can't exceed half of chunk_size {size}"
        return ChunkSettings(size, half), (notice,)
    return ChunkSettings(size, overlap), ()


def limited(settings: ChunkSettings, max_input_chars: int) -> ChunkSettings:
    """Lower the size to what the embedding provider takes, keeping the overlap where it still fits.

    Args:
        settings: Settings of the job.
        max_input_chars: Most code points of one input; 0 for no limit.

    Returns:
        The settings that shape the chunks.
    """
    if not max_input_chars or max_input_chars >= settings.size_chars:
        return settings
    return ChunkSettings(max_input_chars, min(settings.overlap_chars, max_input_chars // 2))


def settings_digest(settings: ChunkSettings, *, after: int) -> str:
    """Stand-in for the settings in events and idempotency keys.

    Settings can return to what they were: 1000, then 500, then 1000 are three facts of one revision. The second half
    tells them apart, so that no dedup window takes the third for a repetition of the first.

    Args:
        settings: Settings that shape the chunks.
        after: Position of the fact of the same revision that this one replaces, 0 for the first.

    Returns:
        32 hex digits: 16 of the settings, 16 of the position.
    """
    shape = blake3(f"{settings.size_chars}/{settings.overlap_chars}".encode()).hexdigest(length=DIGEST_HEX // 2)
    return f"{shape}{after:0{DIGEST_HEX}x}"
