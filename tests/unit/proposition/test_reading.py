"""Untidy but complete answers are read; truncated, mismatched and out-of-range ones are failures."""

from __future__ import annotations

import json

import pytest

from services.proposition.domain import reading
from services.proposition.domain.evaluation import Failed, Problem
from services.proposition.domain.grading import Scores

DEPOT = [
    "The Aldgate depot opened in 1998.",
    "The Aldgate depot was rebuilt in 2011 after a flood.",
    "Since 2011 the Aldgate depot stores only dry goods.",
    "The Aldgate depot is the largest depot in the country.",
]
# The whole of a case that many programs were bitten by: prose with braces, a fence, two commas too many, closing prose.
UNTIDY = """Here is the result for {passage}:
```json
{"propositions": [
  {"text": "The Aldgate depot opened in 1998."},
  {"text": "The Aldgate depot was rebuilt in 2011 after a flood."},
  {"text": "Since 2011 the Aldgate depot stores only dry goods."},
  {"text": "The Aldgate depot is the largest depot in the country."},
],}
```
Tell me if [more] is needed."""
AGREED = json.dumps({"propositions": [{"text": text} for text in DEPOT]})


def problem(answer: str) -> Problem:
    with pytest.raises(Failed) as caught:
        reading.propositions(answer)
    return caught.value.problem


@pytest.mark.parametrize(
    "answer",
    [
        UNTIDY,
        AGREED,
        f"  \n{AGREED}\n\n",
        f"```json\n{AGREED}\n```",
        f"```\n{AGREED}",
        f"Sure! {AGREED} See [1] and [docs], {{or}} ask.",
        f"{AGREED}{AGREED}",
        f'{AGREED} {{"propositions": [{{"text": "Another one."}}]}}',
        json.dumps({"propositions": DEPOT}),
        json.dumps(DEPOT),
        f"The list:\n{json.dumps(DEPOT)}",
        json.dumps([{"text": text} for text in DEPOT]),
        json.dumps({"note": "x", "propositions": [{"text": text, "source": 1} for text in DEPOT]}),
        json.dumps({"propositions": [DEPOT[0], *({"text": text} for text in DEPOT[1:])]}),
        f'<think>Is it {{this}} or [that]? {{"a": 1}}</think>{AGREED}',
        f'<think>I might say {{"propositions": [{{"text": "A wild guess."}}]}} here.</think>\n{AGREED}',
        f'I might say {{"propositions": ["A wild guess."]}} here.</think>{AGREED}',
        f'The form {{"a": "b"}} is known, and ["x"] is not. [1, 2] {{}} [] {AGREED}'.replace('["x"]', "[x]"),
        AGREED.replace("}, {", "},\n\t{").replace("]}", ",\n]\n,\n}"),
    ],
)
def test_untidy_but_complete_answers_are_read(answer: str) -> None:
    assert list(reading.propositions(answer)) == DEPOT


@pytest.mark.parametrize(
    "text",
    [
        "The command ```rm``` deletes files, and {x} and [y], stay.",
        'A quote " and a brace } and "} too, ] end,]',
        "A back\\slash, a comma,} and </think> stand here.",
        "日本語の文。",
    ],
)
def test_what_stands_in_a_string_ends_nothing(text: str) -> None:
    tidy = json.dumps({"propositions": [{"text": text}]}, ensure_ascii=False)
    untidy = f"```json\n{tidy[:-2]},],}}\n```\nDone."
    assert reading.propositions(tidy) == (text,)
    assert reading.propositions(untidy) == (text,)


def test_line_breaks_within_a_string_and_spaces_become_one_space() -> None:
    assert reading.propositions('{"propositions": [{"text": " One\n  fact.\t"}]}') == ("One fact.",)


def test_equal_statements_count_once() -> None:
    answer = json.dumps({"propositions": ["Zoë is 5.", "Zoe\u0308  is 5. ", "Zoë is 6.", "zoë is 5."]})
    assert reading.propositions(answer) == ("Zoë is 5.", "Zoë is 6.", "zoë is 5.")


@pytest.mark.parametrize("cut", range(1, len(AGREED)))
def test_no_answer_that_is_cut_off_is_read(cut: int) -> None:
    for text in (AGREED, json.dumps({"propositions": DEPOT}), json.dumps(DEPOT)):
        for end in ("", "\n```\nTell me if [more] is needed."):
            if cut < len(text):
                assert problem(text[:cut] + end) is Problem.MALFORMED


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "No.",
        "[]",
        "{}",
        "null",
        '"text"',
        "[1]",
        "[docs]",
        "Nothing [1] was {found}.",
        '{"statements": ["A fact."]}',
        '{"propositions": "A fact."}',
        '{"propositions": {"text": "A fact."}}',
        '{"propositions": [{"fact": "A fact."}]}',
        '{"propositions": [1]}',
        '{"propositions": [{"text": null}]}',
        '{"propositions": [["A fact."]]}',
        '{"propositions": [["A fact."], ["Another."]}',
        '{"propositions": [{"text": "A fact."} {"text": "Another."}]}',
        '{"propositions": [{"text": "A fact."},,]}',
        "{'propositions': [{'text': 'A fact.'}]}",
        '{"result": {"propositions": ["A fact."]}}',
        '[{"propositions": ["A fact."]}]',
        '[{"propositions": ["A fact."]}, {"propositions": ["Another."]}',
        '{"propositions": ["A fact.", ""]}',
        '{"propositions": ["A fact.", " \\n "]}',
        '{"propositions": ["A fact.", "..."]}',
        '{"propositions": ["A \\u0000 fact."]}',
        '{"propositions": ["A \\ud800 fact."]}',
        '<think>{"propositions": ["A fact."]}</think>',
        json.dumps([f"Fact {number}." for number in range(1_001)]),
        json.dumps(["x" * 10_001]),
        json.dumps(["x" * 1_000_001]),
        "[" * 100_000,
        '{"a":' * 100_000,
        '["' * 100_000,
        '"\\' * 100_000,
        '{"a": ' + "9" * 10_000 + "}",
    ],
)
def test_everything_else_is_malformed(answer: str) -> None:
    assert problem(answer) is Problem.MALFORMED


