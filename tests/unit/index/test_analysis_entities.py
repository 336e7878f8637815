"""Names, dates, numbers and ids of informal content."""

from __future__ import annotations

import time

import pytest

from services.index.domain.analysis import analyse_query, entities


def test_speakers_mentions_and_addresses() -> None:
    assert entities("[10:32] maria: ask @jonas or ops@example.org\nmax planck: fine")[:8] == [
        "maria",
        "max",
        "planck",
        "jona",
        "op",
        "exampl",
        "org",
        "ops@example.org",
    ]


@pytest.mark.parametrize("written", ["2026-03-01", "2026/3/1", "1 March 2026", "1st Mar. 2026", "March 1, 2026"])
def test_a_date_is_found_in_every_spelling(written: str) -> None:
    found = entities(f"we ship on {written}, promised")
    assert set(analyse_query("2026-03-01")) <= set(found)
    assert set(analyse_query("1 March 2026")) <= set(found)


@pytest.mark.parametrize("written", ["2026-13-01", "99.99.2026", "2026-01-32", "0 May 2026"])
def test_what_is_no_date_stays_as_it_is(written: str) -> None:
    assert entities(written) == list(dict.fromkeys(entities(written)))
    assert not any(month in entities(written) for month in ("januari", "decemb"))


def test_ids_and_numbers() -> None:
    found = entities("invoice INV-2031 over 1,200 euros, part qx9")
    assert {"inv2031", "1200", "qx9"} <= set(found)
    assert not {"invoic", "over", "euro", "part"} & set(found)


def test_capitalised_runs_but_not_a_lone_sentence_start() -> None:
    found = entities("Then Ada Lovelace called. Nobody in Berlin knew. NASA did. The Gateway too")
    assert {"ada", "lovelac", "berlin", "nasa", "gateway"} <= set(found)
    assert not {"then", "nobodi", "the", "call"} & set(found)


def test_terms_are_distinct() -> None:
    assert entities("at 7 at 7 at 7") == ["7"]


def test_text_without_names_gives_nothing() -> None:
    assert entities("so we went there and talked") == []
    assert entities("") == []


@pytest.mark.parametrize("nasty", ["A ", "1-", "[x", "a.", "@", "a", "jan ", "\n", "a@", "\n- ", "a.b@", "A-", ": "])
def test_time_is_linear_on_hostile_text(nasty: str) -> None:
    small, large = (nasty * (size // len(nasty)) for size in (20_000, 200_000))
    began = time.process_time()
    entities(small)
    between = time.process_time()
    entities(large)
    ended = time.process_time()
    assert ended - between < 40 * (between - began) + 0.5
