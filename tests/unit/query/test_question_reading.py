"""What a question asks for, and whether evidence holds it."""

import math

import pytest

from services.query.domain.expectation import holds_answer
from services.query.domain.question import AnswerKind, Question, content_terms, read_question
from services.query.domain.values import TermWeight


def read(text: str, *weights: TermWeight) -> Question:
    return read_question(text, weights, floor=0.4, generic=0.5)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("When does the west gate open?", AnswerKind.MOMENT),
        ("Until when is Node.js 22 supported?", AnswerKind.MOMENT),
        ("On which day was Kubernetes 1.30 released?", AnswerKind.MOMENT),
        ("In which year was it built?", AnswerKind.MOMENT),
        ("いつ開きますか", AnswerKind.MOMENT),
        ("Когда открывается архив?", AnswerKind.MOMENT),
        ("What happens when the queue grows?", AnswerKind.ANY),
        ("How many days of annual leave?", AnswerKind.NUMBER),
        ("How long are logs kept?", AnswerKind.NUMBER),
        ("Which port does the relay listen on?", AnswerKind.NUMBER),
        ("What is the daily meal allowance?", AnswerKind.NUMBER),
        ("What does a single ticket cost?", AnswerKind.NUMBER),
        ("Сколько лет?", AnswerKind.NUMBER),
        ("料金はいくらですか", AnswerKind.NUMBER),
        ("Who is the ombudsperson?", AnswerKind.PERSON),
        ("Кто отвечает за архив?", AnswerKind.PERSON),
        ("Where are the fuel cards kept?", AnswerKind.PLACE),
        ("Why did we choose PostgreSQL?", AnswerKind.REASON),
        ("What caused the outage?", AnswerKind.REASON),
        ("Which encryption is used on laptops?", AnswerKind.ANY),
        ("What is the retention period?", AnswerKind.ANY),
    ],
)
def test_kinds(text: str, kind: AnswerKind) -> None:
    assert read(text).kind is kind


@pytest.mark.parametrize(
    ("text", "focus", "counted"),
    [
        ("What is the access phrase for the west gate?", {"access", "phrase"}, set()),
        ("Which encryption is used on laptops?", {"encrypt"}, set()),
        ("How many failed attempts lock an account?", {"fail", "attempt", "lock"}, {"fail", "attempt", "lock"}),
        ("How many days of annual leave?", set(), {"day"}),
        ("What is the price of a ticket?", set(), set()),
        ("In which port is she laid up?", {"port"}, set()),
        ("Is smoking allowed?", set(), set()),
    ],
)
def test_focus(text: str, focus: set[str], counted: set[str]) -> None:
    question = read(text)
    assert question.focus == focus
    assert question.counted == counted


def test_weights_lie_between_floor_and_one() -> None:
    known = TermWeight("relay", math.log(1 + (10 - 5 + 0.5) / 5.5), 5)
    question = read("Does the relay say something about the zorblat, Marit and 2019?", known)
    weights = {term.term: term.weight for term in question.terms}
    assert weights["zorblat"] == weights["marit"] == weights["2019"] == pytest.approx(1.0)
    assert 0.4 < weights["relay"] < 0.7
    assert weights["say"] == pytest.approx(0.5)
    assert [term.term for term in question.terms if term.named] == ["marit", "2019"]


def test_a_known_term_without_records_weighs_like_an_unknown_one() -> None:
    assert [term.weight for term in read("zorblat", TermWeight("zorblat", 0.0, 0)).terms] == [1.0]


def test_each_content_term_comes_once() -> None:
    assert content_terms("The relay, the relays and a port") == ("relay", "port")
    assert [term.term for term in read("relay or relays").terms] == ["relay"]


@pytest.mark.parametrize(
    ("question", "evidence", "holds"),
    [
        ("How many days?", "It takes 27 days.", True),
        ("How many days?", "It takes three days.", True),
        ("How many days?", "It takes days.", False),
        ("How many employees are there?", "Employees may add up to 3 %.", False),
        ("How many passengers?", "passengers: 480; cars: 92", True),
        ("How many incidents happened in 2024?", "Date: 2024.", False),
        ("How often do drills take place?", "Drills take place weekly.", True),
        ("When does it open?", "It opens at 06:00.", True),
        ("When does it open?", "It opens for guests.", False),
        ("When was it released?", "Released on 3 September.", True),
        ("Who is the captain of MS Celeste?", "MS Celeste is the reserve vessel.", False),
        ("Who is the captain of MS Celeste?", "MS Celeste sails under Captain Dahl.", True),
        ("Who signs it?", "The records officer signs it.", True),
        ("Where are the cards?", "They are at the reception.", True),
        ("Where are the cards?", "They have arrived.", False),
        ("Why is it off?", "It is off because of rain.", True),
        ("Why is it off?", "It is off.", False),
        ("Is it off?", "Nothing.", True),
    ],
)
def test_evidence_of_the_kind_asked_for(question: str, evidence: str, holds: bool) -> None:
    assert holds_answer(read(question), evidence) is holds


def test_a_heading_makes_all_below_it_a_reason() -> None:
    assert holds_answer(read("What caused the outage?"), "An expired certificate.", ("Incident", "Cause"))
