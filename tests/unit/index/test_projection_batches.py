"""Batches of the projection are cut by the content that they bring."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from affidavit.embedder.v1 import embedder_events_pb2 as embedder_pb

from services.index.handlers import batches
from services.kernel.envelope import Event


@pytest.mark.parametrize(
    ("counts", "most", "expected"),
    [
        ([], 5, []),
        ([0, 0, 0], 1, [[0, 0, 0]]),
        ([2, 2, 2], 4, [[2, 2], [2]]),
        ([9, 1], 4, [[9], [1]]),
        ([1, 9, 0, 1], 4, [[1], [9], [0, 1]]),
    ],
)
def test_batches_are_cut_so_that_their_content_fits(counts: list[int], most: int, expected: list[list[int]]) -> None:
    events = [
        Event(
            key=str(position),
            crate="main",
            service="embedder",
            aggregate="a" * 32,
            name="RecordsEmbedded",
            stream="KNOWLEDGE",
            position=position,
            time=datetime(2024, 5, 1, tzinfo=UTC),
            message=embedder_pb.RecordsEmbedded(record_count=count),
        )
        for position, count in enumerate(counts, start=1)
    ]
    parts = list(batches(events, most))
    assert [[counts[event.position - 1] for event in part] for part in parts] == expected
