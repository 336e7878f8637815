"""Reads what a model answered: untidy but complete JSON is fine, everything else is a failure and never mended.

The answer is the first complete JSON value of an agreed shape, whatever stands around it: prose with braces, Markdown
fences, thoughts before it, more text after it. A comma before a closing bracket is the one thing that is overlooked.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from services.proposition.domain.evaluation import Failed, Problem
from services.proposition.domain.grading import CRITERIA, HIGHEST, LOWEST, Scores

MAX_ANSWER_CHARS = 1_000_000
MAX_PROPOSITIONS = 1_000
MAX_TEXT_CHARS = 10_000
# Characters that are looked at for one answer, attempts from every bracket together: bounds the time.
_MAX_WORK = 16_000_000
# What an object or a list of an agreed shape begins with.
_START = re.compile(r'\{\s*"|\[\s*["{]')
# Right before a bracket: it stands within something larger, which wasn't complete.
_NESTED = re.compile(r'(?:"\s*:|\[|["}\]\d]\s*,)\s*$')
_BEFORE_CHARS = 80
# A string, closed or not, or a comma before a closing bracket.
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]++|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL)
_END_OF_THOUGHT = "</think>"
# Line breaks within strings are common and harm nobody.
_DECODER = json.JSONDecoder(strict=False)
_Shape = Callable[[Any], "list[Any] | None"]


def propositions(answer: str) -> tuple[str, ...]:
    """Read the answer of the generation call.

    Args:
        answer: As the model wrote it.

    Returns:
        Statements in order, white space made single, equal ones once.

    Raises:
        Failed: MALFORMED when there is no complete value of an agreed shape, when a statement is blank or unusable, or
            when there are too many; NONE_ACCEPTED when there is none.
    """
    items = _first(answer, _statement_list)
    if len(items) > MAX_PROPOSITIONS:
        raise Failed(Problem.MALFORMED, f"{len(items)} propositions are over {MAX_PROPOSITIONS}")
    texts: dict[str, None] = {}
    for number, item in enumerate(items, 1):
        texts[_statement(number, item if isinstance(item, str) else item["text"])] = None
    if not texts:
        raise Failed(Problem.NONE_ACCEPTED, "the answer lists no proposition")
    return tuple(texts)


def ratings(answer: str, count: int) -> dict[int, Scores]:
    """Read the answer of the grading call.

    Args:
        answer: As the model wrote it.
        count: Statements that were graded, numbered from 1.

    Returns:
        Scores by ordinal: of each statement, and of no other.

    Raises:
        Failed: MALFORMED, MISMATCHED, MISSING_RATING or OUT_OF_RANGE.
    """
    found: dict[int, Scores] = {}
    for item in _first(answer, _rating_list):
        ordinal = item["ordinal"]
        if not _is_integer(ordinal) or not 1 <= ordinal <= count:
            raise Failed(Problem.MISMATCHED, f"a rating is for none of the ordinals 1 to {count}")
        if ordinal in found:
            raise Failed(Problem.MISMATCHED, f"ordinal {ordinal} is rated twice")
        found[ordinal] = _scores(ordinal, item)
    missing = next((ordinal for ordinal in range(1, count + 1) if ordinal not in found), None)
    if missing is not None:
        raise Failed(Problem.MISSING_RATING, f"{len(found)} of {count} propositions are rated, {missing} isn't")
    return found


def _scores(ordinal: int, item: Mapping[str, Any]) -> Scores:
    for name in CRITERIA:
        score = item.get(name)
        if score is None:
            raise Failed(Problem.MISSING_RATING, f"proposition {ordinal} has no score for {name}")
        if not _is_integer(score) or not LOWEST <= score <= HIGHEST:
            raise Failed(
                Problem.OUT_OF_RANGE,
                f"the {name} score of proposition {ordinal} is no integer from {LOWEST} to {HIGHEST}",
            )
    return Scores(**{name: item[name] for name in CRITERIA})


def _statement(number: int, text: str) -> str:
    normalized = unicodedata.normalize("NFC", " ".join(text.split()))
    if not any(character.isalnum() for character in normalized):
        raise Failed(Problem.MALFORMED, f"proposition {number} is blank")
    if len(normalized) > MAX_TEXT_CHARS:
        raise Failed(Problem.MALFORMED, f"proposition {number} has over {MAX_TEXT_CHARS} characters")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in normalized):
        raise Failed(Problem.MALFORMED, f"proposition {number} holds control characters or halves of characters")
    return normalized


def _statement_list(value: Any) -> list[Any] | None:
    """`{"propositions": [...]}`, or the list alone when it isn't empty; entries are texts, or objects with a text."""
    items = value.get("propositions") if isinstance(value, dict) else value
    if not isinstance(items, list) or (items is value and not items):
        return None
    fits = all(
        isinstance(item, str) or (isinstance(item, dict) and isinstance(item.get("text"), str)) for item in items
    )
    return items if fits else None


def _rating_list(value: Any) -> list[Any] | None:
    """`{"ratings": [...]}`, or the list alone when it isn't empty; entries are objects with an ordinal."""
    items = value.get("ratings") if isinstance(value, dict) else value
    if not isinstance(items, list) or (items is value and not items):
        return None
    return items if all(isinstance(item, dict) and "ordinal" in item for item in items) else None


def _first(answer: str, shape: _Shape) -> list[Any]:
    """The first complete value of an agreed shape.

    Raises:
        Failed: MALFORMED when there is none.
    """
    if len(answer) > MAX_ANSWER_CHARS:
        raise Failed(Problem.MALFORMED, f"the answer has over {MAX_ANSWER_CHARS} characters")
    end_of_thought = answer.rfind(_END_OF_THOUGHT)
    for value, end in _values(answer):
        items = shape(value)
        # What stands before the end of a thought is no answer; within a string the tag ends nothing.
        if items is not None and end > end_of_thought:
            return items
    raise Failed(Problem.MALFORMED, "the answer holds no complete JSON value of the agreed form")


def _values(answer: str) -> Iterator[tuple[Any, int]]:
    """Complete JSON values that begin like an agreed one, from outside to inside, and where each ends."""
    work, at = 0, 0
    while (found := _START.search(answer, at)) and work < _MAX_WORK:
        start = found.start()
        if _NESTED.search(answer[max(0, start - _BEFORE_CHARS) : start]):
            at = start + 1
            continue
        work += len(answer) - start
        decoded = _decode(answer, start)
        if decoded is None:
            at = start + 1
            continue
        yield decoded
        at = decoded[1]


def _decode(answer: str, start: int) -> tuple[Any, int] | None:
    """Decode the value that begins at a bracket: as it is, or else without commas that nothing follows."""
    try:
        return _DECODER.raw_decode(answer, start)
    except (ValueError, RecursionError):
        pass
    # Each such comma becomes a space, so that places stay the same.
    tidied = _STRING_OR_COMMA.sub(lambda token: " " if token[0] == "," else token[0], answer[start:])
    try:
        value, length = _DECODER.raw_decode(tidied)
    except (ValueError, RecursionError):
        return None
    return value, start + length


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
