"""Figures of proposition, without content."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

from services.kernel.telemetry import REGISTRY

call_seconds = Histogram(
    "affidavit_proposition_call_seconds",
    "Time of one call of the answer provider, attempts included",
    ["call"],
    buckets=(0.1, 0.3, 1, 3, 10, 30, 100),
    registry=REGISTRY,
)
chunks = Counter(
    "affidavit_proposition_chunks_total",
    "Chunks by what became of their evaluation: reused, evaluated, or the problem",
    ["how"],
    registry=REGISTRY,
)
