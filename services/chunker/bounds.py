"""The bound that a crate's embedding provider sets on the size of a chunk."""

from __future__ import annotations

from services.chunker import codec
from services.chunker.ports import Log


async def embedding_bound(log: Log, crate_id: str) -> int:
    """Most code points that the crate's embedding provider takes.

    Args:
        log: Its last configuration is the one that holds.
        crate_id: Crate.

    Returns:
        Code points, 0 for no bound.
    """
    configured = await log.recent(crate=crate_id, service="ingest", aggregate="crate")
    return codec.max_input_chars(configured.message if configured else None)
