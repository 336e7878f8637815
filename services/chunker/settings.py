"""Settings of the chunker."""

from __future__ import annotations

from pydantic import Field

from services.kernel.settings import LayeredSettings


class ChunkerSettings(LayeredSettings):
    """What only the chunker needs; `AFFIDAVIT_` variables and the data folder's file, as for the node.

    Attributes:
        chunker_concurrency: Documents in work at once.
        chunker_thread_above_bytes: Smaller texts are cut in the event loop.
        chunker_process_above_bytes: Larger texts are cut in a process of their own, one at a time.
    """

    chunker_concurrency: int = Field(default=8, ge=1, le=256)
    chunker_thread_above_bytes: int = Field(default=32 * 1024, ge=0)
    chunker_process_above_bytes: int = Field(default=2 * 1024 * 1024, ge=0)
