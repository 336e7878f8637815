"""Answers of profile v3.1 against a graph played in memory."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.kernel.errors import NotAvailableYet, PreconditionFailed, Unavailable
from services.query.answering import Ask
from services.query.domain.crate import CrateRules
from services.query.domain.living import Family, LivingState, Moment, Reach, Relation, RelationType, Role, StateReport
from services.query.domain.modes import AnswerMode
from services.query.domain.outcomes import AnswerOutcome
from services.query.domain.values import Passage
from services.query.investigation import NOTHING_IN_FORCE
from tests.unit.query.passages import passage
from tests.unit.query.test_answering_flow import NOW, World

LIGHT, VERIFIED, AUDIT = AnswerMode.LIGHT, AnswerMode.VERIFIED, AnswerMode.AUDIT
OLD = passage("The relay listens on port 7000.", document="old", title="Relay policy")
NEW = passage("The relay listens on port 7443.", document="new", title="Relay policy")
GATE = passage("The west gate opens at 06:00.", document="gate", title="Gate")
QUESTION = "Which port does the relay listen on?"


def report(document: str, state: LivingState = LivingState.ACTIVE, **more: object) -> StateReport:
    return StateReport(document, 1, state, source_id=f"{document}.md", **more)  # type: ignore[arg-type]  # by keyword


def world(*passages: Passage, mode: AnswerMode = LIGHT, downgrade: bool = True) -> World:
    made = World(*passages)
    made.crates.held = CrateRules(mode=mode, allow_downgrade=downgrade, profile="v3.1")
    return made


def versions(*, current: str = "2.0") -> World:
    made = world(OLD, NEW, GATE)
    made.index.reports = {
        "old": report("old", LivingState.SUPERSEDED, family="relay", version="1.9", other_document_id="new"),
        "new": report("new", family="relay", version=current),
        "gate": report("gate"),
    }
    made.index.series = (Family("relay", (made.index.reports["old"], made.index.reports["new"])),)
    made.index.edges = (Relation("new", RelationType.SUPERSEDES, "old"),)
    return made


def cited(answer: AnswerOutcome) -> list[tuple[str, Role]]:
    return [(place.unit.passage.key.document_id, place.role) for place in answer.places]


async def test_what_is_in_force_answers_and_the_moment_is_told() -> None:
    made = versions()
    answer = await made.answerer.ask(Ask("main", QUESTION))
    assert cited(answer)[0] == ("new", Role.SUPPORT)
    assert "old" not in dict(cited(answer))
    assert answer.moment == Moment(NOW, 10)
    assert made.index.views[0].reach is Reach.IN_FORCE
    assert made.receipts.claims[0].evidence[0].role is Role.SUPPORT


async def test_without_anything_in_force_the_rest_answers_and_says_so() -> None:
    made = versions()
    made.index.passages = (OLD,)
    answer = await made.answerer.ask(Ask("main", QUESTION))
    assert cited(answer) == [("old", Role.SUPPORT)]
    assert NOTHING_IN_FORCE in answer.notes
    assert any("old.md is superseded" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("Which port did version 1.9 of the relay policy name?", "old"),
        ("What did the original policy say about the relay port?", "old"),
        ("What was the previous version of the relay policy about its port?", "old"),
        ("What is the latest version of the relay policy about its port?", "new"),
    ],
)
async def test_a_version_intent_picks_the_member_of_the_series(question: str, document: str) -> None:
    answer = await versions().answerer.ask(Ask("main", question))
    assert cited(answer)[0] == (document, Role.SUPPORT)
    assert ("new" if document == "old" else "old") not in dict(cited(answer))
    told = [note for note in answer.notes if "is not current: new.md (version 2.0) is" in note]
    assert bool(told) == (document == "old")


async def test_a_question_about_a_pair_cites_both_halves() -> None:
    answer = await versions().answerer.ask(Ask("main", "What replaced the relay port policy of port 7000?"))
    assert cited(answer)[:2] == [("new", Role.SUPPORT), ("old", Role.CONTEXT)]
    assert "For context: The relay listens on port 7000 [2]." in answer.text


async def test_the_words_of_the_question_give_the_moment_and_the_caller_goes_first() -> None:
    made = versions()
    answer = await made.answerer.ask(Ask("main", "Which port did the relay listen on as of 3 May 2021?"))
    assert answer.moment is not None
    assert answer.moment.as_of == datetime(2021, 5, 3, 23, 59, 59, 999999, tzinfo=UTC)
    assert made.index.asked[0][1] == "Which port did the relay listen on ?"
    mine = datetime(2020, 1, 1, tzinfo=UTC)
    question = "Which port did the relay listen on as of 3 May 2021?"
    answer = await made.answerer.ask(Ask("main", question, moment=Moment(mine, 7)))
    assert answer.moment == Moment(mine, 7)


async def test_profile_v1_knows_no_time() -> None:
    with pytest.raises(NotAvailableYet, match="v1 knows no time"):
        await World().answerer.ask(Ask("main", QUESTION, moment=Moment(NOW)))


async def test_contested_evidence_shows_both_sides() -> None:
    made = world(NEW, replace(GATE, text="The relay must not use that port."), mode=LIGHT)
    made.index.reports = {"new": report("new", LivingState.CONTESTED), "gate": report("gate")}
    made.index.edges = (Relation("gate", RelationType.CONTRADICTS, "new"),)
    answer = await made.answerer.ask(Ask("main", QUESTION, explain=True))
    assert dict(cited(answer)) == {"new": Role.SUPPORT, "gate": Role.CONTRA}
    assert any("contested" in note for note in answer.notes)
    assert {item.reason for item in answer.explanation if item.cited} == {
        "its document is cited: support",
        "its document is cited: contra",
    }


def two_domains(mode: AnswerMode, *, second: str = "other", downgrade: bool = True) -> World:
    more = replace(passage("The relay listens on port 7443, the audit says.", document="b"), source_domain=second)
    made = world(NEW, more, mode=mode, downgrade=downgrade)
    made.index.reports = {"new": report("new"), "b": report("b")}
    return made


@pytest.mark.parametrize("mode", [VERIFIED, AUDIT])
async def test_two_domains_suffice(mode: AnswerMode) -> None:
    answer = await two_domains(mode).answerer.ask(Ask("main", QUESTION))
    assert (answer.mode.requested, answer.mode.applied, answer.mode.reason) == (mode, mode, "")
    assert answer.sufficiency is not None
    assert (answer.sufficiency.domains, answer.sufficiency.fragility) == (("other", "tests"), 1.0)
    assert any(note.startswith("audit: ") for note in answer.notes) == (mode is AUDIT)


async def test_one_domain_falls_back_where_allowed_and_is_refused_elsewhere() -> None:
    answer = await two_domains(VERIFIED, second="tests").answerer.ask(Ask("main", QUESTION))
    reason = "insufficient_evidence: 1 of 2 source domains found (tests)"
    assert (answer.mode.requested, answer.mode.applied, answer.mode.reason) == (VERIFIED, LIGHT, reason)
    for mode, downgrade in ((VERIFIED, False), (AUDIT, True)):
        with pytest.raises(PreconditionFailed, match=r"^insufficient_evidence: 1 of 2 .*\(tests\)"):
            await two_domains(mode, second="tests", downgrade=downgrade).answerer.ask(Ask("main", QUESTION))


@pytest.mark.parametrize("mode", [VERIFIED, AUDIT])
async def test_no_receipt_no_answer(mode: AnswerMode) -> None:
    made = two_domains(mode)
    made.receipts.failure = Unavailable("the receipt service doesn't answer")
    with pytest.raises(Unavailable, match="needs a signed receipt"):
        await made.answerer.ask(Ask("main", QUESTION))
    assert made.answers.facts == []


async def test_the_same_question_gives_the_same_bytes() -> None:
    answers = [await versions().answerer.ask(Ask("main", QUESTION, explain=True)) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
