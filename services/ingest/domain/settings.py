"""Crate settings: defaults, merging of partial settings, and what this version doesn't serve yet."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final

from services.ingest.domain.refusals import NotBuiltYet, Refused
from services.ingest.domain.state_rules import NO_RULES, StateRules, checked

MIN_SOURCES: Final = 1
MAX_SOURCES: Final = 32
PROFILE: Final = "v1"
PROFILES: Final = (PROFILE, "v3.1")
LATER_PROFILES: Final = ("v4.1",)
_NAME = re.compile(r"[a-z0-9-]{1,40}")


class RetrievalMode(StrEnum):
    """Lanes that a search uses."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    SEMANTIC = "semantic"


class RetrievalStrategy(StrEnum):
    """What a record of the lanes is."""

    STANDARD = "standard"
    PROPOSITION = "proposition"


class PropositionFailurePolicy(StrEnum):
    """What becomes of a chunk whose propositions failed."""

    FAIL_INDEXING = "fail-indexing"
    SKIP_CHUNK = "skip-chunk"
    EMBED_SOURCE_CHUNK = "embed-source-chunk"


class AnswerMode(StrEnum):
    """How much evidence an answer needs."""

    LIGHT = "light"
    VERIFIED = "verified"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrateSettings:
    """Everything that can be set for a crate, with its defaults."""

    strict_grounding: bool = False
    allow_client_history: bool = True
    inline_citations: bool = True
    structured_sources: bool = True
    retrieval_mode: RetrievalMode = RetrievalMode.HYBRID
    retrieval_strategy: RetrievalStrategy = RetrievalStrategy.STANDARD
    proposition_failure_policy: PropositionFailurePolicy = PropositionFailurePolicy.FAIL_INDEXING
    source_limit: int = 8
    mode: AnswerMode = AnswerMode.VERIFIED
    allow_downgrade: bool = True
    profile: str = PROFILE
    state_rules: StateRules = NO_RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsPatch:
    """Wanted changes; None leaves a setting as it is."""

    strict_grounding: bool | None = None
    allow_client_history: bool | None = None
    inline_citations: bool | None = None
    structured_sources: bool | None = None
    retrieval_mode: RetrievalMode | None = None
    retrieval_strategy: RetrievalStrategy | None = None
    proposition_failure_policy: PropositionFailurePolicy | None = None
    source_limit: int | None = None
    mode: AnswerMode | None = None
    allow_downgrade: bool | None = None
    profile: str | None = None
    state_rules: StateRules | None = None


def merge(current: CrateSettings, patch: SettingsPatch) -> CrateSettings:
    """Apply a patch and check the whole that comes out.

    Args:
        current: Settings before.
        patch: Wanted changes.

    Returns:
        Settings after.

    Raises:
        Refused: When a value is out of range.
        NotBuiltYet: When a value is one that a later version serves.
    """
    wanted = {field.name: getattr(patch, field.name) for field in fields(patch)}
    merged = replace(current, **{name: value for name, value in wanted.items() if value is not None})
    _check(merged)
    return replace(merged, state_rules=checked(merged.state_rules))


def reconfigure(current: CrateSettings, patch: SettingsPatch) -> CrateSettings:
    """Apply a patch to the settings of a crate that exists, see `merge`.

    Raises:
        Refused: When a value is out of range.
        NotBuiltYet: When a value is one that a later version serves, or needs the index to be built again.
    """
    merged = merge(current, patch)
    if merged.retrieval_strategy is not current.retrieval_strategy:
        raise NotBuiltYet(
            f"changing retrieval_strategy from {current.retrieval_strategy} to {merged.retrieval_strategy} needs the "
            "index to be built again, which is not available yet: create another crate with that strategy"
        )
    return merged


def _check(settings: CrateSettings) -> None:
    if not MIN_SOURCES <= settings.source_limit <= MAX_SOURCES:
        raise Refused(
            f"source_limit {settings.source_limit} is out of range: choose {MIN_SOURCES} to {MAX_SOURCES} (default 8)"
        )
    if settings.profile in LATER_PROFILES:
        raise NotBuiltYet(f"profile {settings.profile} is not available yet: use {' or '.join(PROFILES)}")
    if settings.profile not in PROFILES:
        raise Refused(f"profile {settings.profile[:40]!r} doesn't exist: use {' or '.join(PROFILES)}")


def crate_id(value: str) -> str:
    """Check a crate id.

    Args:
        value: What the caller gave.

    Returns:
        The same.

    Raises:
        Refused: When it isn't 1 to 40 of a-z, 0-9 and '-'.
    """
    return _name("crate_id", value)


def job_id(value: str) -> str:
    """Check a job id, see `crate_id`."""
    return _name("job_id", value)


def _name(field: str, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise Refused(f"{field} {value[:80]!r} isn't usable: 1 to 40 characters out of a-z, 0-9 and '-'")
    return value
