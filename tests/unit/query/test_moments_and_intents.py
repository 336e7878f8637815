"""Points in time and intents, read from the words of a question."""

from datetime import UTC, datetime, timedelta

import pytest

from services.query.domain.intent import VersionWish, read_intent
from services.query.domain.living import Family, LivingState, Reach, Relation, RelationType, StateReport
from services.query.domain.moments import read_point_in_time
from services.query.domain.versions import in_line, same_version, series_of, version_note, wanted_member

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def day(year: int, month: int = 1, date: int = 1) -> datetime:
    return datetime(year, month, date, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "after"),
    [
        ("What is the policy as of 3 May 2021?", day(2021, 5, 4)),
        ("What is the policy as of May 3rd, 2021?", day(2021, 5, 4)),
        ("What is the policy as of 2021-05-03?", day(2021, 5, 4)),
        ("What was valid in 2021-05?", day(2021, 6)),
        ("Which rule was in force in 2021?", day(2022)),
        ("What was the limit in March 2019?", day(2019, 4)),
        ("What was the limit in December 2019?", day(2020)),
        ("Which rule applied before 2020?", day(2020)),
        ("What did it say at the end of 2018?", day(2019)),
        ("What held in force as of Q2 2020?", day(2020, 7)),
        ("What did the policy say in 2019?", day(2020)),
    ],
)
def test_points_in_time_stand_for_the_last_instant(question: str, after: datetime) -> None:
    point = read_point_in_time(question, NOW)
    assert point is not None
    assert point.as_of == after - timedelta(microseconds=1)


def test_a_start_stands_for_the_first_instant_and_an_open_period_for_now() -> None:
    start = read_point_in_time("What held at the beginning of 2020?", NOW)
    assert start is not None
    assert (start.as_of, start.text) == (day(2020), "What held ?")
    point = read_point_in_time("What rule is in force in 2026?", NOW)
    assert point is not None
    assert point.as_of == NOW
    later = read_point_in_time("What rule is in force in 2030?", NOW)
    assert later is not None
    assert later.as_of > NOW


@pytest.mark.parametrize(
    "question",
    [
        "How many staff does the 2020 plan name?",
        "Which statement replaced the old one in 2024?",
        "Who was elected in January 2019?",
        "What holds as of 2021-02-30?",
        "What is in the plan for release 2020.1?",
        "What comes in 2020?",
    ],
)
def test_other_questions_name_none(question: str) -> None:
    assert read_point_in_time(question, NOW) is None


@pytest.mark.parametrize(
    ("question", "wish", "reach"),
    [
        ("What did version 1.9 say?", VersionWish.EXPLICIT, Reach.EVERY),
        ("What did the original policy say?", VersionWish.ORIGINAL, Reach.EVERY),
        ("What is the current policy?", VersionWish.CURRENT, Reach.IN_FORCE),
        ("What did the previous version say?", VersionWish.PREVIOUS, Reach.EVERY),
        ("What was the rule before remote work was introduced?", VersionWish.PREVIOUS, Reach.EVERY),
        ("What was paid until the travel change?", VersionWish.PREVIOUS, Reach.EVERY),
        ("How is leave requested?", VersionWish.NONE, Reach.IN_FORCE),
        ("When was the first release candidate planned?", VersionWish.NONE, Reach.IN_FORCE),
    ],
)
def test_version_wishes(question: str, wish: VersionWish, reach: Reach) -> None:
    intent = read_intent(question)
    assert (intent.version, intent.reach) == (wish, reach)


@pytest.mark.parametrize(
    "question",
    ["Was the proposal accepted?", "Is the rule still in force?", "What became of the plan?", "May I use it?"],
)
def test_status_intents_look_at_everything(question: str) -> None:
    intent = read_intent(question.replace("May I use", "May I still use"))
    assert intent.status
    assert intent.reach is Reach.EVERY


def test_pairs_name_their_relations() -> None:
    assert read_intent("What replaced the leave policy?").pair[0] is RelationType.SUPERSEDES
    assert RelationType.IMPLEMENTS in read_intent("What is the rationale of the cache and where is its runbook?").pair
    assert read_intent("Which design does the signing build upon?").pair == (
        RelationType.DERIVED_FROM,
        RelationType.ELABORATES,
    )
    assert read_intent("Which studies contradict the claim?").contested


def member(name: str, version: str, state: LivingState = LivingState.ACTIVE) -> StateReport:
    return StateReport(name, 1, state, family="f", version=version)


def test_members_are_picked_by_wish() -> None:
    family = Family(
        "f",
        (
            member("a", "3.0.0", LivingState.SUPERSEDED),
            member("b", "3.0.1"),
            member("c", "3.1.0", LivingState.SUPERSEDED),
            member("d", "3.2"),
        ),
    )

    def picked(question: str) -> str:
        found = wanted_member(family, read_intent(question))
        return found.document_id if found else ""

    assert picked("What does version 3.0.0 say?") == "a"
    assert picked("What does version 3.0 say?") == "b"
    assert picked("What does version 3.2.0 say?") == "d"
    assert picked("What does version 9 say?") == ""
    assert picked("What does the latest version say?") == "d"
    assert picked("What did the first version say?") == "a"
    assert picked("What did the previous version say?") == "c"
    assert version_note(family.members[3], family) == ""
    assert "d (version 3.2) is" in version_note(family.members[0], family)


def test_versions_are_compared_by_their_parts() -> None:
    assert same_version("v1.0", "1")
    assert not same_version("1.10", "1.1")
    assert in_line("3.0", "3.0.4")
    assert not in_line("3.0", "3.10")


def test_a_cycle_of_supersession_ends() -> None:
    edges = (Relation("a", RelationType.SUPERSEDES, "b"), Relation("b", RelationType.SUPERSEDES, "a"))
    family = series_of("a", edges, {"a": member("a", ""), "b": member("b", "")})
    assert family is not None
    assert len(family.members) == 2
