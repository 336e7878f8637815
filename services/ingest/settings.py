"""Settings of ingest."""

from __future__ import annotations

from services.kernel.settings import LayeredSettings


class IngestSettings(LayeredSettings):
    """What only ingest needs; `AFFIDAVIT_` variables and the data folder's file, as for the node.

    Attributes:
        allow_loopback_providers: Whether a crate's provider may be on this machine.
        allow_private_providers: Whether a crate's provider may be in a private network.
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
    """

    allow_loopback_providers: bool = True
    allow_private_providers: bool = False
    packaged_model: str = "all-MiniLM-L6-v2-int8"
    packaged_dimension: int = 384
    puts_in_flight: int = 64
    crate_documents: int = 1_000_000
    crate_bytes: int = 256 * 1024**3
    crate_puts_in_flight: int = 256
    uploads_in_flight: int = 2
    thread_above_bytes: int = 4 * 1024
    process_above_bytes: int = 64 * 1024
    recycle_above_bytes: int = 4 * 1024 * 1024
