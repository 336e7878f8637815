"""`make bench`: ingest and search of a whole node, with the real model and with a constant vector in its place."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.audit.client import Auditor
from tests.audit.corpus import Corpus, CorpusDocument, load
from tests.audit.node import started
from tests.bench import memory

_MODEL = "AFFIDAVIT_EMBEDDER_MODEL"
_CONSTANT = "constant-384"
_SHORT_DOCUMENTS = 3000


@dataclass(frozen=True, slots=True)
class Ingested:
    """One ingest run.

    Attributes:
        seconds: From the first put until everything can be searched.
        peak_bytes: Memory of all processes.
    """

    documents: int
    chunks: int
    seconds: float
    peak_bytes: int

    def row(self, label: str) -> str:
        """A line of the table."""
        return (
            f"{label:<34} {self.documents:>6} documents {self.chunks:>7} chunks {self.seconds:8.1f} s "
            f"{self.documents / self.seconds:8.1f} documents/s {self.chunks / self.seconds:8.1f} chunks/s "
            f"{self.peak_bytes / 1024**2:7.0f} MiB"
        )


def main() -> int:
    """Run the benchmarks that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", choices=("short", "constant", "model"), help="one of the runs")
    only = parser.parse_args().only
    corpus = load("peps")
    constant = None
    if only in (None, "short"):
        _print(_ingest(_short(), _CONSTANT)[0].row("one-chunk documents, constant"))
    if only in (None, "constant"):
        constant, _ = _ingest(corpus, _CONSTANT)
        _print(constant.row("peps, constant vector"))
    if only in (None, "model"):
        real, latencies = _ingest(corpus, "")
        _print(real.row("peps, MiniLM"))
        if constant:
            _print(f"share of time in the model: {1 - constant.seconds / real.seconds:.0%}")
        _print(f"search with query embedding: p50 {_p(latencies, 50):.1f} ms, p95 {_p(latencies, 95):.1f} ms")
    return 0


def _ingest(corpus: Corpus, model: str) -> tuple[Ingested, Sequence[float]]:
    environment = dict(os.environ) | ({_MODEL: model} if model else {})
    with started(environment=environment) as (address, pid), memory.watched(pid) as peak:
        auditor = Auditor(address=address, crate="bench")
        _, seconds = auditor.put(corpus)
        latencies = [_timed(auditor, query.text) for query in corpus.queries * 4]
        result = Ingested(len(corpus.documents), auditor.chunks(), seconds, peak.size_bytes)
    return result, latencies


def _timed(auditor: Auditor, text: str) -> float:
    begun = time.perf_counter()
    auditor.search(text, mode="hybrid", kind="chunk")
    return (time.perf_counter() - begun) * 1000


def _short() -> Corpus:
    documents = tuple(
        CorpusDocument(f"note-{number}", "text/plain", "", f"Note {number}: berth {number * 7 % 911} is free.".encode())
        for number in range(_SHORT_DOCUMENTS)
    )
    return Corpus("short", documents, ())


def _p(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
