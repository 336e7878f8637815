"""Settings of citation."""

from __future__ import annotations

from pydantic import Field

from services.kernel.settings import LayeredSettings


class CitationSettings(LayeredSettings):
    """What only citation needs; `AFFIDAVIT_` variables and the data folder's file, as for the node.

    Attributes:
        citation_max_chars: Longest text that is repaired, code points.
    """

    citation_max_chars: int = Field(default=200_000, ge=1)
