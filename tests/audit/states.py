"""Part `states`: living states against what folders and suites expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from affidavit.index.v1 import living_pb2

from tests.audit import judging
from tests.audit.auditcrux import Category, Expectation
from tests.audit.client import Auditor
from tests.audit.corpus import Corpus

GOALS = {"relation": 0.98, "date": 1.0, "default": 0.99, "declared": 0.98, "metadata": 0.95}
LIFECYCLE_GOALS = {"v1": 54, "v2": 168, "v3": 12, "audit-features": 13}
_PREFIX = "LIVING_STATE_"


@dataclass(frozen=True, slots=True)
class StateReport:
    """States of a folder.

    Attributes:
        counts: Right and all by basis.
        misses: One entry each: id, basis, accepted and found state, the rule and what it rests on.
    """

    name: str
    as_of: str
    counts: dict[str, tuple[int, int]]
    misses: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LifecycleReport:
    """Lifecycle rows of a suite's category.

    Attributes:
        final: Right at the suite's clock.
        at_instant: Right at each row's own instant.
    """

    suite: str
    name: str
    final: int
    at_instant: int
    total: int
    misses: list[dict[str, Any]] = field(default_factory=list)


def name_of(report: living_pb2.StateReport | None) -> str:
    """A state in lower case; "not_in_force_yet" for an active one that isn't, "" for none."""
    if report is None or report.state == living_pb2.LIVING_STATE_UNSPECIFIED:
        return ""
    state = living_pb2.LivingState.Name(report.state).removeprefix(_PREFIX).lower()
    return "not_in_force_yet" if report.not_in_force_yet and state == "active" else state


def of_corpus(auditor: Auditor, corpus: Corpus, known: Mapping[str, str]) -> StateReport:
    """Compare the states of a folder at the date of its truth.

    Args:
        auditor: Crate that holds the folder.
        corpus: Folder.
        known: Corpus id by document id.

    Returns:
        Counts and misses.
    """
    reports = _reports(auditor, corpus.truth_as_of, known)
    found = {name: _state(report) for name, report in reports.items()}
    counts, wrong = judging.judge_states(corpus.documents, found)
    misses = [
        {
            "id": document.id,
            "basis": document.basis,
            "accepted": list(document.accept),
            **_told(reports.get(document.id), known),
        }
        for document in wrong
    ]
    return StateReport(corpus.name, corpus.truth_as_of.isoformat() if corpus.truth_as_of else "now", counts, misses)


def of_category(auditor: Auditor, category: Category, known: Mapping[str, str]) -> LifecycleReport:
    """Compare the lifecycle of a category: at the suite's clock, and at each row's own instant.

    Args:
        auditor: Crate that holds the category.
        category: Category with expectations.
        known: Corpus id by document id.

    Returns:
        Counts and misses.
    """
    final = _reports(auditor, category.now, known)
    instants = {row.as_of: _reports(auditor, row.as_of, known) for row in category.expectations}
    misses: list[dict[str, Any]] = []
    right = {"final": 0, "at its instant": 0}
    for row in category.expectations:
        for reading, reports in (("final", final), ("at its instant", instants[row.as_of])):
            if _state(reports.get(row.document)) == row.state:
                right[reading] += 1
            else:
                misses.append(_miss(row, reading, reports.get(row.document), known))
    return LifecycleReport(
        category.suite, category.name, right["final"], right["at its instant"], len(category.expectations), misses
    )


def _reports(auditor: Auditor, as_of: datetime | None, known: Mapping[str, str]) -> dict[str, living_pb2.StateReport]:
    return {known[name]: report for name, report in auditor.states(as_of).items() if name in known}


def _state(report: living_pb2.StateReport | None) -> str:
    if report is None:
        return judging.ABSENT
    return living_pb2.LivingState.Name(report.state).removeprefix(_PREFIX).lower()


def _miss(
    row: Expectation, reading: str, report: living_pb2.StateReport | None, known: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "id": row.document,
        "reading": reading,
        "as_of": row.as_of.date().isoformat(),
        "accepted": [row.state],
        **_told(report, known),
    }


def _told(report: living_pb2.StateReport | None, known: Mapping[str, str]) -> dict[str, str]:
    if report is None:
        return {"state": judging.ABSENT, "rule": "", "other": "", "detail": ""}
    return {
        "state": _state(report),
        "rule": report.rule,
        "other": known.get(report.other_document_id, report.other_document_id),
        "detail": report.detail,
    }
