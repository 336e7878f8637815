"""Both lanes of the index without the services around them: `python -m tests.bench.bench_lanes`.

Synthetic records: terms drawn by Zipf's law, vectors from a Gaussian of 48 latent dimensions (harder than real text for
an approximate index). Every search is done in both lanes at once and timed as one; CPU time is that of both processes, so it
says what to expect where other work makes the machine wait.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLane, TantivyKeywordLanes
from services.index.adapters.vector_engine_process import VectorEngineProcess
from services.index.adapters.vector_lane_edge import EdgeVectorLane, EdgeVectorLanes
from services.index.domain.analysis import analyse_text
from services.index.domain.force import Force
from services.index.domain.records import (
    Form,
    KeywordChange,
    KeywordRecord,
    Kind,
    LaneFilter,
    Reach,
    Record,
    VectorChange,
)

DIMENSION = 384
CHUNKS_PER_DOCUMENT = 10
TERMS_PER_CHUNK = 150
VOCABULARY = 50_000
DOCUMENTS_PER_BATCH = 100
LIMIT = 100
_ALWAYS = Force(effective_from=0, position=1)
_PAST = Force(effective_from=0, in_force_until=100, position=1, current=False)

FILTERS = {
    "kind only": LaneFilter(),
    "9 of 10 pass": LaneFilter(forms=(Form.TEXT, Form.STRUCTURED)),
    "1 of 10 passes": LaneFilter(source_domains=("domain-3",)),
    "50 documents": LaneFilter(document_ids=tuple(f"{n:032x}" for n in range(50))),
    "in force": LaneFilter(reach=Reach.IN_FORCE, as_of=1_000),
    "in force, at a position": LaneFilter(reach=Reach.IN_FORCE, as_of=1_000, at=1_000),
    "2,000 revisions listed": LaneFilter(
        reach=Reach.IN_FORCE,
        as_of=1_000,
        at=1_000,
        also=tuple((f"{n:032x}", 1) for n in range(7, 20_000, 20)),
        without=tuple((f"{n:032x}", 1) for n in range(1_000)),
    ),
}


@dataclass(frozen=True, slots=True)
class Lanes:
    """Both lanes and the engine under one of them."""

    keyword: TantivyKeywordLane
    vector: EdgeVectorLane
    engine: VectorEngineProcess


@dataclass(slots=True)
class Searches:
    """What a series of searches took."""

    latencies: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    def add(self, other: Searches) -> None:
        """Take another series in."""
        self.latencies += other.latencies
        self.cpu_s += other.cpu_s


class Synthetic:
    """Records that look like text and embeddings to an index."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        weights = 1 / (np.arange(VOCABULARY) + 10)
        self._cumulative = np.cumsum(weights / weights.sum())
        self._basis = self._random.standard_normal((48, DIMENSION)).astype(np.float32)

    def terms(self, count: int) -> list[str]:
        """Terms by Zipf's law."""
        drawn = np.searchsorted(self._cumulative, self._random.random(count))
        return [f"w{n}" for n in drawn]

    def rows(self, count: int) -> NDArray[np.float32]:
        """float32[count, 384]."""
        return self._random.standard_normal((count, 48), dtype=np.float32) @ self._basis

    def batch(self, first: int) -> tuple[list[KeywordChange], list[VectorChange]]:
        """Changes of the next documents, numbered from `first`."""
        keyword, vector = [], []
        for number in range(first, first + DOCUMENTS_PER_BATCH):
            records = [_record(number, ordinal) for ordinal in range(CHUNKS_PER_DOCUMENT)]
            terms = self.terms(CHUNKS_PER_DOCUMENT * TERMS_PER_CHUNK)
            listed = [
                KeywordRecord(r, (), (), terms[i * TERMS_PER_CHUNK : (i + 1) * TERMS_PER_CHUNK])
                for i, r in enumerate(records)
            ]
            keyword.append(KeywordChange(records[0].document_id, 1, tuple(listed)))
            vector.append(VectorChange(records[0].document_id, 1, tuple(records), self.rows(CHUNKS_PER_DOCUMENT)))
        return keyword, vector


