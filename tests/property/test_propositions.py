"""Whatever a model answers is read or refused, never mended, and always in the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from services.proposition.domain import prompts, reading
from services.proposition.domain.evaluation import Failed, Source
from services.proposition.domain.grading import CRITERIA, Scores, graded

PIECES = (
    '{"propositions": [', '{"text": "', '"}', "]}", '{"ratings": [', '{"ordinal": 1, ', '"fidelity": 9, ', '"focus": 10}', "]", "[",
    "{", "}", ",", ":", '"', "\\", '\\"', "```json\n", "```", "<think>", "</think>", " ", "\n", "A fact.", "9", "-1", "1e999", "NaN",
    "null", "true", "\ud800", "\\ud800", "語", "\x00", '["A fact."]', '{"propositions": ["A fact."]}', "[1]",
)  # fmt: skip
ANSWERS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.text(max_size=200))
FACTS = st.text(st.sampled_from('ab AZ.,{}[]":\\`<>/語é\n'), min_size=1, max_size=40).map(lambda text: f"x{text}")
PROSE = st.text(st.sampled_from("ab AZ.,{}[]:`語é\n"), max_size=40)
SCORES = st.integers(1, 10)
T = TypeVar("T")


def outcome(read: Callable[[], T]) -> T | None:
    """What was read; None when it was refused. Anything else that is raised fails the test."""
    try:
        return read()
    except Failed:
        return None


@settings(deadline=None)
@given(ANSWERS, st.integers(1, 5))
def test_any_answer_is_read_or_refused(answer: str, count: int) -> None:
    texts = outcome(lambda: reading.propositions(answer))
    if texts is not None:
        assert 1 <= len(texts) == len(set(texts)) <= reading.MAX_PROPOSITIONS
        for text in texts:
            assert text == " ".join(text.split())
            # Packs hold UTF-8.
            assert text.encode()
    scores = outcome(lambda: reading.ratings(answer, count))
    assert scores is None or set(scores) == set(range(1, count + 1))


def untidy(value: Any, before: str, after: str, *, fenced: bool, commas: bool) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if commas:
        # Only the outermost brackets, which are no part of a string.
        text = f"{text[:-2]},]\n,}}"
    return f"{before}\n```json\n{text}\n```\n{after}" if fenced else f"{before}\n{text}\n{after}"


@settings(deadline=None)
@given(st.lists(FACTS, min_size=1, max_size=5), PROSE, PROSE, st.booleans(), st.booleans())
def test_what_stands_around_an_answer_changes_nothing(
    facts: list[str], before: str, after: str, fenced: bool, commas: bool
) -> None:
    value = {"propositions": [{"text": fact} for fact in facts]}
    # A bracket right before the answer would make it a part of something larger.
    answer = untidy(value, f"{before} Here:", after, fenced=fenced, commas=commas)
    assert reading.propositions(answer) == reading.propositions(json.dumps(facts))


@settings(deadline=None)
@given(st.lists(FACTS, min_size=1, max_size=5), st.data())
def test_no_beginning_of_an_answer_is_an_answer(facts: list[str], data: st.DataObject) -> None:
    whole = json.dumps({"propositions": [{"text": fact} for fact in facts]}, ensure_ascii=False)
    cut = data.draw(st.integers(0, len(whole) - 1))
    after = data.draw(st.sampled_from(["", "\n```", "\nTell me if [more] is needed.", " }", "]"]))
    if outcome(lambda: reading.propositions(whole[:cut] + after)) is not None:
        # The one way: what was put behind it happens to be just what was missing.
        assert json.loads(whole[:cut] + after.strip()) == json.loads(whole)


@settings(deadline=None)
@given(st.lists(st.tuples(SCORES, SCORES, SCORES, SCORES), min_size=1, max_size=6), st.randoms())
def test_only_those_with_every_score_of_8_or_more_are_accepted(
    scores: list[tuple[int, int, int, int]], random: Any
) -> None:
    items = [{"ordinal": number} | dict(zip(CRITERIA, each, strict=True)) for number, each in enumerate(scores, 1)]
    random.shuffle(items)
    found = reading.ratings(json.dumps({"ratings": items}), len(scores))
    assert found == {number: Scores(*each) for number, each in enumerate(scores, 1)}
    statements = graded(["x"] * len(scores), found)
    assert [statement.accepted for statement in statements] == [min(each) >= 8 for each in scores]


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=20), st.lists(st.text(max_size=20), max_size=3), st.text(max_size=20))
def test_no_passage_ends_its_own_quotation(text: str, title: str, headings: list[str], context: str) -> None:
    source = Source(text=text, title=title, heading_path=tuple(headings), context=context)
    once = prompts.generation(source)[-1].content
    around = once.split("\n")[1]
    # Said once, and put before and behind the data.
    assert once.count(around) == 3
    # Even a passage that quotes the marker of itself.
    again = prompts.generation(Source(text=f"{text}\n{around}"))[-1].content
    assert again.count(again.split("\n")[1]) == 3
