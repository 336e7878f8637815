"""What happens to each document of a storm, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

# Stands in every chunk, so that one search returns all of them.
COMMON = "ledger"
_WORDS = [
    "harbour",
    "crane",
    "manifest",
    "ballast",
    "quay",
    "tariff",
    "pilot",
    "mooring",
    "cargo",
    "tide",
    "survey",
    "rope",
]
_LONG_SENTENCES = 60


@dataclass(frozen=True, slots=True)
class Put:
    """New content."""

    body: str


@dataclass(frozen=True, slots=True)
class Retire:
    """Out of force."""


@dataclass(frozen=True, slots=True)
class Erase:
    """Gone for good."""


Change = Put | Retire | Erase


@dataclass(frozen=True, slots=True)
class History:
    """All changes of one document, in order."""

    source_id: str
    changes: tuple[Change, ...]


def histories(count: int, seed: int) -> Sequence[History]:
    """Histories of some documents.

    Args:
        count: Documents.
        seed: Of the random choices.

    Returns:
        One each: six in ten are put once, the others change, revert, retire, are erased or come back.
    """
    choice = random.Random(seed)
    return tuple(History(f"storm/{number:04d}.txt", _changes(number, choice)) for number in range(count))


def _changes(number: int, choice: random.Random) -> tuple[Change, ...]:
    first, second = (Put(_body(number, version, choice)) for version in (1, 2))
    stories: list[tuple[Change, ...]] = [
        (first, second),
        (first, second, first),
        (first, Retire()),
        (first, Retire(), second),
        (first, second, Erase()),
        (first, Erase(), second),
    ]
    return choice.choice(stories) if choice.random() < 0.4 else (first,)


def _body(number: int, version: int, choice: random.Random) -> str:
    sentences = choice.choice((1, 2, 3, _LONG_SENTENCES))
    said = (
        f"The {COMMON} of berth {number} version {version} names {choice.choice(_WORDS)} and {choice.choice(_WORDS)}."
        for _ in range(sentences)
    )
    return " ".join(said) + "\n"
