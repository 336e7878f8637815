"""How well each unit of evidence answers the question, and which contexts are offered at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import regex
from numpy.typing import NDArray

from services.query.domain.expectation import holds_answer
from services.query.domain.question import Question, QuestionTerm
from services.query.domain.units import Unit
from services.query.domain.words import is_latin, words

Vector = NDArray[np.float32]
_SHORTEST_WORD = 3
_YEAR = regex.compile(r"(?:1[89]|20)\d{2}")


@dataclass(frozen=True, slots=True)
class EvidenceRule:
    """A linear rule over the signals of one unit; it answers where the sum reaches 0.

    Attributes:
        coverage: Weight of the share of the question that unit, headings and passage cover.
        own: Weight of the share that the unit alone covers.
        name_missing: Times the weight of a name or year of the question that stands nowhere around.
        number_missing: Times the weight of another number of the question that stands nowhere around.
        focus_missing: Times the share by which the thing asked for is missing.
        meaning: Weight of the cosine of question and titled unit.
        holds: Added when the unit holds the kind of thing asked for.
        bias: Added always.
    """

    coverage: float
    own: float
    name_missing: float
    number_missing: float
    focus_missing: float
    meaning: float
    holds: float
    bias: float


@dataclass(frozen=True, slots=True)
class SoftMatch:
    """Credit of a question's word for a word of like meaning.

    Attributes:
        low: Cosine of two words that earns nothing.
        high: Cosine that earns the most.
        most: The most, below 1: the very word is better.
        near: Credit for a word in the neighbouring sentence.
        body: Credit for a word elsewhere in the passage.
    """

    low: float
    high: float
    most: float
    near: float
    body: float

    def credit(self, cosine: float) -> float:
        """Turn the cosine of two words into credit, 0 to most."""
        return self.most * min(max((cosine - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of a unit beside a question; shares are 0 to 1."""

    coverage: float
    own: float
    name_missing: float
    number_missing: float
    focus_missing: float
    meaning: float
    holds: bool

    def score(self, rule: EvidenceRule) -> float:
        """Apply a rule."""
        return (
            rule.bias
            + rule.coverage * self.coverage
            + rule.own * self.own
            + rule.name_missing * self.name_missing
            + rule.number_missing * self.number_missing
            + rule.focus_missing * self.focus_missing
            + rule.meaning * self.meaning
            + rule.holds * self.holds
        )


@dataclass(frozen=True, slots=True)
class Scored:
    """A unit with its score; at 0 and above it answers."""

    unit: Unit
    score: float


@dataclass(frozen=True, slots=True)
class Meanings:
    """Vectors float32[d] of unit length by text: the question, units and single words."""

    question: Vector
    vectors: Mapping[str, Vector]

    def cosine(self, text: str) -> float:
        """Cosine of the question and a text; 0 where the text was not embedded."""
        return _dot(self.question, self.vectors.get(text))

    def nearest(self, word: str, others: Sequence[str]) -> float:
        """Cosine of a word and the nearest of others; 0 where nothing was embedded."""
        vector = self.vectors.get(word)
        if vector is None:
            return 0.0
        return max((_dot(vector, self.vectors.get(other)) for other in others), default=0.0)


def shortlist(question: Question, units: Sequence[Unit], *, soft: SoftMatch, limit: int) -> tuple[Unit, ...]:
    """Choose the units that are worth a look at their meaning.

    Args:
        question: The question, read.
        units: Units of all admitted passages, best passage first.
        soft: Credits for words near by.
        limit: How many to keep.

    Returns:
        Those that cover most of the question by their words, passages' order kept among equals.
    """
    ranked = sorted(
        enumerate(units),
        key=lambda pair: (-sum(_lexical(question, pair[1], soft)), pair[0]),
    )
    return tuple(unit for _, unit in sorted(ranked[:limit], key=lambda pair: pair[0]))


