"""What tests wait for before they go on."""

from __future__ import annotations

import asyncio

from services.kernel.runner import Node

PUBLISHERS = "ingest/publishers' subject"
_PATIENCE_S = 10.0


async def heard(node: Node) -> None:
    """Wait until a node that runs ingest says that publishers are heard."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            if PUBLISHERS not in await node.problems():
                return
            await asyncio.sleep(0.01)
