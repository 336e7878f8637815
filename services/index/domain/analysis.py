r"""From text to the terms that both keyword engines index, and from a query to the terms that are looked up.

One chain feeds every engine, so rankings agree; the engines only split at spaces. A term holds no white space and has at
most 128 code points.

1. White space splits text into words. Each word is normalised (NFKC, case folding) and cut into parts where Unicode's word
   boundaries (UAX 29) lie, with three departures: `.` and `:` part letters, `_` parts everything, and `aB` parts like
   `a B`. Diacritics of Latin letters are dropped, Cyrillic yo becomes ye, thousands separators disappear.
2. A part is stemmed by its script: Latin by the English Snowball stemmer, Cyrillic by the Russian one; parts with digits
   and other scripts stay as they are. Text in another Latin-script language is stemmed alike in index and query.
3. Scripts written without spaces (Chinese, Japanese, Korean; Thai, Lao, Khmer, Myanmar) give overlapping pairs. Text also
   gives the single characters of Han and Hangul, so that a word of one character is found.
4. What looks like a code is a term as a whole too, beside its parts: `AFSC/RACE:USBL`, `Node.js`, `snake_case`, `C++`,
   `CamelCase`. Hyphens between letters and digits vanish in the whole, so `QX-9` and `QX9` meet. A leading `v` of a
   version is optional: `v1.10.3` is also `1.10.3`.

A query has no operators: it is analysed like text, and its stop words are left out unless nothing else remains.

Chat, e-mail and notes name the thing asked for once, among many words that carry nothing. `entities` gives the terms of
such names, once each, for a keyword field of their own; queries need no entity recognition to meet them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

import regex
import Stemmer

from services.index.domain.stop_words import STOP_WORDS

MAX_TERM_CHARS = 128
"""Longer runs are cut into pieces: OpenSearch's tokenizer cuts at 255, and nobody types more."""

MAX_QUERY_TERMS = 256
"""Distinct terms of a query that count: OpenSearch allows 1,024 clauses, and each term is looked up in up to 3 fields."""

_CACHED_WORDS = 65_536
_CACHED_PARTS = 32_768
_LONGEST_CACHED_WORD = 48

_PAIRED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}ー々〆ヶ"
_SPACELESS = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_PAIRED}{_SPACELESS}]]"

# Possessive quantifiers keep the scan linear on any input.
_COMPOUND = (
    r"LETTER++(?:(?:[-._:/@#&+']++|(?<=DIGIT),(?=DIGIT{3}(?!DIGIT)))LETTER++)*+"
    r"(?:\+\+|\#(?!LETTER))?"
)
_PART = (
    r"DIGIT{1,3}+(?:,DIGIT{3})++(?:\.DIGIT++)?+(?!LETTER)"
    r"|ALPHA?+DIGIT++(?:\.DIGIT++)++(?!LETTER)"
    r"|LETTER++(?:'ALPHA++)*+"
)


def _pattern(template: str, letter: str, alpha: str, digit: str) -> str:
    return template.replace("LETTER", letter).replace("ALPHA", alpha).replace("DIGIT", digit)


_ASCII = ("[A-Za-z0-9]", "[A-Za-z]", "[0-9]")
_UNICODE = (_LETTER, r"[\p{L}\p{M}]", r"\p{Nd}")
# The standard library is three times as fast, and most words are ASCII.
_ASCII_COMPOUND = re.compile(_pattern(_COMPOUND, *_ASCII))
_ASCII_PART = re.compile(_pattern(_PART, *_ASCII))
_UNICODE_COMPOUND = regex.compile(
    rf"(?V1)(?P<pairs>[{_PAIRED}]++|[{_SPACELESS}]++)|" + _pattern(_COMPOUND, *_UNICODE),
)
_UNICODE_PART = regex.compile("(?V1)" + _pattern(_PART, *_UNICODE))
_HUMP = regex.compile(r"(?V1)(?<=\p{Ll}{2})(?=\p{Lu})|(?<=\p{Lu}{2})(?=\p{Lu}\p{Ll}{2})")
_VERSION = regex.compile(r"^v(\p{Nd}++(?:\.\p{Nd}++)*+)$")
_EDGES = "!\"$%&'()*,-./:;<=>?@[\\]^_`{|}~"
_TIME_AFTER_DATE = regex.compile(r"(?<=\d-\d\d)T(?=\d\d:?\d\d)")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200c\u200d\u2060\ufeff")) | {0x200B: " ", 0x2019: "'", 0xFF07: "'"}
_LATIN = regex.compile(r"\p{Latin}")
_CYRILLIC = regex.compile(r"\p{Cyrillic}")
_SINGLES = regex.compile(r"[\p{Han}\p{Hangul}]")
_MARK = regex.compile(r"\p{Mn}")
_SENTENCE_MARKS = ".,;:!?()[]{}\"'\u2018\u201c\u201d\u00ab\u00bb\u2026"
_YO, _YE = "\u0451", "\u0435"
_HYPHENATED = regex.compile(r"[^._:/@#&+,]++")

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = (
    r"(?P<month>(?:jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec)\b\.?|january|february|march|april|may|june|july|august"
    r"|september|october|november|december)"
)

