"""Random bytes from the operating system."""

from __future__ import annotations

import os


class OsEntropy:
    """os.urandom."""

    def draw(self, size_bytes: int) -> bytes:
        """See Entropy."""
        return os.urandom(size_bytes)
