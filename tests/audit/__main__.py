"""`make audit CORPUS=...`: ingest a corpus into a node and print what retrieval and answers are worth on it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from affidavit.query.v1 import query_service_pb2

from tests.audit import measures
from tests.audit.client import KINDS, MODES, Auditor
from tests.audit.corpus import FOLDERS, SCIFACT, Corpus, load
from tests.audit.node import node


def main() -> int:
    """Run the audit; returns 1 when a document failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    parser.add_argument("--corpus", default="peps", help=f"{', '.join(FOLDERS)}, {SCIFACT}, or all")
    parser.add_argument("--address", default="", help="a running node; by default one is started")
    parser.add_argument("--cache", type=Path, default=Path(".cache/vectors"), help="vectors kept between runs")
    parser.add_argument("--split", default="test", help="queries of scifact: train or test")
    arguments = parser.parse_args()
    names = (*FOLDERS, SCIFACT) if arguments.corpus == "all" else (arguments.corpus,)
    failures = 0
    with node(address=arguments.address, cache=arguments.cache.absolute()) as address:
        for name in names:
            failures += _audit(load(name), address, arguments.split)
    return 1 if failures else 0


def _audit(corpus: Corpus, address: str, split: str) -> int:
    auditor = Auditor(address=address, crate=f"audit-{corpus.name}")
    known, seconds = auditor.put(corpus)
    failed = auditor.failed()
    chunks = auditor.chunks()
    _print(f"{corpus.name}: {len(corpus.documents)} documents, {chunks} chunks, {len(failed)} failed, {seconds:.1f} s")
    for source_id in failed:
        _print(f"  failed: {source_id}")
    queries = [query for query in corpus.queries if not query.split or query.split == split]
    for kind in KINDS:
        for mode in MODES:
            ranked = [
                (query, [known[found] for found in auditor.search(query.text, mode=mode, kind=kind)])
                for query in queries
            ]
            gain = measures.mean([measures.ndcg(found, query.relevance) for query, found in ranked])
            share = measures.mean([measures.recall(found, query.relevance) for query, found in ranked])
            _print(
                f"  {kind:<9} {mode:<9} nDCG@10 {gain:.4f}  expected in first 10 {share:.4f}  ({len(ranked)} queries)"
            )
    _answers(auditor, corpus)
    return len(failed)


def _answers(auditor: Auditor, corpus: Corpus) -> None:
    asked = [query for query in corpus.queries if query.answer]
    if not asked:
        return
    right = 0
    for query in asked:
        reply = auditor.ask(query.text)
        cited = [citation.quote for citation in reply.citations]
        found = any(query.answer in quote for quote in cited)
        right += found
        if not found:
            status = query_service_pb2.AnswerStatus.Name(reply.status)
            _print(f"  missed {query.id}: {query.text} wanted {query.answer}, {status}: {' | '.join(cited)[:200]}")
    _print(f"  gold answer in a cited span: {right} of {len(asked)}")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
