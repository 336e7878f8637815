"""A crate's own rules of living states."""

from __future__ import annotations

import pytest
from affidavit.ingest.v1 import settings_pb2 as pb

from services.ingest.adapters import rows_postgres
from services.ingest.codec import configuration
from services.ingest.domain.refusals import Refused
from services.ingest.domain.settings import CrateSettings, SettingsPatch, merge
from services.ingest.domain.state_rules import StateRules, StateWindow

RULES = StateRules(
    (("in revision", "draft"), ("sunset", "deprecated")),
    (StateWindow("", 0, 90), StateWindow("policy", 365, 0)),
    ("*", "leave-policy"),
)


def merged(rules: StateRules) -> StateRules:
    return merge(CrateSettings(), SettingsPatch(state_rules=rules)).state_rules


def test_rules_come_to_one_form() -> None:
    given = StateRules(
        ((" Sunset ", "Deprecated"), ("In  Revision", "draft")),
        (StateWindow(" Policy", 365, 0), StateWindow("", 0, 90)),
        ("leave-policy", "*", "leave-policy"),
    )
    assert merged(given) == RULES
    assert merged(RULES) == RULES


def test_they_replace_as_a_whole_and_stay_when_they_are_not_named() -> None:
    held = merge(CrateSettings(), SettingsPatch(state_rules=RULES))
    assert merge(held, SettingsPatch(source_limit=3)).state_rules == RULES
    assert merge(held, SettingsPatch(state_rules=StateRules())) == CrateSettings()


def test_messages_and_rows_keep_them() -> None:
    settings = merge(CrateSettings(), SettingsPatch(state_rules=RULES))
    message = configuration.settings_message(settings)
    assert configuration.stored_settings(pb.CrateSettings.FromString(message.SerializeToString())) == settings
    assert rows_postgres.settings_value(rows_postgres.settings_json(settings)) == settings
    plain = rows_postgres.settings_json(CrateSettings())
    assert "state_rules" not in plain
    assert rows_postgres.settings_value(plain) == CrateSettings()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (StateRules((("sunset", "gone"),)), "can't stand for 'gone': choose from superseded, deprecated"),
        (StateRules((("sunset", "contested"),)), "can't stand for 'contested'"),
        (StateRules(((" ", "draft"),)), "status_words holds an empty name"),
        (StateRules((("a\u200b", "draft"),)), "invisible"),
        (StateRules((("Sunset", "draft"), ("sunset", "active"))), "stands for two states"),
        (StateRules(tuple((f"w{n}", "draft") for n in range(101))), "status_words has 101 entries: at most 100"),
        (StateRules(windows=(StateWindow("a", 36_501),)), "stale_after_days 36501 is out of range: choose 0"),
        (StateRules(windows=(StateWindow("a", 0, -1),)), "dormant_after_days -1 is out of range"),
        (StateRules(windows=(StateWindow("a", 1), StateWindow("A", 2))), "class 'a' has two windows"),
        (StateRules(windows=tuple(StateWindow(f"c{n}", 1) for n in range(101))), "windows has 101 entries"),
        (StateRules(superseding_series=("",)), "superseding_series holds an empty name"),
        (StateRules(superseding_series=("x" * 257,)), "a name of 257 characters"),
        (StateRules(superseding_series=tuple(f"s{n}" for n in range(101))), "superseding_series has 101 entries"),
    ],
)
def test_what_can_t_be_used_is_refused(rules: StateRules, message: str) -> None:
    with pytest.raises(Refused, match=message):
        merged(rules)
