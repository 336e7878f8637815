"""Modes: what is asked, what is applied, and why."""

import pytest

from services.query.domain.modes import AnswerMode, ModeDecision, ModeRefusal, decide_mode

LIGHT, VERIFIED, AUDIT = AnswerMode.LIGHT, AnswerMode.VERIFIED, AnswerMode.AUDIT


@pytest.mark.parametrize("crate_mode", list(AnswerMode))
def test_light_is_served_as_asked(crate_mode: AnswerMode) -> None:
    assert decide_mode(LIGHT, crate_mode=crate_mode, allow_downgrade=False) == ModeDecision(LIGHT, LIGHT, "")


@pytest.mark.parametrize("asked", [None, VERIFIED])
def test_verified_falls_back_and_says_so(asked: AnswerMode | None) -> None:
    decision = decide_mode(asked, crate_mode=VERIFIED, allow_downgrade=True)
    assert decision == ModeDecision(VERIFIED, LIGHT, "mode_not_available")


def test_verified_is_refused_where_the_crate_forbids_falling_back() -> None:
    refusal = decide_mode(None, crate_mode=VERIFIED, allow_downgrade=False)
    assert isinstance(refusal, ModeRefusal)
    assert "allow_downgrade" in refusal.message


@pytest.mark.parametrize("allow_downgrade", [True, False])
def test_audit_never_falls_back(allow_downgrade: bool) -> None:
    refusal = decide_mode(AUDIT, crate_mode=LIGHT, allow_downgrade=allow_downgrade)
    assert isinstance(refusal, ModeRefusal)
    assert refusal.requested is AUDIT


def test_the_crate_decides_where_the_request_is_silent() -> None:
    assert decide_mode(None, crate_mode=LIGHT, allow_downgrade=True) == ModeDecision(LIGHT, LIGHT, "")
    assert isinstance(decide_mode(None, crate_mode=AUDIT, allow_downgrade=True), ModeRefusal)
