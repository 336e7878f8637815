"""Crate settings: defaults, merging, and what this version refuses."""

import pytest

from services.ingest.domain.refusals import NotBuiltYet, Refused
from services.ingest.domain.settings import (
    AnswerMode,
    CrateSettings,
    PropositionFailurePolicy,
    RetrievalMode,
    RetrievalStrategy,
    SettingsPatch,
    crate_id,
    job_id,
    merge,
    reconfigure,
)


def test_defaults_are_those_of_the_architecture() -> None:
    settings = merge(CrateSettings(), SettingsPatch())
    assert settings == CrateSettings(
        strict_grounding=False,
        allow_client_history=True,
        inline_citations=True,
        structured_sources=True,
        retrieval_mode=RetrievalMode.HYBRID,
        retrieval_strategy=RetrievalStrategy.STANDARD,
        proposition_failure_policy=PropositionFailurePolicy.FAIL_INDEXING,
        source_limit=8,
        mode=AnswerMode.VERIFIED,
        allow_downgrade=True,
        profile="v1",
    )


def test_a_patch_changes_only_what_it_names() -> None:
    before = merge(CrateSettings(), SettingsPatch(strict_grounding=True, source_limit=3))
    after = merge(before, SettingsPatch(retrieval_mode=RetrievalMode.LEXICAL, inline_citations=False))
    assert after == CrateSettings(
        strict_grounding=True, source_limit=3, retrieval_mode=RetrievalMode.LEXICAL, inline_citations=False
    )


def test_false_is_a_value_and_not_an_absent_one() -> None:
    before = CrateSettings(strict_grounding=True)
    assert merge(before, SettingsPatch(strict_grounding=False)).strict_grounding is False


@pytest.mark.parametrize("limit", [0, 33, -1])
def test_source_limit_out_of_range_is_refused(limit: int) -> None:
    with pytest.raises(Refused, match=f"source_limit {limit} is out of range: choose 1 to 32"):
        merge(CrateSettings(), SettingsPatch(source_limit=limit))


@pytest.mark.parametrize("limit", [1, 32])
def test_source_limit_ends_are_allowed(limit: int) -> None:
    assert merge(CrateSettings(), SettingsPatch(source_limit=limit)).source_limit == limit


def test_what_a_later_version_serves_is_refused_and_not_ignored() -> None:
    with pytest.raises(NotBuiltYet, match=r"profile v4\.1 is not available yet: "):
        merge(CrateSettings(), SettingsPatch(profile="v4.1"))


def test_a_crate_keeps_the_strategy_that_it_was_created_with() -> None:
    wanted = SettingsPatch(retrieval_strategy=RetrievalStrategy.PROPOSITION)
    created = merge(CrateSettings(), wanted)
    assert created.retrieval_strategy is RetrievalStrategy.PROPOSITION
    assert reconfigure(created, wanted) == created
    with pytest.raises(NotBuiltYet, match="changing retrieval_strategy from standard to proposition needs the index"):
        reconfigure(CrateSettings(), wanted)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(Refused, match="profile 'v9' doesn't exist: use v1") as refusal:
        merge(CrateSettings(), SettingsPatch(profile="v9"))
    assert not isinstance(refusal.value, NotBuiltYet)


@pytest.mark.parametrize("mode", list(AnswerMode))
def test_every_mode_may_do_without_a_fall_back(mode: AnswerMode) -> None:
    merged = merge(CrateSettings(), SettingsPatch(mode=mode, allow_downgrade=False))
    assert (merged.mode, merged.allow_downgrade) == (mode, False)


def test_both_profiles_can_be_chosen() -> None:
    later = merge(CrateSettings(), SettingsPatch(profile="v3.1"))
    assert later.profile == "v3.1"
    assert merge(later, SettingsPatch(profile="v1")).profile == "v1"


def test_the_whole_is_checked_and_not_only_the_patch() -> None:
    broken = CrateSettings(profile="v4.1")
    with pytest.raises(NotBuiltYet):
        merge(broken, SettingsPatch(mode=AnswerMode.VERIFIED))


@pytest.mark.parametrize("name", ["main", "a", "0-9", "x" * 40])
def test_names_of_crates_and_jobs(name: str) -> None:
    assert crate_id(name) == job_id(name) == name


@pytest.mark.parametrize("name", ["", "Main", "a_b", "a.b", "x" * 41, "ü", "a\n", "a b", "*", "\x00"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(Refused, match=r"crate_id .* isn't usable: 1 to 40 characters out of a-z, 0-9 and '-'"):
        crate_id(name)
    with pytest.raises(Refused, match="job_id"):
        job_id(name)
