"""Settings of the index role."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from services.kernel.settings import LayeredSettings


class IndexSettings(LayeredSettings):
    """What the index needs beside the node's settings.

    Attributes:
        lanes_dir: Folder of both lanes; below the data folder by default.
        index_batch_records: Chunks that are written at once, unless one document has more: bounds memory.
        index_spacing_s: Longest rest between two small writes to the lanes while events keep coming, seconds.
    """

    lanes_dir: Path | None = None
    index_batch_records: int = Field(default=2_000, ge=1, le=100_000)
    index_spacing_s: float = Field(default=0.5, ge=0, le=60)

    @property
    def lanes(self) -> Path:
        """Folder of both lanes."""
        return self.lanes_dir or self.data_dir / "lanes"
