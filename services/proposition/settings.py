"""Settings of proposition."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from services.kernel.settings import ProviderSettings


class PropositionSettings(ProviderSettings):
    """What only proposition needs; `AFFIDAVIT_` variables and the data folder's file, as for the node.

    Attributes:
        proposition_concurrency: Documents in work at once; they share the calls that their crate's provider allows.
        proposition_script: File whose answers stand in for those of every answer provider, so that nothing is sent; see
            the README. For tests and demonstrations only.
    """

    proposition_concurrency: int = Field(default=8, ge=1, le=256)
    proposition_script: Path | None = None
