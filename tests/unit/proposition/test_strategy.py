"""Which strategy a crate has, and what it asks of the service."""

from __future__ import annotations

import pytest
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2

from services.proposition import codec
from services.proposition.domain import Strategy, needs_evaluation


def configured(strategy: settings_pb2.RetrievalStrategy.ValueType) -> ingest_pb.CrateConfigured:
    return ingest_pb.CrateConfigured(settings=settings_pb2.CrateSettings(retrieval_strategy=strategy))


@pytest.mark.parametrize(
    "message",
    [
        None,
        ingest_pb.DocumentIngested(),
        ingest_pb.CrateConfigured(),
        configured(settings_pb2.RETRIEVAL_STRATEGY_STANDARD),
    ],
)
def test_the_strategy_is_standard_unless_the_crate_says_otherwise(message: ingest_pb.CrateConfigured | None) -> None:
    assert codec.strategy(message) is Strategy.STANDARD


def test_a_crate_can_ask_for_propositions() -> None:
    assert codec.strategy(configured(settings_pb2.RETRIEVAL_STRATEGY_PROPOSITION)) is Strategy.PROPOSITION


def test_only_propositions_need_evaluation() -> None:
    assert [strategy for strategy in Strategy if needs_evaluation(strategy)] == [Strategy.PROPOSITION]
