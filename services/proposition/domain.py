"""What a crate's retrieval strategy asks of this service."""

from __future__ import annotations

from enum import Enum


class Strategy(Enum):
    """How chunks become records."""

    STANDARD = "standard"
    PROPOSITION = "proposition"


def needs_evaluation(strategy: Strategy) -> bool:
    """Whether chunks are turned into propositions before they are embedded.

    Args:
        strategy: Of the crate.

    Returns:
        False for the standard strategy: its chunks are records as they are.
    """
    return strategy is Strategy.PROPOSITION
