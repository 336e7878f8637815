"""Settings of ingest."""

from __future__ import annotations

from pydantic import Field

from services.kernel.settings import ProviderSettings


class IngestSettings(ProviderSettings):
    """What only ingest needs; `AFFIDAVIT_` variables and the data folder's file, as for the node.

    Attributes:
        packaged_model: Name of the embedding model that comes with the server.
        packaged_dimension: Length of its vectors.
        puts_in_flight: Puts in work at once.
        crate_documents: Most documents of a crate that are not erased; 0 for no bound.
        crate_bytes: Most bytes of a crate's originals and their text, all revisions; 0 for no bound.
        crate_puts_in_flight: Most puts of a crate accepted at once, those that wait included; 0 for no bound.
        uploads_in_flight: Uploads in work at once, each of which holds its body in memory.
        thread_above_bytes: Smaller bodies are read in the event loop.
        process_above_bytes: Larger bodies are read in a process of their own, one by one.
        recycle_above_bytes: After a larger body that process is replaced, so that its memory is freed.
        clock_interval_s: Seconds between two ClockAdvanced of a crate whose profile knows states.
    """

    packaged_model: str = "all-MiniLM-L6-v2-int8"
    packaged_dimension: int = Field(default=384, ge=1)
    puts_in_flight: int = Field(default=64, ge=1)
    crate_documents: int = Field(default=1_000_000, ge=0)
    crate_bytes: int = Field(default=256 * 1024**3, ge=0)
    crate_puts_in_flight: int = Field(default=256, ge=0)
    uploads_in_flight: int = Field(default=2, ge=1)
    thread_above_bytes: int = Field(default=4 * 1024, ge=0)
    process_above_bytes: int = Field(default=64 * 1024, ge=0)
    recycle_above_bytes: int = Field(default=4 * 1024 * 1024, ge=0)
    clock_interval_s: float = Field(default=3600.0, ge=0.1, le=86_400.0)
