"""Pages of a listing: it stays with the revision and the generation that it began with."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
_MAX_TOKEN_CHARS = 40


@dataclass(frozen=True, slots=True)
class PageStart:
    """Where a page begins.

    Attributes:
        revision: 0 for the newest one that was evaluated.
        generation: 0 for the newest one.
        ordinal: First chunk.
    """

    revision: int
    generation: int
    ordinal: int

    @property
    def token(self) -> str:
        """As callers hold it."""
        return f"{self.revision}.{self.generation}.{self.ordinal}"


def parse_token(token: str) -> PageStart:
    """Read a page token.

    Args:
        token: From `PageStart.token`.

    Returns:
        Where the page begins.

    Raises:
        ValueError: When it isn't one.
    """
    parts = token.split(".")
    if len(token) > _MAX_TOKEN_CHARS or len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError("not a page token")
    start = PageStart(*(int(part) for part in parts))
    if not start.revision or not start.generation:
        raise ValueError("not a page token")
    return start
