"""Part `queries`: what is cited for each kind of question, profile beside profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import grpc
from affidavit.index.v1 import living_pb2
from affidavit.query.v1 import query_service_pb2

from tests.audit import judging, truth
from tests.audit.client import Auditor
from tests.audit.corpus import Corpus, CorpusQuery
from tests.audit.judging import Cited
from tests.audit.states import name_of

# Over the six given folders together, of profile v3.1: right, cited first, all.
GOALS: dict[str, tuple[int, int, int]] = {
    "current-version": (46, 38, 50),
    "point-in-time": (42, 34, 46),
    "original-version": (11, 0, 13),
    "relation-pair": (19, 0, 24),
    "stale and withdrawn": (13, 0, 14),
    "contested": (12, 0, 12),
}
_TOGETHER = {"stale": "stale and withdrawn", "withdrawn-or-dormant": "stale and withdrawn"}
_DEEP = 50
_ROLES = {
    query_service_pb2.CITATION_ROLE_CONTRA: judging.CONTRA,
    query_service_pb2.CITATION_ROLE_CONTEXT: judging.CONTEXT,
}
_NOT_SERVED = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT)


@dataclass(frozen=True, slots=True)
class Variant:
    """One column of the comparison.

    Attributes:
        profile: Of the crate meanwhile.
        asks: Whether answers are judged; else the first documents of a keyword search are.
        timed: Whether the question's instant goes along.
        reach: For searches.
        by_truth: Whether the search sees only what was in force by the folder's own truth.
    """

    name: str
    profile: str
    asks: bool
    timed: bool = False
    reach: living_pb2.Reach.ValueType = living_pb2.REACH_UNSPECIFIED
    by_truth: bool = False


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("v3.1", "v3.1", asks=True, timed=True),
        Variant("v1", "v1", asks=True),
        Variant("bm25", "v1", asks=False),
        Variant("bm25-in-force", "v3.1", asks=False, timed=True, reach=living_pb2.REACH_IN_FORCE),
        Variant("bm25-truth", "v1", asks=False, by_truth=True),
    )
}


@dataclass(frozen=True, slots=True)
class Count:
    """Sums over the questions of a kind; see judging.Verdict."""

    total: int = 0
    right: int = 0
    first: int = 0
    cited: int = 0
    flagged: int = 0
    complete: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.total + other.total,
            self.right + other.right,
            self.first + other.first,
            self.cited + other.cited,
            self.flagged + other.flagged,
            self.complete + other.complete,
        )


@dataclass(frozen=True, slots=True)
class QueryReport:
    """One variant on one folder.

    Attributes:
        unavailable: Why the node doesn't serve the variant; empty when it does.
        counts: Sums by kind.
        questions: One entry each, with what was cited and, of a miss, where the expected documents went.
    """

    name: str
    variant: str
    unavailable: str = ""
    counts: dict[str, Count] = field(default_factory=dict)
    questions: list[dict[str, Any]] = field(default_factory=list)


def row_of(kind: str) -> str:
    """The row of the table that a kind belongs to."""
    return _TOGETHER.get(kind, kind)


def of_corpus(
    auditor: Auditor, corpus: Corpus, known: Mapping[str, str], variant: Variant, kinds: Iterable[str] = ()
) -> QueryReport:
    """Ask all questions of a folder.

    Args:
        auditor: Crate that holds the folder.
        corpus: Folder.
        known: Corpus id by document id.
        variant: How to ask.
        kinds: Kinds of question; empty: all.

    Returns:
        Counts and questions; a reason instead where the node doesn't serve the variant.
    """
    wanted = tuple(kinds)
    queries = [query for query in corpus.queries if not wanted or query.kind in wanted]
    truths = {document.id: document.truth for document in corpus.documents}
    report = QueryReport(corpus.name, variant.name)
    try:
        auditor.configure(profile=variant.profile)
        for query in queries:
            _one(report, query, truths, _reply(auditor, corpus, known, variant, query))
    except grpc.RpcError as error:
        if error.code() not in _NOT_SERVED:
            raise
        return QueryReport(corpus.name, variant.name, unavailable=str(error.details()))
    return report


def _one(report: QueryReport, query: CorpusQuery, truths: Mapping[str, str], reply: _Reply) -> None:
    verdict = judging.judge(query, reply.cited, truths)
    row = row_of(query.kind)
    report.counts[row] = report.counts.get(row, Count()) + Count(
        1, verdict.right, verdict.first, verdict.cited, verdict.flagged, verdict.complete
    )
    entry: dict[str, Any] = {
        "id": query.id,
        "kind": query.kind,
        "query": query.text,
        "right": verdict.right,
        "first": verdict.first,
        "expected": list(query.expected),
        "cited": [f"{one.document} ({one.state or '-'}, {one.role})" for one in judging.distinct(reply.cited)],
    }
    if query.as_of:
        entry["as_of"] = query.as_of.date().isoformat()
    if not verdict.right:
        entry |= {"problem": verdict.problem, "notes": list(reply.notes)}
        entry["candidates"] = {name: reply.candidates.get(name, reply.otherwise) for name in query.expected}
    report.questions.append(entry)


@dataclass(frozen=True, slots=True)
class _Reply:
    """What came back, in words.

    Attributes:
        candidates: How each candidate fared, by corpus id.
        otherwise: What is known of a document that isn't among them.
    """

    cited: tuple[Cited, ...]
    candidates: Mapping[str, str]
    otherwise: str
    notes: tuple[str, ...] = ()


def _reply(auditor: Auditor, corpus: Corpus, known: Mapping[str, str], variant: Variant, query: CorpusQuery) -> _Reply:
    as_of = (query.as_of or _today(corpus)) if variant.timed else None
    if not variant.asks:
        within = _in_force(corpus, known, query.as_of) if variant.by_truth else ()
        results = auditor.search(
            query.text, mode="lexical", kind="document", limit=_DEEP, reach=variant.reach, as_of=as_of, within=within
        )
        return _searched(results, known)
    reply = auditor.ask(query.text, source_limit=judging.SOURCE_LIMIT, as_of=as_of, explain=True)
    cited = tuple(
        Cited(known[one.document_id], _ROLES.get(one.role, judging.SUPPORT), name_of(one.state))
        for one in reply.citations
    )
    candidates: dict[str, str] = {}
    for rank, one in enumerate(reply.explanation, start=1):
        candidates.setdefault(known[one.document_id], _considered(rank, one))
    otherwise = "not a candidate" if reply.explanation else "candidates aren't told"
    notes = (query_service_pb2.AnswerStatus.Name(reply.status).removeprefix("ANSWER_STATUS_").lower(), *reply.notes)
    return _Reply(cited, candidates, otherwise, notes)


def _considered(rank: int, one: query_service_pb2.ConsideredCandidate) -> str:
    lanes = f"keyword {one.keyword_rank or '-'}, vector {one.vector_rank or '-'}"
    expanded = ", by a relation" if one.expanded_from_document_id else ""
    return f"candidate {rank} ({lanes}{expanded}; {name_of(one.state) or '-'}): {one.reason or 'no reason told'}"


def _searched(results: Sequence[query_service_pb2.SearchResult], known: Mapping[str, str]) -> _Reply:
    names = [known[result.document_id] for result in results]
    cited = tuple(
        Cited(name, state=name_of(result.state)) for name, result in zip(names[: judging.DEPTH], results, strict=False)
    )
    ranks = {name: f"rank {rank}" for rank, name in enumerate(names, start=1)}
    return _Reply(cited, ranks, f"not among the first {_DEEP}")


def _today(corpus: Corpus) -> datetime | None:
    """None, unless this machine's clock is behind the folder, where much wouldn't be in force yet."""
    return corpus.truth_as_of if corpus.truth_as_of and corpus.truth_as_of > datetime.now(UTC) else None


def _in_force(corpus: Corpus, known: Mapping[str, str], as_of: datetime | None) -> tuple[str, ...]:
    documents = {name: document_id for document_id, name in known.items()}
    return tuple(
        documents[one.id]
        for one in corpus.documents
        if truth.in_force(state=one.truth, effective_at=one.effective_at, ended=one.ended_at, as_of=as_of)
    )
