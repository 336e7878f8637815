"""Which model a crate's texts go to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

DEFAULT_TIMEOUT_S = 30


class Purpose(Enum):
    """What a text is: some models embed questions and documents differently."""

    QUERY = "query"
    DOCUMENT = "document"


class ProviderKind(Enum):
    """How a crate's embedding model is reached."""

    LOCAL = "local"
    OPENAI_COMPATIBLE = "openai-compatible"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A crate's enabled embedding provider.

    Attributes:
        kind: How it is reached.
        base_url: Address that paths are added to.
        model: Name that the provider knows.
        credential: "env:NAME", "file:/path" or empty; never the credential itself.
        max_input_chars: Most code points of one input; 0 for no limit.
        timeout_s: Seconds for one call.
        dimension: Length of its vectors.
    """

    kind: ProviderKind
    base_url: str = ""
    model: str = ""
    credential: str = ""
    max_input_chars: int = 0
    timeout_s: int = DEFAULT_TIMEOUT_S
    dimension: int = 0

    @property
    def fingerprint(self) -> str:
        """What can be known of a model that runs elsewhere, 64 hex digits."""
        fields = (self.kind.value, self.base_url, self.model, str(self.dimension))
        return sha256("\0".join(fields).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Generation:
    """The generation that texts are embedded for.

    Attributes:
        number: From 1.
        model_id: Model that it is built on.
        dimension: Length of its vectors.
        retrieval_strategy: "standard" or "proposition".
        fingerprint: Of the model when the generation was started.
    """

    number: int
    model_id: str
    dimension: int
    retrieval_strategy: str
    fingerprint: str

    @property
    def has_propositions(self) -> bool:
        """Whether propositions stand for chunks."""
        return self.retrieval_strategy == "proposition"


def mismatch(generation: Generation, model_id: str, dimension: int) -> str:
    """Compare a generation with the model that would embed for it now.

    Vectors of two models can't be compared even when they have the same length, so both must agree.

    Args:
        generation: As the log has it.
        model_id: Model that is served now.
        dimension: Length of its vectors.

    Returns:
        What is wrong, or "".
    """
    if (generation.model_id, generation.dimension) == (model_id, dimension):
        return ""
    return (
        f"generation {generation.number} is built on {generation.model_id} with {generation.dimension} dimensions, "
        f"but the embedding model is now {model_id} with {dimension}"
    )
