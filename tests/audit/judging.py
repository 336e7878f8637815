"""How replies are judged: pure functions over what was cited and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.audit.corpus import CorpusDocument, CorpusQuery

DEPTH = 3
SOURCE_LIMIT = 4
ABSENT = "absent"
SUPPORT, CONTRA, CONTEXT = "support", "contra", "context"
_FLAGGED_KINDS = frozenset({"stale", "withdrawn-or-dormant"})


@dataclass(frozen=True, slots=True)
class Cited:
    """A document that a reply cites.

    Attributes:
        document: Its id in the corpus.
        role: "support", "contra" or "context"; a reply without roles supports.
        state: Living state as cited; empty when the reply tells none.
    """

    document: str
    role: str = SUPPORT
    state: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply is worth.

    Attributes:
        right: It counts.
        first: An expected document is cited first.
        cited: The expected documents are among the first ones cited, whatever else is.
        flagged: They are shown with a state that warns.
        complete: Every expected document is cited at all.
        problem: Why it isn't right; empty when it is.
    """

    right: bool
    first: bool
    cited: bool
    flagged: bool
    complete: bool
    problem: str


def distinct(cited: Iterable[Cited]) -> tuple[Cited, ...]:
    """Cited documents, each once, in the order of first mention; supporting in one place is supporting."""
    found: dict[str, Cited] = {}
    for one in cited:
        held = found.get(one.document)
        if held is None or (one.role == SUPPORT and held.role != SUPPORT):
            found[one.document] = Cited(one.document, one.role, one.state or (held.state if held else ""))
    return tuple(found.values())


def judge(query: CorpusQuery, cited: Sequence[Cited], truths: Mapping[str, str]) -> Verdict:
    """Judge one reply.

    Args:
        query: What was asked, and what is expected.
        cited: What was cited, in order.
        truths: State at the folder's date by document id.

    Returns:
        The verdict; for kind "contested" the expected documents are its sides, that is those that are contested.
    """
    documents = distinct(cited)
    top = {one.document: one for one in documents[:DEPTH]}
    wanted = _wanted(query, truths)
    hits = [top[name] for name in wanted if name in top]
    found = len(hits) == len(wanted) if query.match == "all" else bool(hits)
    wrong = [one.document for one in documents if one.document in query.forbidden and one.role == SUPPORT]
    flagged = bool(hits) and all(_warns(one.state, query.expected_state) for one in hits)
    needs_flag = query.kind in _FLAGGED_KINDS
    return Verdict(
        right=found and not wrong and (flagged or not needs_flag),
        first=bool(documents) and documents[0].document in query.expected,
        cited=found,
        flagged=found and flagged,
        complete=set(query.expected) <= {one.document for one in documents},
        problem=_problem(documents, found=found, wrong=wrong, unflagged=needs_flag and not flagged),
    )


def fragility(domains: Mapping[str, str], needed: int) -> float:
    """Share of documents without which too few source domains remain, by leaving out each in turn.

    Args:
        domains: Source domain by document.
        needed: Domains that the mode asks for.

    Returns:
        0 to 1; 0 of no documents.
    """
    breaking = sum(
        len({domain for name, domain in domains.items() if name != left_out}) < needed for left_out in domains
    )
    return breaking / len(domains) if domains else 0.0


def judge_states(
    documents: Iterable[CorpusDocument], states: Mapping[str, str]
) -> tuple[dict[str, tuple[int, int]], tuple[CorpusDocument, ...]]:
    """Compare states with what a folder accepts.

    Args:
        documents: Documents of the folder; those without a state to compare are left out.
        states: Found state by id; a document that isn't listed is absent.

    Returns:
        Right and all by basis, and the documents with a wrong state.
    """
    counts: dict[str, tuple[int, int]] = {}
    wrong: list[CorpusDocument] = []
    for document in documents:
        if not document.accept:
            continue
        right, total = counts.get(document.basis, (0, 0))
        good = states.get(document.id, ABSENT) in document.accept
        counts[document.basis] = (right + good, total + 1)
        if not good:
            wrong.append(document)
    return counts, tuple(wrong)


def _wanted(query: CorpusQuery, truths: Mapping[str, str]) -> tuple[str, ...]:
    if query.kind != "contested":
        return query.expected
    return tuple(name for name in query.expected if truths.get(name) == "contested") or query.expected


def _warns(state: str, expected: str) -> bool:
    return state not in ("", "active") or (bool(expected) and state == expected)


def _problem(documents: Sequence[Cited], *, found: bool, wrong: Sequence[str], unflagged: bool) -> str:
    if not documents:
        return "nothing cited"
    problems = [] if found else [f"expected not among the first {DEPTH} cited"]
    if wrong:
        problems.append(f"forbidden cited as the answer: {', '.join(wrong)}")
    if found and unflagged:
        problems.append("cited without a state that warns")
    return "; ".join(problems)
