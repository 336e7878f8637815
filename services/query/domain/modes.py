"""Which mode an answer gets, and why it is not the one asked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MODE_NOT_AVAILABLE = "mode_not_available"


class AnswerMode(Enum):
    """How much evidence an answer has to show."""

    LIGHT = "light"
    VERIFIED = "verified"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class ModeDecision:
    """The mode asked for, the mode applied, and why they differ.

    Attributes:
        requested: As asked, else as the crate is set.
        applied: What the answer is made with.
        reason: Empty when they are equal.
    """

    requested: AnswerMode
    applied: AnswerMode
    reason: str


@dataclass(frozen=True, slots=True)
class ModeRefusal:
    """The mode can't be served and nothing else may be served instead.

    Attributes:
        requested: As asked, else as the crate is set.
        message: What was refused and what to ask instead.
    """

    requested: AnswerMode
    message: str


def decide_mode(
    asked: AnswerMode | None, *, crate_mode: AnswerMode, allow_downgrade: bool
) -> ModeDecision | ModeRefusal:
    """Decide the mode of one answer. Only light can be applied in this version.

    Args:
        asked: Mode of the request; None when it names none.
        crate_mode: Mode of the crate's settings.
        allow_downgrade: The crate lets verified fall back to light.

    Returns:
        The decision, or the refusal: audit never falls back, verified only where the crate allows it.
    """
    requested = asked or crate_mode
    if requested is AnswerMode.LIGHT:
        return ModeDecision(requested, AnswerMode.LIGHT, "")
    if requested is AnswerMode.AUDIT:
        return ModeRefusal(requested, "mode audit is not available yet and never falls back: ask in mode light")
    if not allow_downgrade:
        return ModeRefusal(
            requested,
            "mode verified is not available yet and this crate refuses to fall back (allow_downgrade is off):"
            " ask in mode light or turn allow_downgrade on",
        )
    return ModeDecision(requested, AnswerMode.LIGHT, MODE_NOT_AVAILABLE)
