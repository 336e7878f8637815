"""Protobuf <-> domain."""

from __future__ import annotations

from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2
from google.protobuf.message import Message

from services.proposition.domain import Strategy


def strategy(configured: Message | None) -> Strategy:
    """Retrieval strategy of a crate.

    Args:
        configured: The crate's last CrateConfigured, None when there is none.

    Returns:
        Standard unless the crate says otherwise.
    """
    if not isinstance(configured, ingest_pb.CrateConfigured):
        return Strategy.STANDARD
    chosen = configured.settings.retrieval_strategy
    return Strategy.PROPOSITION if chosen == settings_pb2.RETRIEVAL_STRATEGY_PROPOSITION else Strategy.STANDARD
