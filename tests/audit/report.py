"""What an audit prints and writes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.audit import queries, states
from tests.audit.modes import ModeReport
from tests.audit.queries import Count, QueryReport
from tests.audit.states import LifecycleReport, StateReport

_GIVEN_QUERIES = {name: total for name, (_, _, total) in queries.GOALS.items()}


@dataclass(slots=True)
class Report:
    """Everything that a run found.

    Attributes:
        notes: What wasn't fed or isn't served, by corpus.
    """

    notes: list[str] = field(default_factory=list)
    states: list[StateReport] = field(default_factory=list)
    lifecycle: list[LifecycleReport] = field(default_factory=list)
    queries: list[QueryReport] = field(default_factory=list)
    modes: list[ModeReport] = field(default_factory=list)
    fragility: list[dict[str, Any]] = field(default_factory=list)
    retrieval: list[dict[str, Any]] = field(default_factory=list)


def write(report: Report, path: Path) -> None:
    """Write everything as JSON.

    Args:
        report: Report.
        path: File; its folder is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def lines(report: Report, detailed: Sequence[str] = ()) -> Iterator[str]:
    """The tables, then the misses.

    Args:
        report: Report.
        detailed: Variants whose misses are listed; by default the first one that is served.

    Yields:
        Lines for people.
    """
    yield from _states(report.states)
    yield from _lifecycle(report.lifecycle)
    yield from _queries(report.queries, detailed)
    yield from _modes(report.modes)
    yield from _fragility(report.fragility)
    for note in report.notes:
        yield f"note: {note}"


def totals(reports: Sequence[QueryReport]) -> dict[str, dict[str, Count]]:
    """Sums over folders.

    Args:
        reports: One per folder and variant.

    Returns:
        Sums by row and variant.
    """
    found: dict[str, dict[str, Count]] = {}
    for report in reports:
        for row, count in report.counts.items():
            held = found.setdefault(row, {})
            held[report.variant] = held.get(report.variant, Count()) + count
    return found


def _states(reports: Sequence[StateReport]) -> Iterator[str]:
    if not reports:
        return
    yield f"{'states':<22}" + "".join(f"{basis:>14}" for basis in states.GOALS) + "   as of"
    whole: dict[str, tuple[int, int]] = {}
    for report in reports:
        yield _state_row(report.name, report.counts) + f"   {report.as_of[:10]}"
        for basis, (right, total) in report.counts.items():
            held = whole.get(basis, (0, 0))
            whole[basis] = (held[0] + right, held[1] + total)
    yield _state_row("all", whole)
    yield f"{'  share':<22}" + "".join(f"{_share(whole.get(basis)):>14}" for basis in states.GOALS)
    yield f"{'  goal':<22}" + "".join(f"{goal:>14.3f}" for goal in states.GOALS.values())
    for report in reports:
        for miss in report.misses:
            yield f"  miss {report.name} {_state_miss(miss)}"


def _state_row(name: str, counts: dict[str, tuple[int, int]]) -> str:
    cells = (f"{counts[basis][0]}/{counts[basis][1]}" if basis in counts else "-" for basis in states.GOALS)
    return f"{name:<22}" + "".join(f"{cell:>14}" for cell in cells)


def _share(count: tuple[int, int] | None) -> str:
    return f"{count[0] / count[1]:.3f}" if count else "-"


def _state_miss(miss: dict[str, Any]) -> str:
    basis = miss.get("basis") or f"{miss['reading']}, {miss['as_of']}"
    reasons = " ".join(part for part in (miss["rule"], miss["other"], miss["detail"]) if part)
    return f"{miss['id']} [{basis}]: {miss['state']} by {reasons or 'nothing'}, accepted {', '.join(miss['accepted'])}"


