"""What is found out about a chunk, what it is keyed by, and what a failure makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from blake3 import blake3

from services.proposition.domain.grading import Statement


class Status(Enum):
    """What became of a chunk."""

    EVALUATED = "evaluated"
    SKIPPED = "skipped"
    SOURCE = "source"


class Problem(Enum):
    """Why an evaluation failed."""

    PROVIDER_ERROR = "provider error"
    MALFORMED = "malformed answer"
    TRUNCATED = "truncated answer"
    MISMATCHED = "mismatched ordinals"
    MISSING_RATING = "missing rating"
    OUT_OF_RANGE = "score out of range"
    NONE_ACCEPTED = "none accepted"


class Policy(Enum):
    """What a failed evaluation means for its document."""

    FAIL_INDEXING = "fail-indexing"
    SKIP_CHUNK = "skip-chunk"
    EMBED_SOURCE_CHUNK = "embed-source-chunk"


class Failed(Exception):  # noqa: N818  (an outcome of an evaluation, not a fault)
    """An evaluation failed.

    Attributes:
        problem: Why.
        diagnostics: What it is, without content.
        statements: Those that were read before it.
        lasting: Whether the same request will fail again for sure.
    """

    def __init__(
        self, problem: Problem, diagnostics: str, statements: Sequence[Statement] = (), *, lasting: bool = False
    ) -> None:
        super().__init__(f"{problem.value}: {diagnostics}")
        self.problem = problem
        self.diagnostics = diagnostics
        self.statements = tuple(statements)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Revision:
    """Whose evaluations they are.

    Attributes:
        crate_id: Crate.
        document_id: Document.
        number: Its revision.
    """

    crate_id: str
    document_id: str
    number: int


@dataclass(frozen=True, slots=True)
class PackAt:
    """Where a pack of a revision lies.

    Attributes:
        revision: Revision of the document.
        pack_id: Id of the pack.
        size_bytes: Its size.
    """

    revision: int
    pack_id: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A chunk as it is evaluated.

    Attributes:
        text: Its text.
        title: Of the document; may be empty.
        heading_path: Titles of the enclosing headings, outermost first.
        context: What a reader needs beside the text, such as the header row of a table; may be empty.
    """

    text: str
    title: str = ""
    heading_path: tuple[str, ...] = ()
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was found out about one chunk.

    Attributes:
        ordinal: Of the chunk, from 0.
        fingerprint: What reuse is keyed by; empty for a failed one.
        status: What became of the chunk.
        problem: Why it failed; None when it didn't.
        diagnostics: What the problem is, without content.
        statements: By ordinal.
        model_id: As the provider tells it.
        prompt_version: Of the prompts.
        source_hash: BLAKE3 of the chunk's text, 32 bytes.
        generation_request_id: As the provider tells it; may be empty.
        grading_request_id: As the provider tells it; may be empty.
        evaluated_at: When, UTC.
    """

    ordinal: int
    fingerprint: bytes = b""
    status: Status = Status.EVALUATED
    problem: Problem | None = None
    diagnostics: str = ""
    statements: tuple[Statement, ...] = ()
    model_id: str = ""
    prompt_version: str = ""
    source_hash: bytes = b""
    generation_request_id: str = ""
    grading_request_id: str = ""
    evaluated_at: datetime

    @property
    def accepted(self) -> int:
        """Statements that become records."""
        return sum(statement.accepted for statement in self.statements) if self.status is Status.EVALUATED else 0

    @property
    def rejected(self) -> int:
        """Statements that were graded, or read, and don't become records."""
        return len(self.statements) - self.accepted

    def of_chunk(self, ordinal: int) -> Evaluation:
        """The same for another chunk with the same fingerprint."""
        return replace(self, ordinal=ordinal)


def fingerprint(source: Source, *, model: str, base_url: str, prompt_version: str) -> bytes:
    """What an evaluation depends on: an equal one needs no calls.

    Args:
        source: The chunk.
        model: Name of the model, as the crate has it.
        base_url: Address of the provider, as the crate has it.
        prompt_version: Of the prompts.

    Returns:
        BLAKE3 over all of it, each after its length, 32 bytes.
    """
    hasher = blake3()
    headings = (str(len(source.heading_path)), *source.heading_path)
    for field in (source.text, source.title, *headings, source.context, model, base_url, prompt_version):
        encoded = field.encode()
        hasher.update(len(encoded).to_bytes(8, "big"))
        hasher.update(encoded)
    return hasher.digest()


def source_hash(source: Source) -> bytes:
    """BLAKE3 of a chunk's text, 32 bytes."""
    return blake3(source.text.encode()).digest()


def status_of_failure(policy: Policy) -> Status | None:
    """What a failed evaluation makes of its chunk.

    Args:
        policy: Of the crate.

    Returns:
        The chunk's status; None when the whole document fails.
    """
    return {Policy.SKIP_CHUNK: Status.SKIPPED, Policy.EMBED_SOURCE_CHUNK: Status.SOURCE}.get(policy)