def texts_to_embed(question: Question, units: Sequence[Unit], *, limit: int) -> tuple[str, ...]:
    """List the texts whose vectors the scores need.

    Args:
        question: The question, read.
        units: The shortlist.
        limit: How many texts at most.

    Returns:
        Distinct texts: titled units, the question's words that some unit lacks, the units' words.
        Empty for a question in a script that the packaged model does not read.
    """
    if not is_latin(question.text):
        return ()
    lacking = tuple(
        term for term in question.terms if not term.named and any(term.term not in unit.own for unit in units)
    )
    wanted = [unit.meaning_text for unit in units]
    wanted += [term.surface.casefold() for term in lacking]
    if lacking:
        wanted += [word for unit in units for word in (*_vocabulary(unit.text), *_vocabulary(unit.names))]
    return tuple(dict.fromkeys(wanted))[:limit]


def weigh(question: Question, unit: Unit, *, soft: SoftMatch, meanings: Meanings | None) -> Signals:
    """Gather the signals of one unit.

    Args:
        question: The question, read.
        unit: The unit.
        soft: Credits for words near by and of like meaning.
        meanings: Vectors; None where there are none, and then no word counts but the very same.

    Returns:
        The signals.
    """
    credits_ = {term.term: _credit(term, unit, soft, meanings) for term in question.terms}
    total = sum(term.weight for term in question.terms) or 1.0
    vocabulary = _vocabulary(unit.text) if meanings else ()
    own = {
        term.term: max(float(term.term in unit.own), _alike(term, unit, vocabulary, soft, meanings))
        for term in question.terms
    }
    missing = [term for term in question.terms if term.named and not credits_[term.term]]
    return Signals(
        coverage=sum(term.weight * credits_[term.term] for term in question.terms) / total,
        own=sum(term.weight * own[term.term] for term in question.terms) / total,
        name_missing=max((term.weight for term in missing if _is_name(term)), default=0.0),
        number_missing=max((term.weight for term in missing if not _is_name(term)), default=0.0),
        focus_missing=max((1.0 - credits_[term] for term in question.focus), default=0.0),
        meaning=meanings.cosine(unit.meaning_text) if meanings else 0.0,
        holds=holds_answer(question, unit.text, unit.passage.heading_path),
    )


def rank(
    question: Question,
    units: Sequence[Unit],
    *,
    soft: SoftMatch,
    rule: EvidenceRule,
    meanings: Meanings | None,
) -> tuple[Scored, ...]:
    """Score units and order them.

    Args:
        question: The question, read.
        units: The shortlist, best passage first.
        soft: Credits for words near by and of like meaning.
        rule: The manifest's rule for this kind of query.
        meanings: Vectors, or None.

    Returns:
        All units by (score, order of passages).
    """
    scored = [Scored(unit, weigh(question, unit, soft=soft, meanings=meanings).score(rule)) for unit in units]
    return tuple(sorted(scored, key=lambda item: -item.score))


def _lexical(question: Question, unit: Unit, soft: SoftMatch) -> tuple[float, float]:
    signals = weigh(question, unit, soft=soft, meanings=None)
    return signals.coverage, signals.own


def _credit(term: QuestionTerm, unit: Unit, soft: SoftMatch, meanings: Meanings | None) -> float:
    if term.term in unit.own or term.term in unit.head:
        return 1.0
    around = soft.near if term.term in unit.near else soft.body if term.term in unit.body else 0.0
    vocabulary = (*_vocabulary(unit.text), *_vocabulary(unit.names)) if meanings else ()
    return max(around, _alike(term, unit, vocabulary, soft, meanings))


def _alike(
    term: QuestionTerm, unit: Unit, vocabulary: Sequence[str], soft: SoftMatch, meanings: Meanings | None
) -> float:
    if meanings is None or term.named or term.term in unit.own:
        return 0.0
    return soft.credit(meanings.nearest(term.surface.casefold(), vocabulary))


def _is_name(term: QuestionTerm) -> bool:
    return not term.term[:1].isdigit() or bool(_YEAR.fullmatch(term.term))


@lru_cache(maxsize=4_096)
def _vocabulary(text: str) -> tuple[str, ...]:
    found = (word.surface.casefold() for word in words(text) if not word.function)
    return tuple(dict.fromkeys(word for word in found if len(word) >= _SHORTEST_WORD and word.isalpha()))


def _dot(left: Vector, right: Vector | None) -> float:
    return 0.0 if right is None else float(np.dot(left, right))
