"""Units of evidence and how they are weighed."""

import numpy as np
import pytest

from services.query.domain import evidence
from services.query.domain.evidence import EvidenceRule, Meanings, SoftMatch, Vector
from services.query.domain.question import Question, read_question
from services.query.domain.units import Unit, identifier_terms, units_of
from services.query.domain.values import Form
from tests.unit.query.passages import passage

SOFT = SoftMatch(low=0.4, high=0.8, most=0.9, near=0.6, body=0.4)
RULE = EvidenceRule(
    coverage=4.0,
    own=2.0,
    name_missing=-2.0,
    number_missing=-1.0,
    focus_missing=-2.0,
    meaning=2.0,
    holds=1.0,
    bias=-5.0,
)


def read(text: str) -> Question:
    return read_question(text, (), floor=0.4, generic=0.5)


def axis(*numbers: float) -> Vector:
    return np.asarray(numbers, dtype=np.float32)


def units(text: str, title: str = "") -> tuple[Unit, ...]:
    return units_of(passage(text, title=title))


def test_sentences_know_their_surroundings() -> None:
    first, second, third = units("# Relay\n\nIt starts. It listens on port 7443. It stops.", title="Kiosk manual")
    assert [unit.text for unit in (first, second, third)] == ["It starts.", "It listens on port 7443.", "It stops."]
    assert {"kiosk", "manual"} <= second.head
    assert "listen" in first.near
    assert "listen" not in first.own
    assert "start" not in third.near
    assert {"relay", "start"} <= third.body


def test_rows_are_judged_by_themselves_and_by_what_names_the_file() -> None:
    table = passage(
        "PostgreSQL,14,2026-11-12\nPostgreSQL,13,2021-09-14",
        context="product,release_cycle,eol",
        form=Form.STRUCTURED,
        media_type="text/csv",
        source_id="support/eol-dates.csv",
    )
    fourteen, thirteen = units_of(table)
    assert fourteen.text == "product: PostgreSQL; release_cycle: 14; eol: 2026-11-12"
    assert {"14", "2026-11-12", "2026", "cycl", "life"} <= fourteen.own
    assert "14" not in thirteen.body
    assert {"date", "releas"} <= fourteen.head


def test_values_beside_records_speak_about_them() -> None:
    text = '{"product": "Ruby", "releases": [{"cycle": "3.3", "eol": "2027-03-31"}]}'
    record, scalar = units_of(passage(text, form=Form.STRUCTURED, media_type="application/json"))
    assert {"rubi", "releas"} <= record.head
    assert scalar.text == "product: Ruby"
    assert "3.3" in scalar.body


def test_a_leaf_says_what_encloses_it() -> None:
    text = "database:\n  pool_size: 40\n"
    (unit,) = units_of(passage(text, form=Form.STRUCTURED, media_type="application/yaml"))
    assert unit.text == "database > pool_size: 40"


def test_structured_content_without_records_is_read_as_sentences() -> None:
    (unit,) = units_of(passage("just words", form=Form.STRUCTURED, media_type="application/json"))
    assert unit.text == "just words"


def test_identifiers_are_split_and_spelled_out() -> None:
    assert identifier_terms("latestReleaseDate") == {"latest", "releas", "date"}
    assert {"eol", "end", "life", "support"} <= identifier_terms("eol_column")
    assert "releas" in units("The releaseDate is 7.")[0].own


def test_titles_go_along_when_meaning_is_asked() -> None:
    (unit,) = units_of(passage("It carries 480 passengers.", title="MS Aurelia", headings=("Fleet", "Capacity")))
    assert unit.meaning_text == "MS Aurelia Capacity It carries 480 passengers."
    assert unit.names == "MS Aurelia Fleet Capacity"
    assert units_of(passage("Alone"))[0].meaning_text == "Alone"


def test_words_near_by_count_less_than_words_in_place() -> None:
    text = "The kiosk is red.\nIt hums.\nIt sells tickets.\nIt sleeps.\n\nNobody knows."
    found = units(text.replace("\n", " "), title="Station")
    question = read("station kiosk")
    shares = [evidence.weigh(question, unit, soft=SOFT, meanings=None).coverage for unit in found]
    assert shares == pytest.approx([1.0, 0.8, 0.7, 0.7, 0.7])