async def main(chunks: int) -> None:
    """Run every measurement and print the table."""
    made = Synthetic(1)
    with tempfile.TemporaryDirectory(prefix="affidavit-bench-") as folder:
        async with _opened(Path(folder) / "synthetic") as lanes:
            await _fill(lanes, made, chunks)
            await _wait_until_optimised(lanes)
            for name, lane_filter in FILTERS.items():
                _report(f"search, {name}", await _search(lanes, made, lane_filter, 300))
            await _search_while_optimising(lanes, made, chunks)
            _print("memory of this process", f"{_peak_mib(os.getpid()):.0f} MiB at most")
        async with _opened(Path(folder) / "peps") as lanes:
            await _real_text(lanes)


@asynccontextmanager
async def _opened(root: Path) -> AsyncIterator[Lanes]:
    engine = VectorEngineProcess(root=root, runtime_dir=root / "run")
    keyword_lanes, vector_lanes = TantivyKeywordLanes(root=root), EdgeVectorLanes(engine=engine)
    try:
        keyword = await keyword_lanes.open("main", 1)
        yield Lanes(keyword, await vector_lanes.open("main", 1, DIMENSION), engine)
    finally:
        await keyword_lanes.close()
        await vector_lanes.close()


async def _fill(lanes: Lanes, made: Synthetic, chunks: int) -> None:
    spent = {"keyword": 0.0, "vector": 0.0, "both at once": 0.0}
    searches = Searches()
    documents = chunks // CHUNKS_PER_DOCUMENT
    for position, first in enumerate(range(0, documents, DOCUMENTS_PER_BATCH), start=1):
        keyword, vector = made.batch(first)
        apart = position % 10 == 0
        began = time.perf_counter()
        if apart:
            await lanes.keyword.replace(keyword, position)
            between = time.perf_counter()
            await lanes.vector.replace(vector, position)
            spent["keyword"] += between - began
            spent["vector"] += time.perf_counter() - between
        else:
            searching = asyncio.create_task(_search(lanes, made, FILTERS["9 of 10 pass"], 3))
            await asyncio.gather(lanes.keyword.replace(keyword, position), lanes.vector.replace(vector, position))
            spent["both at once"] += time.perf_counter() - began
            searches.add(await searching)
    per_batch = DOCUMENTS_PER_BATCH * CHUNKS_PER_DOCUMENT
    batches = documents // DOCUMENTS_PER_BATCH
    for name, share in (("keyword", 0.1), ("vector", 0.1), ("both at once", 0.9)):
        _print(f"insert, {name}", f"{batches * share * per_batch / spent[name]:.0f} chunks/s")
    _report("search while inserting, 9 of 10 pass", searches)


async def _wait_until_optimised(lanes: Lanes) -> None:
    began = time.perf_counter()
    while (await lanes.vector.status())["optimising"]:  # noqa: ASYNC110  (the engine is another process)
        await asyncio.sleep(0.2)
    status = await lanes.vector.status()
    _print(
        "waited for the optimiser", f"{time.perf_counter() - began:.1f} s, {status['unindexed']} records without index"
    )


async def _search_while_optimising(lanes: Lanes, made: Synthetic, chunks: int) -> None:
    first = chunks // CHUNKS_PER_DOCUMENT
    position = first
    while not (await lanes.vector.status())["optimising"]:
        keyword, vector = made.batch(first)
        await asyncio.gather(lanes.keyword.replace(keyword, position), lanes.vector.replace(vector, position))
        first, position = first + DOCUMENTS_PER_BATCH, position + 1
    began = time.perf_counter()
    searches = {name: Searches() for name in FILTERS}
    while (await lanes.vector.status())["optimising"]:
        for name, lane_filter in FILTERS.items():
            searches[name].add(await _search(lanes, made, lane_filter, 10))
    _print("optimising", f"{time.perf_counter() - began:.1f} s")
    for name, series in searches.items():
        _report(f"search while optimising, {name}", series)
    _print("memory of the engine", f"{_peak_mib(lanes.engine.pid or 0):.0f} MiB at most")


