"""Candidates with their chunks and states: what an answer of profile v3.1 is chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.query.domain.admission import Admitted
from services.query.domain.fusion import Fused
from services.query.domain.intent import Intent
from services.query.domain.living import LivingState, StateReport
from services.query.domain.outcomes import Considered
from services.query.domain.profile import PPM, LivingNumbers
from services.query.domain.question import content_terms
from services.query.domain.versions import is_prerelease

_BY_OTHERS = "admitted; other evidence answers better"
_BY_NOTHING = "admitted, but no sentence of it answers"


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate that counts.

    Attributes:
        admitted: With its chunk and its score, penalties taken off.
        state: None where the index told none.
        expanded_from: Document whose relation brought it; empty when a lane did.
        picked: The question's intent asks for its document.
        named: The question names its document by its title.
    """

    admitted: Admitted
    state: StateReport | None
    expanded_from: str = ""
    picked: bool = False
    named: bool = False

    @property
    def document_id(self) -> str:
        """Of its chunk."""
        return self.admitted.candidate.key.document_id

    @property
    def score(self) -> float:
        """Fused score, penalties taken off."""
        return self.admitted.candidate.score


@dataclass(frozen=True, slots=True)
class Pool:
    """Items best first."""

    items: tuple[Item, ...] = ()

    @property
    def documents(self) -> dict[str, Item]:
        """The best item of each document, best first."""
        best: dict[str, Item] = {}
        for item in self.items:
            best.setdefault(item.document_id, item)
        return best

    @property
    def states(self) -> dict[tuple[str, int], StateReport]:
        """By document id and revision."""
        return {(item.state.document_id, item.state.revision): item.state for item in self.items if item.state}

    def plus(self, items: Sequence[Item]) -> Pool:
        """Add items; a chunk that is held already stays as it is, unless the new one is picked."""
        held = {item.admitted.candidate.key: item for item in self.items}
        for item in items:
            key = item.admitted.candidate.key
            if key not in held or item.picked:
                held[key] = item if key not in held else replace(held[key], picked=True)
        return Pool(tuple(sorted(held.values(), key=lambda item: (-item.score, item.admitted.candidate.key))))


def make_pool(
    admitted: Sequence[Admitted],
    states: Mapping[tuple[str, int], StateReport],
    intent: Intent,
    numbers: LivingNumbers,
) -> Pool:
    """Make a pool of what a look into the lanes gave.

    Args:
        admitted: Best first.
        states: By document id and revision.
        intent: The question's; one that asks how things stand takes no penalties.
        numbers: The manifest's.

    Returns:
        The pool: dormant, stale and draft documents a little further down.
    """
    items = []
    for one in admitted:
        key = one.candidate.key
        state = states.get((key.document_id, key.revision))
        off = 0 if state is None or intent.status else _penalty(state, numbers)
        candidate = replace(one.candidate, score=one.candidate.score * (1 - off / PPM))
        items.append(Item(replace(one, candidate=candidate), state))
    return Pool().plus(items)


def title_share(title: str, asked: frozenset[str], common: frozenset[str]) -> float:
    """Tell how far a question names a document by its title.

    Args:
        title: Of the document.
        asked: Content terms of the question.
        common: Those that most documents have: alone they name none.

    Returns:
        Share of the title's content terms, its numbers aside, that the question has; of less than all of them only
        terms that aren't common count. 0 for less than two.
    """
    named = [term for term in content_terms(title) if not term[:1].isdigit()]
    if not asked.issuperset(named):
        named = [term for term in named if term not in common]
    hits = sum(term in asked for term in named)
    return hits / len(named) if hits > 1 else 0.0


def with_titles(pool: Pool, asked: frozenset[str], common: frozenset[str], *, least: float, bonus: float) -> Pool:
    """Lift the documents that a question names by their titles.

    Args:
        pool: The candidates.
        asked: Content terms of the question.
        common: Those that most documents have.
        least: Share of a title from which it counts.
        bonus: Added to the score for a whole title; by the square of its share for less.

    Returns:
        The pool in its new order.
    """
    lifted = []
    for item in pool.items:
        share = title_share(item.admitted.passage.title, asked, common)
        if share < least:
            lifted.append(item)
            continue
        candidate = item.admitted.candidate
        raised = replace(candidate, score=candidate.score + bonus * share * share)
        lifted.append(replace(item, admitted=replace(item.admitted, candidate=raised), named=True))
    return Pool().plus(lifted)