def test_a_thousand_statements_are_read() -> None:
    assert len(reading.propositions(json.dumps([f"Fact {number}." for number in range(1_000)]))) == 1_000


def test_an_empty_list_accepts_none() -> None:
    assert problem('{"propositions": []}') is Problem.NONE_ACCEPTED


@pytest.mark.parametrize("piece", ['{"', '["', '{"a":[', '{"a":1,}', '["\\"', '{"a":"', '[{"', "{", ",]"])
def test_brackets_that_lead_nowhere_are_tried_a_bounded_number_of_times(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    decode = reading._decode

    def counted(answer: str, start: int) -> tuple[object, int] | None:
        tried.append(start)
        return decode(answer, start)

    monkeypatch.setattr(reading, "_decode", counted)
    assert problem(piece * (1_000_000 // len(piece))) is Problem.MALFORMED
    assert len(tried) <= 20


def test_diagnostics_hold_no_content() -> None:
    for answer in ('{"propositions": ["CANARY", ""]}', '{"propositions": ["CANARY \\u0000"]}', "CANARY"):
        with pytest.raises(Failed) as caught:
            reading.propositions(answer)
        assert "CANARY" not in str(caught.value)
        assert caught.value.__cause__ is None


def rating(ordinal: object = 1, **scores: object) -> dict[str, object]:
    return {"ordinal": ordinal, "fidelity": 9, "clarity": 8, "completeness": 10, "focus": 7} | scores


def rated(*items: object) -> str:
    return json.dumps({"ratings": items})


GOOD = Scores(9, 8, 10, 7)


@pytest.mark.parametrize(
    "answer",
    [
        rated(rating(1), rating(2)),
        rated(rating(2), rating(1)),
        json.dumps([rating(1), rating(2)]),
        f"<think>[1] {{}} </think>```json\n{rated(rating(1), rating(2))[:-2]},],}}\n```\nAll [2] rated.",
        rated(rating(1, why="clear"), rating(2)),
    ],
)
def test_ratings_are_read_by_ordinal(answer: str) -> None:
    assert reading.ratings(answer, 2) == {1: GOOD, 2: GOOD}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", Problem.MALFORMED),
        (rated(rating(1), rating(2))[:-3], Problem.MALFORMED),
        (rated(rating(1), rating(2))[:-1], Problem.MALFORMED),
        (rated(rating(1), "2"), Problem.MALFORMED),
        (rated(rating(1), {"fidelity": 9}), Problem.MALFORMED),
        ('{"ratings": {"1": 9}}', Problem.MALFORMED),
        (rated(rating(1), rating(3)), Problem.MISMATCHED),
        (rated(rating(0), rating(1)), Problem.MISMATCHED),
        (rated(rating(1), rating(2), rating(3)), Problem.MISMATCHED),
        (rated(rating(1), rating(1)), Problem.MISMATCHED),
        (rated(rating("1"), rating(2)), Problem.MISMATCHED),
        (rated(rating(1.0), rating(2)), Problem.MISMATCHED),
        (rated(rating(True), rating(2)), Problem.MISMATCHED),
        (rated(rating(None), rating(2)), Problem.MISMATCHED),
        (rated(), Problem.MISSING_RATING),
        (rated(rating(1)), Problem.MISSING_RATING),
        (rated(rating(2)), Problem.MISSING_RATING),
        (rated(rating(1), rating(2, clarity=None)), Problem.MISSING_RATING),
        (rated(rating(1), {"ordinal": 2, "fidelity": 9, "clarity": 9, "focus": 9}), Problem.MISSING_RATING),
        (rated(rating(1), rating(2, fidelity=0)), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus=11)), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus=-9)), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus=9.0)), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus=8.5)), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus="9")), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus=True)), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus=[9])), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus=float("nan"))), Problem.OUT_OF_RANGE),
        (rated(rating(1), rating(2, focus=10**30)), Problem.OUT_OF_RANGE),
    ],
)
def test_ratings_that_don_t_fit_are_failures(answer: str, expected: Problem) -> None:
    with pytest.raises(Failed) as caught:
        reading.ratings(answer, 2)
    assert caught.value.problem is expected
    assert caught.value.diagnostics
