"""Part `modes`: whether the modes that promise evidence from two source domains keep the promise."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2

from tests.audit import judging
from tests.audit.auditcrux import Category, Question
from tests.audit.client import Auditor
from tests.audit.corpus import Corpus, CorpusDocument

DEMO = "demo"
DOMAINS_NEEDED = 2
FRAGILITY_GOALS = {"F1": 1.0, "F2": 0.0, "F3": 0.0}
# Name, mode asked for, and whether mode verified may fall back.
SETTINGS = (("verified", "verified", False), ("verified, fall-back", "verified", True), ("audit", "audit", True))
_REASON = "insufficient_evidence"
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class ModeReport:
    """One mode on one crate.

    Attributes:
        unavailable: Why the node doesn't serve the mode; empty when it does.
        outcomes: How many replies had "two domains", were "refused", "fell back", gave "no answer", or are a "breach".
        questions: One entry each.
    """

    name: str
    setting: str
    unavailable: str = ""
    outcomes: dict[str, int] = field(default_factory=dict)
    questions: list[dict[str, Any]] = field(default_factory=list)


def demo() -> tuple[Corpus, tuple[Question, ...]]:
    """Documents of the demo, named as the command line names them, and its questions with and without an answer."""
    folder = _ROOT / "deploy" / "demo" / "documents"
    documents = tuple(
        CorpusDocument(path.relative_to(folder).as_posix(), "", "", path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
    asked = json.loads((_ROOT / "tests" / "e2e" / "demo_questions.json").read_text(encoding="utf-8"))
    texts = [*(question for question, _ in asked["answerable"]), *asked["unanswerable"]]
    questions = tuple(Question(f"demo-{number:03}", text, 0, ()) for number, text in enumerate(texts, start=1))
    return Corpus(DEMO, documents, ()), questions


def of_crate(
    auditor: Auditor, name: str, questions: Iterable[Question], setting: tuple[str, str, bool], profile: str
) -> ModeReport:
    """Ask questions in a mode.

    Args:
        auditor: Crate.
        name: Of the category, for the report.
        questions: Questions.
        setting: One of SETTINGS.
        profile: Profile of the crate.

    Returns:
        Outcomes; a reason instead where the node doesn't serve the mode or the profile.
    """
    label, mode, downgrade = setting
    report = ModeReport(name, label)
    try:
        auditor.configure(profile=profile, allow_downgrade=downgrade)
    except grpc.RpcError as error:
        return ModeReport(name, label, unavailable=str(error.details()))
    for question in questions:
        try:
            entry = _answered(auditor.ask(question.text, mode=mode, source_limit=question.source_limit), mode=mode)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return ModeReport(name, label, unavailable=str(error.details()))
            entry = {"outcome": "refused" if refuses(error) else "breach", "problem": str(error.details())}
        report.outcomes[entry["outcome"]] = report.outcomes.get(entry["outcome"], 0) + 1
        report.questions.append({"id": question.id, "query": question.text, "scenario": question.scenario, **entry})
    return report


def refuses(error: grpc.RpcError) -> bool:
    """Whether an error is the refusal for want of evidence, by its status and its reason."""
    told = str(error.details()).lower()
    told += " ".join(str(entry.value).lower() for entry in error.trailing_metadata() or ())
    return error.code() is grpc.StatusCode.FAILED_PRECONDITION and _REASON in told


def outcome(*, asked: str, applied: str, reason: str, answered: bool, domains: int) -> str:
    """Judge a reply of a mode that promises two source domains.

    Args:
        asked: Mode asked for.
        applied: Mode applied, as told.
        reason: Why they differ, as told.
        answered: Whether there is an answer.
        domains: Source domains of the supporting citations.

    Returns:
        "two domains", "fell back" (said so, with a reason), "no answer", or "breach".
    """
    if not answered:
        return "no answer"
    if applied == asked:
        return "two domains" if domains >= DOMAINS_NEEDED else "breach"
    return "fell back" if asked == "verified" and applied == "light" and reason else "breach"


def fragility_of(report: ModeReport, category: Category) -> list[dict[str, Any]]:
    """Fragility scenarios: as told, as counted over what was cited, and over what was expected.

    Args:
        report: Replies to the category's questions.
        category: Category with scenarios.

    Returns:
        One entry per scenario.
    """
    domains = {document.id: document.source_domain for document in category.corpus.documents}
    expected = {question.id: question.expected for question in category.questions}
    return [
        {
            "scenario": entry["scenario"],
            "goal": FRAGILITY_GOALS.get(entry["scenario"]),
            "told": entry.get("fragility"),
            "over_cited": judging.fragility(entry.get("domains", {}), DOMAINS_NEEDED),
            "over_expected": judging.fragility({name: domains[name] for name in expected[entry["id"]]}, DOMAINS_NEEDED),
            "cited": entry.get("domains", {}),
            "load_bearing": entry.get("load_bearing", []),
            "outcome": entry["outcome"],
        }
        for entry in report.questions
        if entry["scenario"]
    ]


def _answered(reply: query_service_pb2.AskResponse, *, mode: str) -> dict[str, Any]:
    supporting = {
        one.source_id: one.source_domain
        for one in reply.citations
        if one.role in (query_service_pb2.CITATION_ROLE_UNSPECIFIED, query_service_pb2.CITATION_ROLE_SUPPORT)
    }
    applied = settings_pb2.AnswerMode.Name(reply.mode.applied).removeprefix("ANSWER_MODE_").lower()
    found = outcome(
        asked=mode,
        applied=applied,
        reason=reply.mode.reason,
        answered=reply.status == query_service_pb2.ANSWER_STATUS_ANSWERED,
        domains=len(set(supporting.values())),
    )
    bearing = set(reply.sufficiency.load_bearing_document_ids)
    return {
        "outcome": found,
        "applied": applied,
        "reason": reply.mode.reason,
        "domains": supporting,
        "fragility": reply.sufficiency.fragility if reply.HasField("sufficiency") else None,
        "load_bearing": sorted({one.source_id for one in reply.citations if one.document_id in bearing}),
    }
