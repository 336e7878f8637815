"""Searches at a moment beside plain ones, over a node: `python -m tests.bench.bench_moments --documents 25000`."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from affidavit.index.v1 import living_pb2

from tests.audit.client import Auditor
from tests.audit.corpus import Corpus, CorpusDocument
from tests.audit.feed import Statement
from tests.audit.node import started

_ENVIRONMENT = {"AFFIDAVIT_EMBEDDER_MODEL": "constant-384"}
_DAY_0 = datetime(2020, 1, 1, tzinfo=UTC)
_MEMBERS = 5
_PLACES = ("berth", "gate", "depot", "office", "hall", "pier", "store", "canteen", "garage", "yard")
_RULES = ("opens", "closes", "is locked", "is cleaned", "is inspected", "is free", "is reserved", "is heated")
_PLAIN = "plain (in force now)"
Search = Callable[[str], object]


def main() -> int:
    """Put series of versions and relations into a node, then time searches of each kind in turns."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_moments", description=__doc__)
    parser.add_argument("--documents", type=int, default=25_000)
    parser.add_argument("--edges", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--data-dir", type=Path, help="kept, and used as it is when it holds a node already")
    chosen = parser.parse_args()
    filled = chosen.data_dir is not None and (chosen.data_dir / "nats").exists()
    chance = random.Random(7)
    with started(environment=dict(os.environ) | _ENVIRONMENT, data_dir=chosen.data_dir) as (address, _):
        auditor = Auditor(address=address, crate="bench")
        if not filled:
            _fill(auditor, chosen.documents, chosen.edges)
        auditor.configure(profile="v3.1")
        queries = [
            f"{chance.choice(_PLACES)} {chance.randrange(9000)} {chance.choice(_RULES)}" for _ in range(chosen.queries)
        ]
        half = _DAY_0 + timedelta(minutes=chosen.documents // 2)
        _report(_timed(_kinds(auditor, half, auditor.position()), queries))
    return 0


def _fill(auditor: Auditor, documents: int, edges: int) -> None:
    corpus = Corpus("moments", tuple(_document(number) for number in range(documents)), ())
    known, seconds = auditor.put(corpus)
    sys.stdout.write(f"put      {documents:>7,} documents {seconds:8.1f} s\n")
    begun = time.perf_counter()
    newer = [number for number in range(documents) if number % _MEMBERS][:edges]
    auditor.declare([Statement(f"policy-{n}", "supersedes", f"policy-{n - 1}") for n in newer], known)
    sys.stdout.write(f"declared {len(newer):>7,} relations {time.perf_counter() - begun:8.1f} s\n")


def _document(number: int) -> CorpusDocument:
    place, rule = _PLACES[number % len(_PLACES)], _RULES[number % len(_RULES)]
    body = f"Policy {number // _MEMBERS}: {place} {number * 7 % 9000} {rule} at {number % 24}:00."
    return CorpusDocument(
        f"policy-{number}", "text/plain", "", body.encode(), effective_at=_DAY_0 + timedelta(minutes=number)
    )


def _kinds(auditor: Auditor, half: datetime, position: int) -> Mapping[str, Search]:
    def search(
        reach: living_pb2.Reach.ValueType = living_pb2.REACH_UNSPECIFIED, as_of: datetime | None = None, at: int = 0
    ) -> Search:
        return lambda text: auditor.search(text, mode="hybrid", kind="chunk", reach=reach, as_of=as_of, at=at)

    return {
        _PLAIN: search(),
        "current revisions, no states": search(reach=living_pb2.REACH_CURRENT),
        "as_of, half of them in force": search(as_of=half),
        "at, the last position": search(at=position),
        "at, 2,000 facts ago": search(at=position - 2_000),
        "at, half of the log ago": search(at=position // 2),
        "as_of and at": search(as_of=half, at=position // 2),
    }


def _timed(kinds: Mapping[str, Search], queries: Sequence[str]) -> Mapping[str, Sequence[float]]:
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for text in queries[:3]:
        for search in kinds.values():
            search(text)
    for text in queries:
        for name, search in kinds.items():
            begun = time.perf_counter()
            search(text)
            found[name].append((time.perf_counter() - begun) * 1000)
    return found


def _report(found: Mapping[str, Sequence[float]]) -> None:
    plain = statistics.median(found[_PLAIN])
    for name, times in found.items():
        middle = statistics.median(times)
        last = statistics.quantiles(times, n=20)[-1]
        sys.stdout.write(f"{name:<30} median {middle:7.1f} ms, p95 {last:7.1f} ms, x{middle / plain:.2f} of plain\n")


if __name__ == "__main__":
    sys.exit(main())