async def _search(lanes: Lanes, made: Synthetic, lane_filter: LaneFilter, times: int) -> Searches:
    searches = Searches()
    asked = [(made.terms(8), made.rows(1)[0]) for _ in range(times)]
    cpu = _cpu_s(lanes)
    for terms, vector in asked:
        began = time.perf_counter()
        await asyncio.gather(
            lanes.keyword.search(terms, lane_filter, LIMIT), lanes.vector.search(vector, lane_filter, LIMIT)
        )
        searches.latencies.append(time.perf_counter() - began)
    searches.cpu_s += _cpu_s(lanes) - cpu
    return searches


def _cpu_s(lanes: Lanes) -> float:
    fields = Path(f"/proc/{lanes.engine.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _real_text(lanes: Lanes) -> None:
    corpora = Path(os.environ.get("AFFIDAVIT_CORPORA", "../shared/corpora"))
    files = await asyncio.to_thread(lambda: sorted((corpora / "peps" / "documents").rglob("*.*")))
    if not files:
        _print("peps", f"no documents under {corpora}; set AFFIDAVIT_CORPORA")
        return
    texts = [path.read_text(errors="replace") for path in files]
    constant = np.full(DIMENSION, 0.05, dtype=np.float32)
    analysis_s = 0.0
    began, cpu = time.perf_counter(), time.process_time()
    count = 0
    for position, start in enumerate(range(0, len(texts), 20), start=1):
        keyword, vector = [], []
        for number, text in enumerate(texts[start : start + 20], start=start):
            pieces = [text[at : at + 1000] for at in range(0, len(text), 1000)]
            analysing = time.process_time()
            analysed = [analyse_text(piece) for piece in pieces]
            analysis_s += time.process_time() - analysing
            records = [_record(number, ordinal) for ordinal in range(len(pieces))]
            listed = [KeywordRecord(r, (), (), terms) for r, terms in zip(records, analysed, strict=True)]
            whole = Record(records[0].document_id, 1, 0, Kind.DOCUMENT, Form.TEXT, "peps", _ALWAYS)
            listed.append(KeywordRecord(whole, (), (), [term for terms in analysed for term in terms]))
            keyword.append(KeywordChange(whole.document_id, 1, tuple(listed)))
            rows = np.tile(constant, (len(records) + 1, 1))
            vector.append(VectorChange(whole.document_id, 1, (*records, whole), rows))
            count += len(pieces)
        await asyncio.gather(lanes.keyword.replace(keyword, position), lanes.vector.replace(vector, position))
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    _print(
        "peps: analysis and both lanes", f"{count / wall:.0f} chunks/s, {used / count * 1e3:.2f} ms CPU a chunk here"
    )
    _print("peps: analysis alone", f"{count / analysis_s:.0f} chunks per CPU second")
    _print("peps: memory of the engine", f"{_peak_mib(lanes.engine.pid or 0):.0f} MiB at most")


def _record(number: int, ordinal: int) -> Record:
    form = Form.INFORMAL if number % 10 == 0 else Form.TEXT
    return Record(
        f"{number:032x}", 1, ordinal, Kind.CHUNK, form, f"domain-{number % 10}", _PAST if number % 20 == 7 else _ALWAYS
    )


def _peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _report(name: str, searches: Searches) -> None:
    count = len(searches.latencies)
    if count < 2:
        _print(name, "too short to say")
        return
    parts = statistics.quantiles(searches.latencies, n=100)
    cpu_ms = searches.cpu_s / count * 1e3
    _print(
        name, f"p50 {parts[49] * 1e3:5.1f} ms, p95 {parts[94] * 1e3:5.1f} ms, CPU {cpu_ms:4.1f} ms, {count} searches"
    )


def _print(name: str, value: str) -> None:
    sys.stdout.write(f"{name:<42} {value}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    asyncio.run(main(parser.parse_args().chunks))
