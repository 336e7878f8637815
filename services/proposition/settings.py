"""Settings of proposition."""

from __future__ import annotations

from services.kernel.settings import LayeredSettings


class PropositionSettings(LayeredSettings):
    """Proposition needs nothing beside the node's settings."""