def _lifecycle(reports: Sequence[LifecycleReport]) -> Iterator[str]:
    if not reports:
        return
    yield f"{'lifecycle':<22}{'final':>14}{'goal':>10}{'at instant':>14}"
    for report in reports:
        goal = states.LIFECYCLE_GOALS.get(report.suite)
        yield (
            f"{report.suite:<22}{f'{report.final}/{report.total}':>14}{f'>= {goal}':>10}"
            f"{f'{report.at_instant}/{report.total}':>14}"
        )
    for report in reports:
        for miss in report.misses:
            yield f"  miss {report.suite} {_state_miss(miss)}"


def _queries(reports: Sequence[QueryReport], detailed: Sequence[str]) -> Iterator[str]:
    variants = list(dict.fromkeys(report.variant for report in reports))
    served = [name for name in variants if any(r.counts for r in reports if r.variant == name)]
    if served:
        yield f"{'queries: right / first':<26}" + "".join(f"{name:>16}" for name in served) + "   goal of v3.1"
    for row, counts in totals(reports).items():
        total = max(count.total for count in counts.values())
        yield f"{f'{row} ({total})':<26}" + "".join(_cell(counts.get(name)) for name in served) + _goal(row, total)
        yield from _details(row, counts, served)
    for report in reports:
        if report.unavailable:
            yield f"  {report.name}: {report.variant} isn't served: {report.unavailable}"
    for report in reports:
        if report.variant in (detailed or served[:1]):
            for question in report.questions:
                if not question["right"]:
                    yield from _miss(report, question)


def _details(row: str, counts: dict[str, Count], served: Sequence[str]) -> Iterator[str]:
    names = {"stale and withdrawn": ("cited", "flagged"), "contested": ("flagged", "complete")}.get(row, ("cited",))
    for name in names:
        cells = (str(getattr(counts[variant], name)) if variant in counts else "-" for variant in served)
        yield f"{'  ' + name:<26}" + "".join(f"{cell:>16}" for cell in cells)


def _cell(count: Count | None) -> str:
    return f"{f'{count.right} / {count.first}' if count else '-':>16}"


def _goal(row: str, total: int) -> str:
    if _GIVEN_QUERIES.get(row) != total:
        return ""
    right, first, _ = queries.GOALS[row]
    return f"   >= {right}" + (f" / {first}" if first else "")


def _miss(report: QueryReport, question: dict[str, Any]) -> Iterator[str]:
    as_of = f" (as of {question['as_of']})" if "as_of" in question else ""
    yield f"  miss {report.variant} {question['id']} [{question['kind']}] {question['query']}{as_of}"
    yield f"       {question['problem']}; cited {', '.join(question['cited']) or 'nothing'}"
    for name, fate in question["candidates"].items():
        yield f"       expected {name}: {fate}"


def _modes(reports: Sequence[ModeReport]) -> Iterator[str]:
    outcomes = ("two domains", "refused", "fell back", "no answer", "breach")
    if reports:
        yield f"{'modes':<36}" + "".join(f"{name:>13}" for name in outcomes)
    for setting in dict.fromkeys(report.setting for report in reports):
        these = [report for report in reports if report.setting == setting]
        for suite in dict.fromkeys(report.name.split("/")[0] for report in these):
            found: Counter[str] = Counter()
            for report in these:
                if report.name.split("/")[0] == suite:
                    found.update(report.outcomes)
            yield f"{f'{setting}: {suite}':<36}" + "".join(f"{found[name]:>13}" for name in outcomes)
        for reason in dict.fromkeys(report.unavailable for report in these if report.unavailable):
            yield f"  {setting} isn't served: {reason}"
    for report in reports:
        for entry in report.questions:
            if entry["outcome"] == "breach":
                told = entry.get("problem") or f"{entry['applied']} {entry['reason']} {entry['domains']}"
                yield f"  breach {report.setting} {report.name} {entry['id']}: {entry['query']}: {told}"


def _fragility(scenarios: Sequence[dict[str, Any]]) -> Iterator[str]:
    for one in scenarios:
        yield (
            f"fragility {one['scenario']}: told {one['told']}, goal {one['goal']:g}, over the cited {one['over_cited']:g}, "
            f"over the expected {one['over_expected']:g}; {one['outcome']}, cited {one['cited']}"
        )
