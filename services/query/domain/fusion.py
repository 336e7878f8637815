"""Weighted reciprocal rank fusion of the two lanes.

Source of the formula: Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
Rank Learning Methods", SIGIR 2009, with one weight per lane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.query.domain.values import Form, LaneHit, RecordKey, RetrievalMode


@dataclass(frozen=True, slots=True)
class LaneWeights:
    """Share of each lane in the fused score of a candidate.

    Attributes:
        vector: Weight of the vector lane.
        keyword: Weight of the keyword lane.
    """

    vector: float
    keyword: float


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate after fusion.

    Attributes:
        key: The chunk or document.
        score: Fused score, or the lane's own score where only one lane was asked for.
        form: Form of its document.
        keyword_rank: From 1; 0 when the keyword lane did not return it.
        vector_rank: From 1; 0 when the vector lane did not return it.
        keyword_score: BM25; 0 when absent.
        cosine: 0 when absent.
    """

    key: RecordKey
    score: float
    form: Form
    keyword_rank: int = 0
    vector_rank: int = 0
    keyword_score: float = 0.0
    cosine: float = 0.0

    @property
    def best_rank(self) -> int:
        """The better of its ranks, from 1."""
        ranks = (self.keyword_rank, self.vector_rank)
        return min(ranks) or max(ranks)


def collapse(hits: Sequence[LaneHit]) -> tuple[LaneHit, ...]:
    """Keep the best record of each source chunk, so that a chunk has one rank in its lane.

    Args:
        hits: A lane's records, best first; a chunk may come several times.

    Returns:
        One hit per chunk, in the order of the chunk's best record.
    """
    return tuple(hit for _, hit in _ranked(hits).values())


def fuse(
    keyword: Sequence[LaneHit],
    vector: Sequence[LaneHit],
    *,
    weights: Mapping[Form, LaneWeights],
    k: int,
) -> tuple[Fused, ...]:
    """Fuse both lanes: the sum over the lanes that hold a record of weight / (k + rank).

    Args:
        keyword: The keyword lane's records, best first.
        vector: The vector lane's records, best first.
        weights: Weights per form; a candidate is weighed by its own form.
        k: Rank constant, at least 1.

    Returns:
        Candidates by (score, best rank, id). A lane without a record adds nothing: there is no phantom rank.
    """
    by_words, by_meaning = _ranked(keyword), _ranked(vector)
    candidates = []
    for key, (rank, hit) in by_words.items():
        # The form is the document's, so a candidate of both lanes is weighed alike whichever list came first.
        weight = weights[hit.form]
        score = weight.keyword / (k + rank)
        vector_rank, other = by_meaning.pop(key, (0, None))
        if other is None:
            candidates.append(Fused(key, score, hit.form, rank, 0, hit.score))
        else:
            score += weight.vector / (k + vector_rank)
            # Of its propositions, the one that stands higher in its lane shows the chunk.
            shown = key if rank <= vector_rank else other.key
            candidates.append(Fused(shown, score, hit.form, rank, vector_rank, hit.score, other.score))
    for key, (rank, hit) in by_meaning.items():
        candidates.append(Fused(key, weights[hit.form].vector / (k + rank), hit.form, 0, rank, 0.0, hit.score))
    return _ordered(candidates)


def fuse_documents(
    documents: Sequence[LaneHit],
    chunks: Sequence[LaneHit],
    *,
    shown: Sequence[LaneHit],
    weights: Mapping[Form, LaneWeights],
    k: int,
) -> tuple[Fused, ...]:
    """Fuse documents, each lane on the level that it ranks better: words by document records, meaning by chunks.

    Args:
        documents: The keyword lane's document records, best first.
        chunks: The vector lane's chunks, best first; a document's rank is that of its best one among documents.
        shown: Records that stand for their documents, the first of each; where there is none, the first chunk does.
        weights: See `fuse`.
        k: See `fuse`.

    Returns:
        One candidate per document by (score, best rank, id).
    """
    keys: dict[str, RecordKey] = {}
    for hit in (*shown, *documents, *chunks):
        keys.setdefault(hit.key.document_id, hit.key)
    keyword, vector = (
        [LaneHit(keys[hit.key.document_id], hit.score, hit.form) for hit in hits] for hits in (documents, chunks)
    )
    return fuse(keyword, vector, weights=weights, k=k)


def rank_one_lane(hits: Sequence[LaneHit], mode: RetrievalMode) -> tuple[Fused, ...]:
    """Rank by one lane alone, with the lane's own score.

    Args:
        hits: The lane's records, best first.
        mode: LEXICAL or SEMANTIC: which lane the hits come from.

    Returns:
        Candidates by (score, rank, id).
    """
    lexical = mode is RetrievalMode.LEXICAL
    ranked = [
        Fused(
            hit.key,
            hit.score,
            hit.form,
            keyword_rank=rank if lexical else 0,
            vector_rank=0 if lexical else rank,
            keyword_score=hit.score if lexical else 0.0,
            cosine=0.0 if lexical else hit.score,
        )
        for rank, hit in enumerate(collapse(hits), start=1)
    ]
    return _ordered(ranked)


def best_per_document(candidates: Sequence[Fused]) -> tuple[Fused, ...]:
    """Keep the best candidate of each document.

    Args:
        candidates: In order.

    Returns:
        One candidate per document, order kept.
    """
    best: dict[str, Fused] = {}
    for candidate in candidates:
        best.setdefault(candidate.key.document_id, candidate)
    return tuple(best.values())


def document_scores(documents: Sequence[Fused], chunks: Sequence[Fused], *, k: int) -> dict[str, float]:
    """Score documents by two rankings: as whole documents, and by their best chunk.

    Args:
        documents: Ranked as whole documents, best first.
        chunks: Ranked chunks, best first.
        k: Rank constant, at least 1.

    Returns:
        By document id the sum of its reciprocal ranks.
    """
    scores: dict[str, float] = {}
    for ranking in (documents, chunks):
        for rank, found in enumerate(best_per_document(ranking), start=1):
            scores[found.key.document_id] = scores.get(found.key.document_id, 0.0) + 1 / (k + rank)
    return scores


def _ranked(hits: Sequence[LaneHit]) -> dict[RecordKey, tuple[int, LaneHit]]:
    """The best record of each source chunk with its rank, from 1."""
    best: dict[RecordKey, tuple[int, LaneHit]] = {}
    for hit in hits:
        best.setdefault(hit.key, (len(best) + 1, hit))
    return best


def _ordered(candidates: Sequence[Fused]) -> tuple[Fused, ...]:
    return tuple(sorted(candidates, key=lambda found: (-found.score, found.best_rank, found.key)))
