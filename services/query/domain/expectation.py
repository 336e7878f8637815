"""Whether a piece of evidence holds the kind of thing that a question asks for."""

# ruff: noqa: RUF001  (signs and words of other scripts are meant)

from __future__ import annotations

import regex

from services.query.domain.question import AnswerKind, Question
from services.query.domain.words import words

_NUMBER_WORDS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    "|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|once"
    "|twice|thrice|half|third|quarter|dozen|daily|weekly|fortnightly|monthly|quarterly|yearly|annually|annual|hourly"
    "|every|each|free|none|unlimited|один|одна|два|две|три|четыре|пять|шесть|семь|восемь|девять|десять|ежедневно"
    "|еженедельно|ежемесячно|ежегодно"
)
_NUMBER = regex.compile(rf"\d|\b(?:{_NUMBER_WORDS})\b|[一二三四五六七八九十百千万]", regex.IGNORECASE)
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_MOMENT = regex.compile(
    r"\d{1,2}[:.]\d{2}|\b(?:1[89]|20)\d{2}\b|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d+\s*(?:am|pm|a\.m|p\.m)\b"
    rf"|\b\d{{1,2}}\.?\s+(?:{_MONTHS})\b|\b(?:{_MONTHS})\s+\d|\b(?:in|until|by|from|since|of|every|each)\s+(?:{_MONTHS})\b"
    r"|\b(?:january|february|april|june|july|august|september|october|november|december)\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:spring|summer|autumn|winter|weekdays?|weekends?)\b"
    r"|\b(?:day|night|morning|noon|afternoon|evening|midnight|week|month|quarter|year|hour|minute|second)s?\b"
    r"|\b(?:daily|weekly|monthly|quarterly|yearly|annually|immediately|today|tomorrow|never|always|after|before|once)\b"
    r"|\d\s*(?:時|分|日|月|年|秒)|[一二三四五六七八九十]\s*(?:時|分|日|月|年)|曜日"
    r"|\b\d{1,2}\s+(?:янв|фев|мар|апр|ма[йя]|июн|июл|авг|сен|окт|ноя|дек)"
    r"|понедельник|вторник|сред[аыу]|четверг|пятниц|суббот|воскресень|\b(?:год|лет|месяц|недел|дн|час)",
    regex.IGNORECASE,
)
_ROLES = regex.compile(
    r"\b(?:head|manager|officer|department|team|committee|director|engineer|board|office|staff|leader|chair|council"
    r"|master|owner|administrator|supervisor|secretary|president|agency|group|desk|lead|crew|users?|employees?"
    r"|everybody|everyone|anyone|nobody)\b|さん|氏|部|課|長",
    regex.IGNORECASE,
)
_PLACE = regex.compile(
    r"\b(?:at|in|on|into|onto|near|behind|beside|under|inside|outside|via|through|from|to|by|room|street|here|there)\b"
    r"|://|/\w|@|\b(?:в|во|на|у|около)\b|[でにへ]",
    regex.IGNORECASE,
)
_REASON = regex.compile(
    r"\b(?:because|since|reasons?|due|owing|caus\w+|so\s+that|in\s+order|therefore|thus|hence|result\w*|led|leads"
    r"|rationale|motivat\w+|why|потому|из-за|так\s+как|поэтому|причин\w+)\b|ため|ので|から",
    regex.IGNORECASE,
)
# Words between a number and what it counts.
_REACH_BEFORE, _REACH_AFTER = 4, 3
_PROPER = regex.compile(r"[\p{Lu}][\p{L}\p{M}'’\-]+")


def holds_answer(question: Question, evidence: str, headings: tuple[str, ...] = ()) -> bool:
    """Tell whether evidence holds something new of the kind asked for.

    Words of the question itself don't count: "the 2024 report" answers no "how many in 2024".

    Args:
        question: The question, read.
        evidence: A sentence or a rendered record.
        headings: Of the headings above it, the one that says "Cause" or "Rationale" makes all below it a reason.

    Returns:
        True when it does, and for questions that ask for nothing in particular.
    """
    if question.kind is AnswerKind.ANY:
        return True
    if question.kind is AnswerKind.REASON:
        return bool(_REASON.search(" ".join((*headings, evidence))))
    rest = _without_question(question, evidence)
    if question.kind is AnswerKind.NUMBER:
        return bool(_NUMBER.search(rest)) and _counts(question, rest)
    if question.kind is AnswerKind.MOMENT:
        return bool(_MOMENT.search(rest))
    if question.kind is AnswerKind.PLACE:
        return bool(_PLACE.search(rest))
    return bool(_ROLES.search(rest)) or _has_name(rest)


def _counts(question: Question, text: str) -> bool:
    """A number stands beside the thing counted: "480 passengers", "passengers: 480", "three written quotes"."""
    found = words(text)
    places = [at for at, word in enumerate(found) if word.term in question.counted]
    if not places:
        return True
    return any(
        _NUMBER.search(word.surface)
        for at in places
        for word in found[max(0, at - _REACH_BEFORE) : at + 1 + _REACH_AFTER]
    )


def _without_question(question: Question, evidence: str) -> str:
    """Blank out the question's names and numbers in the evidence."""
    asked = {term.term for term in question.terms if term.named}
    pieces: list[str] = []
    done = 0
    for word in words(evidence):
        if word.term in asked and word.start >= done:
            pieces.extend((evidence[done : word.start], "_"))
            done = word.end
    return "".join(pieces) + evidence[done:]


def _has_name(text: str) -> bool:
    """A capitalised word that doesn't begin the text, or two that follow each other."""
    found = tuple(_PROPER.finditer(text))
    inner = any(match.start() > 0 and text[match.start() - 1] != "_" for match in found)
    return inner and (found[-1].start() > 0)
