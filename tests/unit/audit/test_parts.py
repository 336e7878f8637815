"""The parts of the audit over canned replies."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from affidavit.index.v1 import living_pb2
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2 as pb

from tests.audit import modes, queries, report, states
from tests.audit.auditcrux import Category, Expectation, Question
from tests.audit.corpus import Corpus, CorpusDocument, CorpusQuery
from tests.audit.queries import VARIANTS
from tests.audit.report import Report
from tests.unit.audit.canned import Canned, Refusal

THEN, NOW = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)
KNOWN = {"1": "old", "2": "new"}
OLD = CorpusDocument("old", "", "", b"", accept=("superseded",), basis="relation", truth="superseded", ended_at=NOW)
NEW = CorpusDocument("new", "", "", b"", accept=("active",), basis="default", truth="active", effective_at=NOW)
THEN_QUERY = CorpusQuery("q1", "then?", {"old": 1.0}, "point-in-time", forbidden=("new",), as_of=THEN)
NOW_QUERY = CorpusQuery("q2", "now?", {"new": 1.0}, "current-version", forbidden=("old",))
CORPUS = Corpus("folder", (OLD, NEW), (THEN_QUERY, NOW_QUERY), truth_as_of=NOW)
SUPERSEDED = living_pb2.StateReport(
    document_id="1", state=living_pb2.LIVING_STATE_SUPERSEDED, rule="supersedes", other_document_id="2"
)
ACTIVE = living_pb2.StateReport(document_id="2", state=living_pb2.LIVING_STATE_ACTIVE, rule="default")


def answer(*cited: pb.Citation, explanation: tuple[pb.ConsideredCandidate, ...] = ()) -> pb.AskResponse:
    return pb.AskResponse(status=pb.ANSWER_STATUS_ANSWERED, citations=cited, explanation=explanation)


def test_answers_are_judged_with_roles_states_and_instants() -> None:
    auditor = Canned(
        replies={
            "then?": answer(pb.Citation(document_id="1", state=ACTIVE)),
            "now?": answer(
                pb.Citation(document_id="2", role=pb.CITATION_ROLE_SUPPORT, state=ACTIVE),
                pb.Citation(document_id="1", role=pb.CITATION_ROLE_CONTEXT, state=SUPERSEDED),
            ),
        }
    )
    found = queries.of_corpus(auditor, CORPUS, KNOWN, VARIANTS["v3.1"])
    assert [question["right"] for question in found.questions] == [True, True]
    assert found.questions[1]["cited"] == ["new (active, support)", "old (superseded, context)"]
    assert [options["as_of"] for options in auditor.asked] == [THEN, None]
    assert all(options["source_limit"] == 4 and options["explain"] for options in auditor.asked)


def test_a_miss_tells_where_the_expected_document_went() -> None:
    out = pb.ConsideredCandidate(document_id="2", keyword_rank=3, state=ACTIVE, reason="below the admission threshold")
    auditor = Canned(replies={"now?": answer(pb.Citation(document_id="1"), explanation=(out,))})
    found = queries.of_corpus(auditor, CORPUS, KNOWN, VARIANTS["v1"], ["current-version"])
    (question,) = found.questions
    assert question["problem"] == "expected not among the first 3 cited; forbidden cited as the answer: old"
    assert question["candidates"] == {"new": "candidate 1 (keyword 3, vector -; active): below the admission threshold"}
    assert auditor.asked[0]["as_of"] is None
    assert found.counts["current-version"].right == 0
    text = "\n".join(report.lines(Report(queries=[found])))
    assert "miss v1 q2 [current-version] now?" in text
    assert "expected new: candidate 1" in text


def test_searches_are_judged_by_their_first_documents() -> None:
    results = [pb.SearchResult(document_id="2"), pb.SearchResult(document_id="1")]
    auditor = Canned(results=results)
    found = queries.of_corpus(auditor, CORPUS, KNOWN, VARIANTS["bm25-in-force"])
    assert [question["right"] for question in found.questions] == [False, False]
    assert found.counts["point-in-time"].cited == 1
    options = auditor.asked[0]
    assert (options["as_of"], options["reach"], options["mode"]) == (THEN, living_pb2.REACH_IN_FORCE, "lexical")


def test_the_reference_search_sees_what_was_in_force() -> None:
    auditor = Canned(results=[])
    queries.of_corpus(auditor, CORPUS, KNOWN, VARIANTS["bm25-truth"])
    assert [options["within"] for options in auditor.asked] == [("1",), ("2",)]


def test_a_variant_that_isnt_served_is_a_note() -> None:
    auditor = Canned(refusal=Refusal(grpc.StatusCode.UNIMPLEMENTED, "profile v3.1 is not available yet: use v1"))
    found = queries.of_corpus(auditor, CORPUS, KNOWN, VARIANTS["v3.1"])
    assert found.unavailable == "profile v3.1 is not available yet: use v1"
    assert any("isn't served" in line for line in report.lines(Report(queries=[found])))


def test_states_are_compared_at_the_date_of_the_truth() -> None:
    found = states.of_corpus(Canned(reports={NOW: [ACTIVE]}), CORPUS, KNOWN)
    assert found.counts == {"relation": (0, 1), "default": (1, 1)}
    assert found.misses[0]["state"] == "absent"
    text = "\n".join(report.lines(Report(states=[found])))
    assert "miss folder old [relation]: absent by nothing, accepted superseded" in text


def test_lifecycle_is_read_at_both_instants() -> None:
    rows = (Expectation("old", THEN, "superseded"), Expectation("new", NOW, "active"))
    category = Category("v1", "cat4-temporal", CORPUS, NOW, (), rows)
    now = [SUPERSEDED, ACTIVE]
    found = states.of_category(Canned(reports={NOW: now, THEN: [ACTIVE]}), category, KNOWN)
    assert (found.final, found.at_instant, found.total) == (2, 1, 2)
    (miss,) = found.misses
    assert (miss["id"], miss["reading"], miss["state"]) == ("old", "at its instant", "absent")


@pytest.mark.parametrize(
    ("asked", "applied", "reason", "answered", "domains", "expected"),
    [
        ("verified", "verified", "", True, 2, "two domains"),
        ("verified", "verified", "", True, 1, "breach"),
        ("verified", "light", "insufficient_evidence", True, 1, "fell back"),
        ("verified", "light", "", True, 1, "breach"),
        ("audit", "light", "insufficient_evidence", True, 2, "breach"),
        ("audit", "audit", "", True, 3, "two domains"),
        ("audit", "audit", "", False, 0, "no answer"),
    ],
)
def test_outcomes(*, asked: str, applied: str, reason: str, answered: bool, domains: int, expected: str) -> None:
    found = modes.outcome(asked=asked, applied=applied, reason=reason, answered=answered, domains=domains)
    assert found == expected


def test_replies_of_a_mode_and_their_fragility(tmp_path: Path) -> None:
    reply = pb.AskResponse(
        status=pb.ANSWER_STATUS_ANSWERED,
        citations=[
            pb.Citation(document_id="1", source_id="old", source_domain="x"),
            pb.Citation(document_id="2", source_id="new", source_domain="y"),
        ],
        mode=pb.ModeReport(requested=settings_pb2.ANSWER_MODE_VERIFIED, applied=settings_pb2.ANSWER_MODE_VERIFIED),
        sufficiency=pb.Sufficiency(fragility=1.0, load_bearing_document_ids=["1", "2"]),
    )
    questions = (
        Question("a", "F1?", 10, ("old", "new"), "F1"),
        Question("b", "refused?", 10, ()),
        Question("c", "wrong?", 10, ()),
    )
    replies: dict[str, pb.AskResponse | Refusal] = {
        "F1?": reply,
        "refused?": Refusal(grpc.StatusCode.FAILED_PRECONDITION, "insufficient_evidence: one source domain"),
        "wrong?": Refusal(grpc.StatusCode.FAILED_PRECONDITION, "the crate has no key"),
    }
    found = modes.of_crate(Canned(replies=replies), "v3/cat6", questions, modes.SETTINGS[0], "v3.1")
    assert found.outcomes == {"two domains": 1, "refused": 1, "breach": 1}
    category = Category("v3", "cat6", Corpus("cat6", (OLD, NEW), ()), NOW, questions, ())
    (scenario,) = modes.fragility_of(found, category)
    assert (scenario["told"], scenario["over_cited"], scenario["goal"]) == (1.0, 1.0, 1.0)
    assert scenario["load_bearing"] == ["new", "old"]
    text = "\n".join(report.lines(Report(modes=[found], fragility=[scenario])))
    assert "breach verified v3/cat6 c: wrong?: the crate has no key" in text
    assert "fragility F1: told 1.0, goal 1, over the cited 1" in text
    report.write(Report(modes=[found], fragility=[scenario]), tmp_path / "new" / "audit.json")
    written = json.loads((tmp_path / "new" / "audit.json").read_text())
    assert written["modes"][0]["outcomes"] == found.outcomes
