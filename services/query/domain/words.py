"""Words of a text: the terms that a sentence shares with a question.

The index owns the analysis of records. This is the plain part of the same chain (compatibility forms, case folding,
Snowball stems by script, pairs of CJK signs) for pieces that the index never sees: sentences, rows and questions. A
test holds both against each other.
"""

# ruff: noqa: RUF001, SIM905  (signs and words of other scripts are meant; lists of words read best as text)

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import regex
import Stemmer

_CJK_CLASS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー々"
_WORD = regex.compile(
    rf"(?V1)(?P<pairs>[{_CJK_CLASS}]++)"
    r"|(?P<number>\p{Nd}{1,3}+(?:,\p{Nd}{3})++(?:\.\p{Nd}++)?+(?![\p{L}\p{Nd}])|[vV]?+\p{Nd}++(?:\.\p{Nd}++)++(?![\p{L}\p{Nd}]))"
    rf"|[[\p{{L}}\p{{M}}\p{{N}}]--[{_CJK_CLASS}]]++(?:['’][\p{{L}}\p{{M}}]++)*+"
)
_CYRILLIC = regex.compile(r"\p{Cyrillic}")
_LATIN = regex.compile(r"\p{Latin}")
_HIRAGANA = regex.compile(r"\p{Hiragana}")
_DIGIT = regex.compile(r"\p{Nd}")
_MARK = regex.compile(r"\p{Mn}")
# "I", and operators of other search engines: people type them, and here they are words like any other.
_NO_LABELS = frozenset({"I", "AND", "OR", "NOT"})
_VERSION = regex.compile(r"v(\p{Nd}.*)")

# Words that say how a sentence is built, not what it is about.
FUNCTION_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being between both but by can could did
    do does doing done during each either ever every for from get gets getting give given gives go got had has have
    having he her here hers him his how i if in into is isn't it its itself just let like made make makes many may me
    might mine more most much must my need needed needs no nor not now of off often on once one only onto or other our
    ours out over own per please put same shall she should since so some something still such take taken takes tell
    than that the their theirs them then there these they this those through to too under until up upon us use used
    uses using very was we were what what's when where whether which while who whom whose why will with within without
    would yes yet you your yours explain describe list show mean means happen happens does doesn't don't anybody anyone
    somebody someone everybody everyone anything

    а без бы был была были было быть в вам вас во вот все всё вы где да для до его ее её если есть еще ещё же за и из
    или им их к как какая какие какими каких какого какое какой каком какую каков какова каково каковы когда кого кому
    который которая которое которые которого кто ли мне мы на над не нет них но ну о об он она они оно от по под при с
    со так такой там те тем то того тоже той только том ты у уже чего чем что чтобы чья эта эти это этого этой этот я
    сколько почему зачем куда откуда нужно можно
    """.split()
)


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text.

    Attributes:
        surface: As it stands.
        term: Analysed.
        start: Code points into the text.
        end: Same, exclusive.
        function: True for a function word.
    """

    surface: str
    term: str
    start: int
    end: int
    function: bool


def words(text: str) -> tuple[Word, ...]:
    """Split a text into its words.

    Args:
        text: Any text.

    Returns:
        Words in order; of a CJK run its overlapping pairs of characters, or the character where it stands alone.
    """
    return tuple(_walk(text))


def terms(text: str) -> frozenset[str]:
    """Collect the terms of a text, function words included.

    Args:
        text: Any text.

    Returns:
        Distinct terms.
    """
    found: set[str] = set()
    for match in _WORD.finditer(text):
        piece = match.group()
        if match["pairs"] and len(piece) > 1:
            found.update(stem("".join(pair)) for pair in pairwise(piece))
        else:
            found.add(stem(piece))
    return frozenset(found)


def holds_word(text: str) -> bool:
    """Tell whether a text has any letter or digit to look for."""
    return _WORD.search(text) is not None


def is_latin(text: str) -> bool:
    """Tell whether most letters of a text are Latin ones.

    Args:
        text: Any text.

    Returns:
        True when at least half of its letters are Latin, or it has none.
    """
    letters = sum(1 for sign in text if sign.isalpha())
    return 2 * len(_LATIN.findall(text)) >= letters


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Analyse one word.

    Args:
        word: A word without blanks.

    Returns:
        Its term: compatibility form, case folded; a Latin word without its accents and with its English stem, a
        Cyrillic one with its Russian stem; a number without group commas, a version without its leading v.
    """
    folded = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    if _DIGIT.search(folded):
        return _VERSION.sub(r"\1", folded.replace(",", ""))
    if _LATIN.search(folded):
        plain = _MARK.sub("", unicodedata.normalize("NFD", folded))
        return str(_stemmer("english").stemWord(plain))
    if _CYRILLIC.search(folded):
        return str(_stemmer("russian").stemWord(folded.replace("ё", "е")))
    return folded


def _walk(text: str) -> Iterator[Word]:
    shouting = text.isupper()
    for match in _WORD.finditer(text):
        piece = match.group()
        if match["pairs"]:
            yield from _pairs(piece, match.start())
            continue
        # "boiler A" and "IT" name something, in capitals all over they don't, and "A" begins many a sentence.
        label = piece.isupper() and not shouting and piece not in _NO_LABELS and (match.start() > 0 or len(piece) > 1)
        yield Word(piece, stem(piece), match.start(), match.end(), not label and piece.casefold() in FUNCTION_WORDS)


def _pairs(run: str, offset: int) -> Iterator[Word]:
    if len(run) == 1:
        yield Word(run, stem(run), offset, offset + 1, bool(_HIRAGANA.match(run)))
        return
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        yield Word(pair, stem(pair), offset + at, offset + at + 2, bool(_HIRAGANA.search(pair)))


@lru_cache(maxsize=4)
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language)
