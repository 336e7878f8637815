"""The log position that a lane has applied, kept durably beside the lane's data."""

from __future__ import annotations

import json
import os
from pathlib import Path


class PositionFile:
    """One small file, replaced as a whole: after a crash it holds the old position or the new one.

    It is written after the data it speaks about is durable, so it may be behind the data, never ahead of it.
    """

    def __init__(self, path: Path, *, layout: str) -> None:
        self._path = path
        self._layout = layout

    def layout(self) -> str:
        """Read the layout that the file names, whichever it is; empty when there is no such file or none is named."""
        try:
            stored = json.loads(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            return ""
        return str(stored.get("layout", "")) if isinstance(stored, dict) else ""

    def read(self) -> int:
        """Read the position.

        Returns:
            The last position written; 0 when none was.

        Raises:
            ValueError: When the file isn't one of this lane layout.
        """
        try:
            stored = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return 0
        if (
            not isinstance(stored, dict)
            or stored.get("layout") != self._layout
            or type(stored.get("position")) is not int
        ):
            raise ValueError(f"{self._path} doesn't describe a lane of layout {self._layout}: {stored!r}")
        return int(stored["position"])

    def write(self, position: int) -> None:
        """Replace the position and sync it, file and folder.

        Args:
            position: KNOWLEDGE position.
        """
        content = json.dumps({"layout": self._layout, "position": position}).encode()
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        sync_folder(self._path.parent)


def sync_folder(folder: Path) -> None:
    """Make names created, renamed or removed in a folder durable.

    Args:
        folder: An existing folder.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
