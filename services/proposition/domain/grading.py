"""Four scores for each statement, and the rule by which it is accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

LOWEST, HIGHEST = 1, 10
ACCEPTED_FROM = 8
CRITERIA = ("fidelity", "clarity", "completeness", "focus")


@dataclass(frozen=True, slots=True)
class Scores:
    """How good a statement is, each 1 to 10.

    Attributes:
        fidelity: To what the chunk says.
        clarity: Comprehensible without further context.
        completeness: Of dates, data, names and qualifications.
        focus: One fact and no unnecessary words.
    """

    fidelity: int
    clarity: int
    completeness: int
    focus: int

    @property
    def good(self) -> bool:
        """Whether every single one is good enough; nothing is averaged."""
        return all(ACCEPTED_FROM <= score <= HIGHEST for score in astuple(self))


@dataclass(frozen=True, slots=True)
class Statement:
    """One proposition.

    Attributes:
        ordinal: From 1 within its chunk.
        text: The statement.
        scores: None where it wasn't graded.
    """

    ordinal: int
    text: str
    scores: Scores | None = None

    @property
    def accepted(self) -> bool:
        """Whether it becomes a record."""
        return self.scores is not None and self.scores.good


def ungraded(texts: Sequence[str]) -> tuple[Statement, ...]:
    """Number statements that weren't graded yet."""
    return tuple(Statement(ordinal, text) for ordinal, text in enumerate(texts, 1))


def graded(texts: Sequence[str], scores: Mapping[int, Scores]) -> tuple[Statement, ...]:
    """Put statements and their scores together.

    Args:
        texts: Statements in order.
        scores: Of each, by ordinal from 1.

    Returns:
        Statements by ordinal.
    """
    return tuple(Statement(ordinal, text, scores[ordinal]) for ordinal, text in enumerate(texts, 1))
