"""Settings, providers and chunk settings: messages <-> values, both ways exact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TypeVar

from affidavit.ingest.v1 import settings_pb2 as pb
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.ingest.domain.chunking import ChunkPatch, ChunkSettings
from services.ingest.domain.providers import Provider, ProviderKind, ProviderRole
from services.ingest.domain.refusals import Refused
from services.ingest.domain.settings import (
    AnswerMode,
    CrateSettings,
    PropositionFailurePolicy,
    RetrievalMode,
    RetrievalStrategy,
    SettingsPatch,
)
from services.ingest.domain.state_rules import StateRules, StateWindow

_E = TypeVar("_E", bound=StrEnum)
_N = TypeVar("_N", bound=int)

RETRIEVAL_MODES: Final = {
    pb.RETRIEVAL_MODE_HYBRID: RetrievalMode.HYBRID,
    pb.RETRIEVAL_MODE_LEXICAL: RetrievalMode.LEXICAL,
    pb.RETRIEVAL_MODE_SEMANTIC: RetrievalMode.SEMANTIC,
}
STRATEGIES: Final = {
    pb.RETRIEVAL_STRATEGY_STANDARD: RetrievalStrategy.STANDARD,
    pb.RETRIEVAL_STRATEGY_PROPOSITION: RetrievalStrategy.PROPOSITION,
}
POLICIES: Final = {
    pb.PROPOSITION_FAILURE_POLICY_FAIL_INDEXING: PropositionFailurePolicy.FAIL_INDEXING,
    pb.PROPOSITION_FAILURE_POLICY_SKIP_CHUNK: PropositionFailurePolicy.SKIP_CHUNK,
    pb.PROPOSITION_FAILURE_POLICY_EMBED_SOURCE_CHUNK: PropositionFailurePolicy.EMBED_SOURCE_CHUNK,
}
MODES: Final = {
    pb.ANSWER_MODE_LIGHT: AnswerMode.LIGHT,
    pb.ANSWER_MODE_VERIFIED: AnswerMode.VERIFIED,
    pb.ANSWER_MODE_AUDIT: AnswerMode.AUDIT,
}
ROLES: Final = {
    pb.PROVIDER_ROLE_EMBEDDING: ProviderRole.EMBEDDING,
    pb.PROVIDER_ROLE_ANSWER: ProviderRole.ANSWER,
    pb.PROVIDER_ROLE_RERANK: ProviderRole.RERANK,
}
KINDS: Final = {
    pb.PROVIDER_KIND_LOCAL_ONNX: ProviderKind.LOCAL_ONNX,
    pb.PROVIDER_KIND_OPENAI_COMPATIBLE: ProviderKind.OPENAI_COMPATIBLE,
    pb.PROVIDER_KIND_TRITON: ProviderKind.TRITON,
    pb.PROVIDER_KIND_COHERE_COMPATIBLE: ProviderKind.COHERE_COMPATIBLE,
}
_PLAIN: Final = (
    "strict_grounding",
    "allow_client_history",
    "inline_citations",
    "structured_sources",
    "source_limit",
    "allow_downgrade",
    "profile",
)


def inverse(table: Mapping[_N, _E]) -> dict[_E, _N]:
    """The other direction of a table."""
    return {value: number for number, value in table.items()}


def choice(table: Mapping[_N, _E], field: str, number: _N) -> _E:
    """Look up an enum's number.

    Args:
        table: Numbers that are known.
        field: Name of the field, for the message.
        number: As received.

    Returns:
        The value.

    Raises:
        Refused: When the number is unspecified or unknown.
    """
    found = table.get(number)
    if found is None:
        raise Refused(f"{field} {number} is unknown: use one of {', '.join(table.values())}")
    return found


def _optional_choice(table: Mapping[_N, _E], field: str, message: Message) -> _E | None:
    # An enum that is set to "unspecified" says as little as one that is absent.
    if not message.HasField(field) or not getattr(message, field):
        return None
    return choice(table, field, getattr(message, field))


def settings_patch(message: pb.CrateSettings) -> SettingsPatch:
    """Read wanted changes: an absent field stays as it is.

    Raises:
        Refused: When an enum's number is unknown.
    """
    return SettingsPatch(
        retrieval_mode=_optional_choice(RETRIEVAL_MODES, "retrieval_mode", message),
        retrieval_strategy=_optional_choice(STRATEGIES, "retrieval_strategy", message),
        proposition_failure_policy=_optional_choice(POLICIES, "proposition_failure_policy", message),
        mode=_optional_choice(MODES, "mode", message),
        state_rules=state_rules(message.state_rules) if message.HasField("state_rules") else None,
        **{field: getattr(message, field) for field in _PLAIN if message.HasField(field)},
    )


def settings_message(settings: CrateSettings) -> pb.CrateSettings:
    """Write settings with every field set."""
    message = pb.CrateSettings(**{field: getattr(settings, field) for field in _PLAIN})
    message.retrieval_mode = inverse(RETRIEVAL_MODES)[settings.retrieval_mode]
    message.retrieval_strategy = inverse(STRATEGIES)[settings.retrieval_strategy]
    message.proposition_failure_policy = inverse(POLICIES)[settings.proposition_failure_policy]
    message.mode = inverse(MODES)[settings.mode]
    message.state_rules.CopyFrom(state_rules_message(settings.state_rules))
    return message


def state_rules(message: pb.StateRules) -> StateRules:
    """Read rules of living states; they are checked later."""
    return StateRules(
        tuple(sorted(message.status_words.items())),
        tuple(
            StateWindow(window.document_class, window.stale_after_days, window.dormant_after_days)
            for window in message.windows
        ),
        tuple(message.superseding_series),
    )


def state_rules_message(rules: StateRules) -> pb.StateRules:
    """Write rules of living states."""
    return pb.StateRules(
        status_words=dict(rules.status_words),
        windows=[
            pb.StateWindow(
                document_class=window.document_class,
                stale_after_days=window.stale_after_days,
                dormant_after_days=window.dormant_after_days,
            )
            for window in rules.windows
        ],
        superseding_series=rules.superseding_series,
    )


def stored_settings(message: pb.CrateSettings) -> CrateSettings:
    """Read settings of an event, where every field that its release knew is set; the others have their defaults.

    Raises:
        Refused: When an enum's number is unknown.
    """
    patch = settings_patch(message)
    wanted = {field.name: getattr(patch, field.name) for field in fields(patch)}
    return replace(CrateSettings(), **{name: value for name, value in wanted.items() if value is not None})


def provider(message: pb.Provider) -> Provider:
    """Read a provider.

    Raises:
        Refused: When role or kind is unspecified or unknown.
    """
    return Provider(
        role=choice(ROLES, "provider role", message.role),
        kind=choice(KINDS, "provider kind", message.kind),
        enabled=message.enabled,
        base_url=message.base_url,
        model=message.model,
        credential=message.credential,
        max_input_chars=message.max_input_chars,
        timeout_s=message.timeout_s,
        dimension=message.dimension,
        headers=tuple(sorted(message.headers.items())),
        max_output_tokens=message.max_output_tokens,
        max_concurrency=message.max_concurrency,
    )


def provider_message(value: Provider) -> pb.Provider:
    """Write a provider."""
    return pb.Provider(
        role=inverse(ROLES)[value.role],
        kind=inverse(KINDS)[value.kind],
        enabled=value.enabled,
        base_url=value.base_url,
        model=value.model,
        credential=value.credential,
        max_input_chars=value.max_input_chars,
        timeout_s=value.timeout_s,
        dimension=value.dimension,
        headers=dict(value.headers),
        max_output_tokens=value.max_output_tokens,
        max_concurrency=value.max_concurrency,
    )


def providers(messages: Iterable[pb.Provider]) -> tuple[Provider, ...]:
    """Read providers, see `provider`."""
    return tuple(provider(message) for message in messages)


def chunk_patch(message: pb.ChunkSettings) -> ChunkPatch:
    """Read wanted chunk settings: an absent field stays as it is."""
    return ChunkPatch(
        message.size_chars if message.HasField("size_chars") else None,
        message.overlap_chars if message.HasField("overlap_chars") else None,
    )


def chunk_settings(message: pb.ChunkSettings) -> ChunkSettings:
    """Read chunk settings of an event, where both are set."""
    return ChunkSettings(message.size_chars, message.overlap_chars)


def chunk_message(value: ChunkSettings) -> pb.ChunkSettings:
    """Write chunk settings."""
    return pb.ChunkSettings(size_chars=value.size_chars, overlap_chars=value.overlap_chars)


def timestamp(value: datetime) -> Timestamp:
    """Write an aware time.

    Raises:
        ValueError: When the time names no zone: nobody may guess one.
    """
    if value.tzinfo is None:
        raise ValueError("a time without a zone")
    message = Timestamp()
    message.FromDatetime(value)
    return message


def moment(field: str, message: Timestamp) -> datetime:
    """Read a time.

    Args:
        field: Name of the field, for the message.
        message: Seconds and nanoseconds; what is finer than a microsecond is dropped.

    Returns:
        Aware, UTC.

    Raises:
        Refused: When it is outside of the years 1 to 9999.
    """
    try:
        return message.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise Refused(f"{field} isn't a time between the years 1 and 9999") from error
