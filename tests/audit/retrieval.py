"""Part `retrieval`: ranks of the expected documents in each lane, and gold answers in cited spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from affidavit.query.v1 import query_service_pb2

from tests.audit import measures
from tests.audit.client import KINDS, MODES, Auditor
from tests.audit.corpus import Corpus


def of_corpus(auditor: Auditor, corpus: Corpus, known: Mapping[str, str], split: str) -> Iterator[tuple[str, Any]]:
    """Measure what search and answers are worth on a corpus.

    Args:
        auditor: Crate that holds the corpus.
        corpus: Corpus.
        known: Corpus id by document id.
        split: Queries to use where the corpus has splits.

    Yields:
        A line for people, and the same as data.
    """
    queries = [query for query in corpus.queries if not query.split or query.split == split]
    for kind in KINDS:
        for mode in MODES:
            ranked = [
                (query, [known[found.document_id] for found in auditor.search(query.text, mode=mode, kind=kind)])
                for query in queries
            ]
            gain = measures.mean([measures.ndcg(found, query.relevance) for query, found in ranked])
            share = measures.mean([measures.recall(found, query.relevance) for query, found in ranked])
            line = (
                f"  {kind:<9} {mode:<9} nDCG@10 {gain:.4f}  expected in first 10 {share:.4f}  ({len(ranked)} queries)"
            )
            yield line, {"kind": kind, "mode": mode, "ndcg_10": gain, "recall_10": share, "queries": len(ranked)}
    yield from _answers(auditor, corpus)


def _answers(auditor: Auditor, corpus: Corpus) -> Iterator[tuple[str, Any]]:
    asked = [query for query in corpus.queries if query.answer]
    right = 0
    for query in asked:
        reply = auditor.ask(query.text)
        cited = [citation.quote for citation in reply.citations]
        found = any(query.answer in quote for quote in cited)
        right += found
        if not found:
            status = query_service_pb2.AnswerStatus.Name(reply.status)
            line = f"  missed {query.id}: {query.text} wanted {query.answer}, {status}: {' | '.join(cited)[:200]}"
            yield line, {"missed": query.id, "wanted": query.answer, "status": status, "cited": cited}
    if asked:
        yield (
            f"  gold answer in a cited span: {right} of {len(asked)}",
            {"gold_answers": right, "of": len(asked)},
        )
