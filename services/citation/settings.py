"""Settings of citation."""

from __future__ import annotations

from services.kernel.settings import LayeredSettings


class CitationSettings(LayeredSettings):
    """Citation needs nothing beside the node's settings."""