def barred_versions(pool: Pool, chosen: str, family: Sequence[str], *, margin: float) -> frozenset[str]:
    """Find the documents that may not be the answer since another version of their series is.

    Args:
        pool: The candidates.
        chosen: Document that the question's intent picks; empty when it picks none.
        family: Documents of its series.
        margin: How far the coverage of a newer version may lie below the best of its series.

    Returns:
        Documents barred: every other one of the chosen one's series, and of every other series all but the newest
        member in force that covers as much of the question as any; a draft or pre-release only where there is no other.
    """
    barred = {item for item in family if item != chosen} if chosen else set()
    series: dict[str, list[Item]] = {}
    for item in pool.documents.values():
        if item.state is not None and item.state.family and item.document_id != chosen:
            series.setdefault(item.state.family, []).append(item)
    for members in series.values():
        if len(members) > 1:
            kept = _kept(members, margin)
            barred |= {item.document_id for item in members if item is not kept}
    return frozenset(barred)


def explain(
    candidates: Sequence[Fused],
    pool: Pool,
    cited: Mapping[str, str],
    barred: frozenset[str],
    read: Mapping[tuple[str, int], StateReport],
) -> tuple[Considered, ...]:
    """Tell of each candidate why it is in or out.

    Args:
        candidates: As the lanes gave them, best first.
        pool: Those that count, and what relations added.
        cited: Role in words by document id.
        barred: Documents whose series has another member cited.
        read: States of all documents whose chunks were read.

    Returns:
        One entry per candidate, the lanes' first.
    """
    held = {item.admitted.candidate.key: item for item in pool.items}
    told: list[Considered] = []
    admitted = _BY_OTHERS if cited else _BY_NOTHING
    for candidate in (*candidates, *(key_only for key_only in _added(candidates, pool))):
        item = held.get(candidate.key)
        state = item.state if item else read.get((candidate.key.document_id, candidate.key.revision))
        role = cited.get(candidate.key.document_id, "") if item else ""
        told.append(
            Considered(
                candidate=item.admitted.candidate if item else candidate,
                source_id=item.admitted.passage.source_id if item else "",
                state=state,
                expanded_from=item.expanded_from if item else "",
                cited=bool(role),
                reason=_reason(item, role, state, admitted, barred=candidate.key.document_id in barred),
            )
        )
    return tuple(told)


def _added(candidates: Sequence[Fused], pool: Pool) -> tuple[Fused, ...]:
    known = {candidate.key for candidate in candidates}
    return tuple(item.admitted.candidate for item in pool.items if item.admitted.candidate.key not in known)


def _reason(item: Item | None, role: str, state: StateReport | None, admitted: str, *, barred: bool) -> str:
    if role:
        return f"its document is cited: {role}"
    if item is not None:
        if barred:
            return "another version of its series is the one to answer"
        return f"found by a relation; {admitted}" if item.expanded_from else admitted
    if state is not None and not state.in_force:
        return f"{state.state.value if state.state else 'unknown'} at this moment, and out of reach or below admission"
    return "below the admission threshold, or beyond the candidates that are read"


def _penalty(state: StateReport, numbers: LivingNumbers) -> int:
    if state.not_in_force_yet:
        return numbers.draft_penalty_ppm
    return numbers.dormant_penalty_ppm if state.state in {LivingState.DORMANT, LivingState.STALE} else 0


def _kept(members: Sequence[Item], margin: float) -> Item:
    best = max(item.admitted.coverage for item in members)
    near = [item for item in members if item.admitted.coverage >= best - margin]
    return max(near, key=lambda item: (*_standing(item.state), *_age(item)))


def _standing(state: StateReport | None) -> tuple[bool, bool]:
    """In force first, and of these what is no draft and no pre-release."""
    if state is None:
        return True, True
    return state.in_force, not (state.not_in_force_yet or is_prerelease(state.version))


def _age(item: Item) -> tuple[float, float]:
    effective = item.state.effective_at if item.state else None
    return (effective.timestamp() if effective else 0.0, item.score)