# Every repetition is possessive or bounded, so that the time is linear in the length of the text.
_SPEAKER = regex.compile(
    r"^(?:\[[^\]\n]{1,40}+\]\s?)?(?P<name>[\p{L}\p{N}][\p{L}\p{N} ._-]{0,39}?):\s", regex.MULTILINE
)
_ADDRESS = regex.compile(r"[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+)++|(?<!\w)@\w[\w.-]{0,63}+")
_DATES = (
    regex.compile(r"\b(?P<year>\d{4})[-/.](?P<number>\d{1,2})[-/.](?P<day>\d{1,2})\b"),
    regex.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s{_MONTH},?\s(?P<year>\d{{4}})\b", regex.IGNORECASE),
    regex.compile(rf"\b{_MONTH}\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s(?P<year>\d{{4}})\b", regex.IGNORECASE),
)
_NUMBERED = regex.compile(r"(?<!\S)(?=[^\s\d]{0,64}+\d)\S{1,128}+")
_NAMES = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}'\u2019-]{0,63}+(?:[ \t]\p{Lu}[\p{L}\p{M}\p{N}'\u2019-]{0,63}+){0,7}+")
_SENTENCE_START = regex.compile(r"(?:^|[.!?:>\]]\s*+|\n\s*+[-*]?\s*+)$")


def analyse_text(text: str) -> list[str]:
    """Analyse what is indexed.

    Args:
        text: Any text.

    Returns:
        Its terms in order, each as often as it occurs.
    """
    return [*chain.from_iterable(map(_TERMS_OF_WORDS.__getitem__, text.split()))]


def analyse_query(text: str) -> list[str]:
    """Analyse what is looked for. Plain words: no character is an operator.

    Args:
        text: Any text.

    Returns:
        The terms to look up, repeats kept, with at most 256 distinct ones; empty when the text holds no word.
    """
    kept: list[str] = []
    every: list[str] = []
    shouting = text.isupper()
    for word in text.split():
        terms = _split(word, singles=False)
        every += terms
        # An acronym such as IT or WHO is no stop word, unless everything is in capitals.
        acronym = not shouting and len(word) > 1 and word.isupper()
        if acronym or not _is_stop_word(word):
            kept += terms
    distinct = frozenset(list(dict.fromkeys(kept or every))[:MAX_QUERY_TERMS])
    return [term for term in kept or every if term in distinct]


def entities(text: str) -> list[str]:
    """Find the terms of names, dates, numbers and ids of informal content.

    Rules, in the order of the output: who speaks (`name:` and `[10:32] name:` at the start of a line), mentions and e-mail
    addresses, dates (in every spelling also as `2026-03-01` and as day, month name and year), anything that holds a digit,
    and capitalised words, except a lone one that starts a sentence.

    Args:
        text: Text of a chunk or document of informal content.

    Returns:
        Distinct terms, in the order in which the rules find them.
    """
    terms: dict[str, None] = {}
    for span in _spans(text):
        terms.update(dict.fromkeys(analyse_text(span)))
    return list(terms)


