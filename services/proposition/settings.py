"""Settings of proposition."""

from __future__ import annotations

from pydantic import Field

from services.kernel.settings import LayeredSettings


class PropositionSettings(LayeredSettings):
    """What only proposition needs; `AFFIDAVIT_` variables and the data folder's file, as for the node.

    Attributes:
        proposition_concurrency: Documents in work at once.
    """

    proposition_concurrency: int = Field(default=8, ge=1, le=256)
