"""What relations add to the candidates, and which two documents a question about a pair means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.query.domain.intent import Intent
from services.query.domain.living import Relation, RelationType, StateReport

# What is worth following when the question names no relation; whoever merely cites adds little.
DEFAULT_TYPES = (
    RelationType.SUPERSEDES,
    RelationType.DERIVED_FROM,
    RelationType.ELABORATES,
    RelationType.IMPLEMENTS,
    RelationType.CONTRADICTS,
)


@dataclass(frozen=True, slots=True)
class Expanded:
    """A document that a relation brought.

    Attributes:
        document_id: The neighbour.
        score: Below that of its seed.
        seed: The candidate's document.
        kind: Type of the edge.
    """

    document_id: str
    score: float
    seed: str
    kind: RelationType


@dataclass(frozen=True, slots=True)
class Pair:
    """The two ends of a relation that a question means, and further ends of the same kind.

    Attributes:
        first: To be cited first: the newer one of a replacement, else the one that the question is nearer to.
        second: The other end.
        further: More documents that stand to the anchor as its partner does.
    """

    first: str
    second: str
    further: tuple[str, ...] = ()


def types_for(intent: Intent) -> tuple[RelationType, ...]:
    """Choose the types of edges that an expansion follows.

    Args:
        intent: The question's.

    Returns:
        Those of the pair that it asks about, else the ones that are always worth following.
    """
    return intent.pair or DEFAULT_TYPES


def expand(
    scores: Mapping[str, float], relations: Sequence[Relation], *, share: float, limit: int
) -> tuple[Expanded, ...]:
    """Score the neighbours of candidates.

    Args:
        scores: Candidates' documents with their scores; they are the seeds.
        relations: Edges around them, one step deep.
        share: Of the seed's score that a neighbour gets at a confidence of 1, below 1.
        limit: How many neighbours at most.

    Returns:
        Documents that are no candidates, best first; each by its best seed.
    """
    best: dict[str, Expanded] = {}
    for edge in relations:
        for seed in (edge.source, edge.target):
            other = edge.other(seed)
            if seed not in scores or other in scores:
                continue
            found = Expanded(other, scores[seed] * share * edge.confidence, seed, edge.kind)
            if other not in best or _order(found) < _order(best[other]):
                best[other] = found
    return tuple(sorted(best.values(), key=_order)[:limit])


def find_pair(
    scores: Mapping[str, float], relations: Sequence[Relation], intent: Intent, *, share: float, most: int
) -> Pair | None:
    """Find the two documents that a question about a pair means.

    Args:
        scores: Candidates' documents with their scores.
        relations: Edges around the best of them.
        intent: The question's; its types go first to last.
        share: What an end that is no candidate gets of the other's score.
        most: Further ends at most.

    Returns:
        The edge whose ends score best together; None where no edge of the asked types touches a candidate.
    """
    kinds = {kind: place for place, kind in enumerate(intent.pair)}
    edges = [
        edge
        for edge in relations
        if edge.kind in kinds and edge.source != edge.target and (edge.source in scores or edge.target in scores)
    ]
    if not edges:
        return None

    def worth(document_id: str, edge: Relation) -> float:
        return scores.get(document_id, share * scores.get(edge.other(document_id), 0.0))

    best = min(
        edges,
        key=lambda edge: (
            -(worth(edge.source, edge) + worth(edge.target, edge)) * edge.confidence,
            kinds[edge.kind],
            edge.source,
            edge.target,
        ),
    )
    anchor = max((best.source, best.target), key=lambda item: (scores.get(item, 0.0), item == best.source))
    partner = best.other(anchor)
    further = [
        edge.other(anchor)
        for edge in sorted(edges, key=lambda edge: (-worth(edge.other(anchor), edge), edge.other(anchor)))
        if edge.kind is best.kind
        and anchor in {edge.source, edge.target}
        and (edge.source == anchor) == (best.source == anchor)
        and edge.other(anchor) != partner
    ]
    first, second = (best.source, best.target) if best.kind is RelationType.SUPERSEDES else (anchor, partner)
    return Pair(first, second, tuple(dict.fromkeys(further))[:most])


def across_series(relations: Sequence[Relation], states: Mapping[str, StateReport]) -> tuple[Relation, ...]:
    """Keep the edges between different series, where there are any.

    They tell what took the place of a whole thing, not of its last version.

    Args:
        relations: Edges around the candidates.
        states: Of their ends, by document id.

    Returns:
        Those kept; all where every edge stays within its series.
    """

    def series(document_id: str) -> str:
        report = states.get(document_id)
        return report.family if report and report.family else document_id

    across = tuple(edge for edge in relations if series(edge.source) != series(edge.target))
    return across or tuple(relations)


def contradictors(document_ids: Sequence[str], relations: Sequence[Relation]) -> dict[str, str]:
    """Find the documents that contradict some, or that some contradict.

    Args:
        document_ids: Documents in question, in order.
        relations: Edges around them.

    Returns:
        From each contradicting document to the one that it stands against, in the order of those.
    """
    found: dict[str, str] = {}
    edges = [edge for edge in relations if edge.kind is RelationType.CONTRADICTS and edge.source != edge.target]
    for document_id in document_ids:
        for edge in sorted(edges, key=lambda item: (-item.confidence, item.source, item.target)):
            if document_id in {edge.source, edge.target}:
                found.setdefault(edge.other(document_id), document_id)
    return found


def _order(found: Expanded) -> tuple[float, str, str]:
    return (-found.score, found.document_id, found.seed)
