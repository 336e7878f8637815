"""Where a crate's chunks are evaluated, as values."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_TIMEOUT_S = 30
DEFAULT_OUTPUT_TOKENS = 2_048
DEFAULT_CONCURRENCY = 4
PROPOSITION = "proposition"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A crate's enabled answer provider.

    Attributes:
        base_url: Address that paths are added to.
        model: Name that the provider knows.
        credential: "env:NAME", "file:/path" or empty; never the credential itself.
        headers: Names and values, by name; "env:NAME" and "file:/path" say where a value is read from.
        timeout_s: Seconds for one call.
        max_input_chars: Most code points of one call's messages; 0 for no limit.
        max_output_tokens: Most tokens that one call may answer with.
        max_concurrency: Calls side by side.
    """

    base_url: str
    model: str
    credential: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    timeout_s: int = DEFAULT_TIMEOUT_S
    max_input_chars: int = 0
    max_output_tokens: int = DEFAULT_OUTPUT_TOKENS
    max_concurrency: int = DEFAULT_CONCURRENCY


@dataclass(frozen=True, slots=True)
class Generation:
    """The generation that chunks are evaluated for.

    Attributes:
        number: From 1.
        strategy: "standard" or "proposition".
    """

    number: int
    strategy: str

    @property
    def needs_evaluation(self) -> bool:
        """Whether chunks are turned into propositions before they are embedded."""
        return self.strategy == PROPOSITION