class _TermsOfWords(dict[str, tuple[str, ...]]):
    """Remembers the terms of words; text repeats its words, and looking one up costs a twentieth of analysing it."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        terms = _split(word, singles=True)
        if len(word) <= _LONGEST_CACHED_WORD:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = terms
        return terms


_TERMS_OF_WORDS = _TermsOfWords()


def _is_stop_word(word: str) -> bool:
    core = word.translate(_INVISIBLE).strip(_SENTENCE_MARKS).casefold()
    return core.replace(_YO, _YE) in STOP_WORDS


def _split(word: str, *, singles: bool) -> tuple[str, ...]:
    return _split_ascii(word.strip(_EDGES)) if word.isascii() else _split_unicode(word, singles=singles)


def _split_ascii(word: str) -> tuple[str, ...]:
    if word.isalnum():
        return _terms_of_part(word)
    terms: list[str] = []
    for match in _ASCII_COMPOUND.finditer(_TIME_AFTER_DATE.sub(" ", word) if "T" in word else word):
        run = match[0]
        terms += _terms_of_part(run) if run.isalnum() else _compound_terms(run, _ASCII_PART.findall(run))
    return tuple(terms)


def _split_unicode(word: str, *, singles: bool) -> tuple[str, ...]:
    normal = unicodedata.normalize("NFKC", word.translate(_INVISIBLE)).translate(_INVISIBLE)
    terms: list[str] = []
    for match in _UNICODE_COMPOUND.finditer(_TIME_AFTER_DATE.sub(" ", normal)):
        run = match[0]
        if match["pairs"]:
            terms += _pairs(run, singles=singles)
        else:
            terms += _compound_terms(run, _UNICODE_PART.findall(run))
    return tuple(terms)


def _pairs(run: str, *, singles: bool) -> list[str]:
    if len(run) == 1:
        return [run]
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return pairs + _SINGLES.findall(run) if singles else pairs


def _compound_terms(run: str, parts: list[str]) -> list[str]:
    terms: list[str] = []
    for part in parts:
        terms += _terms_of_part(part)
    if len(run) <= MAX_TERM_CHARS and (len(parts) > 1 or run != parts[0]):
        whole = _whole(run)
        if whole and whole not in terms:
            terms.append(whole)
    return terms


def _terms_of_part(part: str) -> tuple[str, ...]:
    if len(part) <= MAX_TERM_CHARS:
        return _short_part(part)
    return tuple(_fold(part[i : i + MAX_TERM_CHARS]) for i in range(0, len(part), MAX_TERM_CHARS))


@lru_cache(_CACHED_PARTS)
def _short_part(part: str) -> tuple[str, ...]:
    # Only between thousands can a part hold a comma.
    part = part.replace(",", "")
    folded = _fold(part)
    terms = [_stem(folded)]
    if part != folded:
        humps = _HUMP.split(part)
        if len(humps) > 1:
            terms = [_stem(_fold(hump)) for hump in humps] + terms
    if folded[0] == "v":
        terms += _VERSION.findall(folded)
    return tuple(terms)


def _whole(run: str) -> str | None:
    folded = _fold(run)
    if not _HYPHENATED.fullmatch(run):
        return folded.replace(",", "")
    if not any(char.isnumeric() for char in folded):
        return None
    return folded.replace("-", "") if any(char.isalpha() for char in folded) else folded


def _fold(text: str) -> str:
    folded = text.casefold()
    if folded.isascii():
        return folded
    open_form = unicodedata.normalize("NFD", folded)
    if _LATIN.match(open_form):
        open_form = _MARK.sub("", open_form)
    return unicodedata.normalize("NFKC", open_form).replace(_YO, _YE)


def _stem(folded: str) -> str:
    if folded.isascii():
        return _stemmers()[0].stemWord(folded) if folded.replace("'", "").isalpha() else folded
    return _stemmers()[1].stemWord(folded) if _CYRILLIC.match(folded) else folded


@lru_cache(1)
def _stemmers() -> tuple[Stemmer.Stemmer, Stemmer.Stemmer]:
    # Its own cache is off: words are cached above, with everything else that is done to them.
    return Stemmer.Stemmer("english", 0), Stemmer.Stemmer("russian", 0)


def _spans(text: str) -> Iterator[str]:
    yield from (match["name"] for match in _SPEAKER.finditer(text))
    yield from (match[0] for match in _ADDRESS.finditer(text))
    for pattern in _DATES:
        yield from (_both_spellings(match) for match in pattern.finditer(text))
    yield from (match[0] for match in _NUMBERED.finditer(text))
    yield from filter(None, (_name(text, match) for match in _NAMES.finditer(text)))


def _both_spellings(match: regex.Match[str]) -> str:
    named = match.groupdict()
    day = int(named["day"])
    number = int(named["number"]) if "number" in named else _month_number(named["month"])
    if not (1 <= number <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{match[0]} {named['year']}-{number:02}-{day:02} {day} {_MONTHS[number - 1]} {named['year']}"


def _month_number(name: str) -> int:
    return next(i for i, month in enumerate(_MONTHS, start=1) if month.startswith(name[:3].lower()))


def _name(text: str, match: regex.Match[str]) -> str | None:
    words = [word for word in match[0].split() if word.casefold() not in STOP_WORDS]
    if len(words) != 1:
        return " ".join(words) or None
    acronym = len(words[0]) > 1 and words[0].isupper()
    first = match[0].startswith(words[0]) and _SENTENCE_START.search(text[max(0, match.start() - 8) : match.start()])
    return words[0] if acronym or not first else None
