"""What a question asks for: its content terms, their weights, and the kind of thing an answer has to hold."""

# ruff: noqa: RUF001, SIM905  (signs and words of other scripts are meant; lists of words read best as text)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import regex

from services.query.domain.admission import idf_of_unknown
from services.query.domain.values import TermWeight
from services.query.domain.words import Word, words


class AnswerKind(Enum):
    """Kind of thing that an answer has to hold."""

    ANY = "any"
    NUMBER = "number"
    MOMENT = "moment"
    PERSON = "person"
    PLACE = "place"
    REASON = "reason"


@dataclass(frozen=True, slots=True)
class QuestionTerm:
    """A term of the question that carries content.

    Attributes:
        term: Analysed.
        surface: As it stands in the question.
        weight: How much of the question rests on it.
        named: True for a name or a number: only the very same will do.
        start: Code points into the question.
    """

    term: str
    surface: str
    weight: float
    named: bool
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read.

    Attributes:
        text: As asked.
        kind: What an answer has to hold.
        terms: Content terms, each once, in order.
        focus: Those among the terms that name the thing asked for ("access phrase" in "what is the access phrase").
        counted: Terms of the thing that "how many" counts; empty for other questions.
    """

    text: str
    kind: AnswerKind
    terms: tuple[QuestionTerm, ...]
    focus: frozenset[str]
    counted: frozenset[str] = frozenset()


# Words that paraphrase easily or hold for anything in a house's documents: less rests on them.
GENERIC_WORDS = frozenset(
    """
    accept accepted allow allowed apply applies ask asked available begin begins belong belongs bring called carry
    carries change changed choose chosen close closes come comes company consist contain contains cost costs current
    currently day days date end ends employee employees exist exists find found general happen happens have hold holds
    hour hours include included includes introduced keep kept keeps kind know last latest leave leaves long main
    minimum maximum month months name named names new number numbers offer offered offers open opens organisation
    organization paid part pay pays people person place planned possible provide provided provides put reach reached
    receive received receives require required requires responsible run runs said say says set staff start started
    starts stop take takes team thing things time times today type types valid want way ways week weeks work works year
    years
    """.split()
)

_FLAGS = regex.IGNORECASE | regex.V1
_KINDS = (
    (
        AnswerKind.MOMENT,
        regex.compile(
            r"^\W*(?:(?:and|so|but|or|until|till|since|from|by|а|и|до|с)\s+){0,2}(?:when|когда)\b|\b(?:(?:on|until|since|by|from|at|in)\s+(?:what|which)\s+(?:day|date|time|year|month|hour|weekday)"
            r"|(?:what|which)\s+(?:day|date|time|year|month|weekday)|what\s+is\s+the\s+(?:\w+\s+){0,2}(?:date|deadline)"
            r"|во\s+сколько|(?:каког[оа]|какой|какая)\s+(?:числа|дата|день|года?))\b|いつ|何時|何日|何月|何年に",
            _FLAGS,
        ),
    ),
    (
        AnswerKind.NUMBER,
        regex.compile(
            r"\bhow\s+(?:many|much|long|often|old|high|far|deep|tall|fast|large|big|heavy|wide|frequently|soon)\b"
            r"|\b(?:what|which)\s+(?:\w+\s+){0,1}(?:port|percentage|number|amount|version|limit|share)\b"
            r"|\bwhat\s+(?:is|are|was|were)\s+the\s+(?:\w+\s+){0,3}(?:port|percentage|number|amount|price|cost|fee|rate"
            r"|speed|size|capacity|length|width|height|depth|weight|limit|deadline|duration|budget|salary|allowance"
            r"|deductible|timeout|threshold|population|temperature|age)\b"
            r"|\bwhat\s+(?:does|do|did)\s+.{1,60}\scosts?\b"
            r"|\b(?:сколько|как\s+(?:часто|долго))\b|いくつ|いくら|何(?:日間|人|回|台|個|円|年|ヶ月|か月|分|メートル|%)",
            _FLAGS,
        ),
    ),
    (AnswerKind.PERSON, regex.compile(r"\b(?:who|whom|whose|кто|кого|кому|кем)\b|誰|だれ", _FLAGS)),
    (AnswerKind.PLACE, regex.compile(r"^(?:\W*\w+\W+){0,1}?(?:where|где|куда|откуда)\b|どこ", _FLAGS)),
    (
        AnswerKind.REASON,
        regex.compile(r"^(?:\W*\w+\W+){0,1}?(?:why|почему|зачем)\b|\bwhat\s+(?:\w+\s+)?caused\b|なぜ", _FLAGS),
    ),
)
# Words that name a kind of answer: a number or a date stands for them.
_KIND_WORDS = frozenset(
    """
    amount capacity cost date deadline duration fee height length limit number percentage price rate share size speed
    time weight width hour day week month year minute second weekday minimum maximum average total
    """.split()
)
_FOCUS_HEAD = regex.compile(
    r"^\W*(?:(?:and|so|please|then)\s+)?(?:(?:on|in|at|by|from|until|since|under|for|with|to)\s+)?"
    r"(?:what(?:'s)?|which|how\s+(?:many|much)|како\w+|какие|каких)\b",
    _FLAGS,
)
_HOW_MANY = regex.compile(r"\bhow\s+many\b", _FLAGS)
_FOCUS_SKIP = frozenset("is are was were be been the a an our your their its kind type sort of does do did".split())
_DIGIT = regex.compile(r"\d")


def read_question(text: str, weights: Sequence[TermWeight], *, floor: float, generic: float) -> Question:
    """Read a question.

    Args:
        text: As asked.
        weights: The index's terms of the question with their IDF; a term that they lack weighs like one that no
            record has.
        floor: Share of the largest weight that every content term gets at least. In a crate of a few records the
            IDF of words that exist is near 0, and a question would rest on its unknown words alone.
        generic: Factor on the weight of words that paraphrase easily.

    Returns:
        The question's content terms with weights of at most 1, its kind and its focus.
    """
    idf = {weight.term: weight for weight in weights}
    ceiling = idf_of_unknown(weights)
    found: dict[str, QuestionTerm] = {}
    for word in words(text):
        if word.function or word.term in found:
            continue
        known = idf.get(word.term)
        raw = known.idf if known and known.document_frequency else ceiling
        named = bool(_DIGIT.search(word.surface)) or (word.start > 0 and word.surface[:1].isupper())
        weight = floor + (1.0 - floor) * min(raw / ceiling, 1.0)
        if not named and word.surface.casefold() in GENERIC_WORDS:
            weight *= generic
        found[word.term] = QuestionTerm(word.term, word.surface, weight, named, word.start)
    terms = tuple(found.values())
    kind = answer_kind(text)
    focus = _focus_words(text, terms)
    implied = _KIND_WORDS if kind in {AnswerKind.NUMBER, AnswerKind.MOMENT} else frozenset()
    return Question(
        text,
        kind,
        terms,
        focus=frozenset(word.term for word in focus if word.surface.casefold() not in implied | GENERIC_WORDS),
        counted=frozenset(word.term for word in focus) if _HOW_MANY.search(text) else frozenset(),
    )


def content_terms(text: str) -> tuple[str, ...]:
    """List the terms of a text that carry content.

    Args:
        text: Any text.

    Returns:
        Distinct terms in order.
    """
    kept = (word.term for word in words(text) if not word.function)
    return tuple(dict.fromkeys(kept))


def answer_kind(text: str) -> AnswerKind:
    """Tell what kind of thing an answer to a question has to hold."""
    for kind, pattern in _KINDS:
        if pattern.search(text):
            return kind
    return AnswerKind.ANY


def _focus_words(text: str, terms: Sequence[QuestionTerm]) -> tuple[Word, ...]:
    """Find the words between the question word and the next function word: "which encryption", "how many days"."""
    head = _FOCUS_HEAD.match(text)
    if head is None:
        return ()
    held = {term.term for term in terms}
    focus: list[Word] = []
    for word in words(text[head.end() :]):
        if word.term in held and not word.function:
            focus.append(word)
        elif focus or word.surface.casefold() not in _FOCUS_SKIP:
            break
    return tuple(focus)
