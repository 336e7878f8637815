"""Which mode an answer gets, and why it is not the one asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

MODE_NOT_AVAILABLE = "mode_not_available"
INSUFFICIENT_EVIDENCE = "insufficient_evidence"


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
    """Decide the mode of one answer of profile v1, which can apply light alone.

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


def mode_needs(mode: AnswerMode, *, domains: int) -> int:
    """Tell how many source domains a mode needs.

    Args:
        mode: The mode.
        domains: What verified and audit need.

    Returns:
        1 for light.
    """
    return 1 if mode is AnswerMode.LIGHT else domains


def requested_mode(asked: AnswerMode | None, *, crate_mode: AnswerMode) -> ModeDecision:
    """Begin with the mode that is asked for, else the crate's; what is found decides whether it can be applied."""
    requested = asked or crate_mode
    return ModeDecision(requested, requested, "")


def settle_mode(
    decision: ModeDecision, *, domains: Sequence[str], needed: int, allow_downgrade: bool
) -> ModeDecision | ModeRefusal:
    """Decide by the evidence found whether a mode can be applied.

    Args:
        decision: The mode asked for.
        domains: Source domains of the supporting evidence.
        needed: Source domains that the mode needs.
        allow_downgrade: The crate lets verified fall back to light.

    Returns:
        The mode asked for where the domains suffice; else light for verified where the crate allows it, with the
        reason; else the refusal.
    """
    if len(domains) >= needed:
        return decision
    found = f"{len(domains)} of {needed} source domains found" + (f" ({', '.join(domains)})" if domains else "")
    reason = f"{INSUFFICIENT_EVIDENCE}: {found}"
    mode = decision.requested
    if mode is AnswerMode.VERIFIED and allow_downgrade:
        return ModeDecision(mode, AnswerMode.LIGHT, reason)
    remedy = "add documents of another source domain, or ask in mode light"
    more = " or turn allow_downgrade on" if mode is AnswerMode.VERIFIED else "; audit never falls back"
    return ModeRefusal(mode, f"{reason}; mode {mode.value} needs {needed}: {remedy}{more}")