def test_names_and_numbers_have_to_stand_somewhere() -> None:
    (unit,) = units("She carries 360 passengers.", title="MS Borealis")
    missing = evidence.weigh(read("How many passengers does MS Dorothea carry?"), unit, soft=SOFT, meanings=None)
    assert (missing.name_missing, missing.number_missing) == (1.0, 0.0)
    held = evidence.weigh(read("How many passengers does MS Borealis carry?"), unit, soft=SOFT, meanings=None)
    assert held.name_missing == 0.0
    year = evidence.weigh(read("How many passengers sailed in 2019?"), unit, soft=SOFT, meanings=None)
    assert (year.name_missing, year.number_missing) == (1.0, 0.0)
    number = evidence.weigh(read("Do the 12 passengers sail?"), unit, soft=SOFT, meanings=None)
    assert (number.name_missing, number.number_missing) == (0.0, 1.0)


def test_the_thing_asked_for_has_to_be_there() -> None:
    (unit,) = units("The west gate opens at 06:00.")
    signals = evidence.weigh(read("What is the access phrase for the west gate?"), unit, soft=SOFT, meanings=None)
    assert signals.focus_missing == 1.0
    assert signals.score(RULE) < 0


def test_words_of_like_meaning_earn_credit() -> None:
    (unit,) = units("Logs are kept for a year.")
    question = read("retained logs")
    vectors = {"retained": axis(1, 0), "kept": axis(0.7, 0.714), "logs": axis(0, 1), "year": axis(0, 1)}
    meanings = Meanings(axis(1, 0), vectors)
    signals = evidence.weigh(question, unit, soft=SOFT, meanings=meanings)
    expected = (1.0 + SOFT.credit(0.7)) / 2
    assert signals.coverage == pytest.approx(expected)
    assert signals.own == pytest.approx(expected)
    assert signals.meaning == 0.0
    assert (SOFT.credit(0.1), SOFT.credit(0.95)) == (0.0, 0.9)


def test_a_name_has_no_like() -> None:
    (unit,) = units("Norway is cold.")
    meanings = Meanings(axis(1, 0), {"sweden": axis(1, 0), "norway": axis(1, 0)})
    assert evidence.weigh(read("is Sweden"), unit, soft=SOFT, meanings=meanings).coverage == 0.0


def test_what_was_not_embedded_has_no_cosine() -> None:
    meanings = Meanings(axis(1, 0), {"a": axis(0.6, 0.8)})
    assert meanings.cosine("a") == pytest.approx(0.6)
    assert meanings.cosine("b") == meanings.nearest("b", ("a",)) == meanings.nearest("a", ()) == 0.0


def test_the_shortlist_keeps_what_covers_most_in_the_order_of_passages() -> None:
    found = units("Nothing here. The relay is on. Nothing again. The relay port is 7443.")
    chosen = evidence.shortlist(read("relay port"), found, soft=SOFT, limit=2)
    assert [unit.text for unit in chosen] == ["The relay is on.", "The relay port is 7443."]


def test_texts_to_embed_are_distinct_and_bounded() -> None:
    found = units("Logs are kept. Logs are kept for long.", title="Log manual")
    texts = evidence.texts_to_embed(read("retained logs"), found, limit=100)
    assert texts[:3] == ("Log manual Logs are kept.", "Log manual Logs are kept for long.", "retained")
    assert {"logs", "kept", "manual"} <= set(texts)
    assert len(set(texts)) == len(texts)
    assert len(evidence.texts_to_embed(read("retained logs"), found, limit=2)) == 2
    assert evidence.texts_to_embed(read("logs kept"), units("Logs kept"), limit=9) == ("Logs kept",)
    assert evidence.texts_to_embed(read("Каков срок?"), found, limit=9) == ()


def test_units_are_ranked_by_the_rule_and_ties_keep_their_order() -> None:
    found = units("It hums. The relay listens on port 7443. It sings.")
    ranked = evidence.rank(read("Which port does the relay listen on?"), found, soft=SOFT, rule=RULE, meanings=None)
    assert [item.unit.text for item in ranked] == ["The relay listens on port 7443.", "It hums.", "It sings."]
    assert ranked[0].score > 0 > ranked[1].score


def test_a_question_without_content_scores_by_the_bias() -> None:
    (unit,) = units("It is.")
    signals = evidence.weigh(read("what is it"), unit, soft=SOFT, meanings=None)
    assert (signals.coverage, signals.own) == (0.0, 0.0)
