"""Figures of the embedder, without content."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from services.kernel.telemetry import REGISTRY

batch_seconds = Histogram(
    "affidavit_embedder_batch_seconds", "Time of one call of the model", ["model", "purpose"], registry=REGISTRY
)
batch_texts = Histogram(
    "affidavit_embedder_batch_texts",
    "Texts in one call of the model",
    ["model"],
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
    registry=REGISTRY,
)
waiting_texts = Gauge("affidavit_embedder_waiting_texts", "Texts that wait for the model", ["model"], registry=REGISTRY)
texts = Counter(
    "affidavit_embedder_texts_total", "Texts of documents by how their vectors came", ["how"], registry=REGISTRY
)
