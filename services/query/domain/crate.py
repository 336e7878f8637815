"""What a crate's settings say about searching and answering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.query.domain.modes import AnswerMode
from services.query.domain.question import content_terms
from services.query.domain.values import RetrievalMode

# A question with fewer content terms is taken to lean on what was asked before.
_ELLIPTICAL_TERMS = 3
_HISTORY_CHARS = 1_000
MAX_TURNS = 100
MAX_TURNS_CHARS = 100_000
ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class CrateRules:
    """Settings of a crate, defaults filled in.

    Attributes:
        strict_grounding: No general knowledge. Extractive answers never use any.
        allow_client_history: The caller's history may be used for its one request.
        inline_citations: Markers in the answer's text.
        structured_sources: The reply carries the list of sources.
        retrieval_mode: Lanes that a query uses unless it says otherwise.
        source_limit: Contexts considered, 1 to 32.
        mode: Answer mode unless the request says otherwise.
        allow_downgrade: Verified may fall back to light.
        profile: Name of the manifest.
        answer_model: Model of the enabled answer provider; empty when there is none.
    """

    strict_grounding: bool = False
    allow_client_history: bool = True
    inline_citations: bool = True
    structured_sources: bool = True
    retrieval_mode: RetrievalMode = RetrievalMode.HYBRID
    source_limit: int = 8
    mode: AnswerMode = AnswerMode.VERIFIED
    allow_downgrade: bool = True
    profile: str = "v1"
    answer_model: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the caller's history."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The text that is looked for, and what to tell the caller about his history.

    Attributes:
        text: The question, behind the last one before it where it leans on that.
        note: Empty when there is nothing to tell.
    """

    text: str
    note: str


def history_problem(history: Sequence[Turn]) -> str:
    """Look at the caller's turns, whether or not they are used.

    Args:
        history: The caller's turns.

    Returns:
        Empty, or what is wrong and what to do.
    """
    if len(history) > MAX_TURNS:
        return f"history has {len(history)} turns: send the last {MAX_TURNS} at most"
    chars = sum(len(turn.text) for turn in history)
    if chars > MAX_TURNS_CHARS:
        return f"history has {chars} characters: send the last {MAX_TURNS_CHARS} at most"
    for turn in history:
        if turn.role not in ROLES:
            return f"history has a turn of role {turn.role[:40]!r}: use one of {', '.join(ROLES)}"
    return ""


def with_history(question: str, history: Sequence[Turn], *, allowed: bool) -> Reading:
    """Complete a question that leans on the one before ("And for part-time staff?").

    Args:
        question: As asked.
        history: The caller's turns, oldest first; used for this one request, never stored.
        allowed: The crate lets history be used.

    Returns:
        The text to look for.
    """
    if not history:
        return Reading(question, "")
    if not allowed:
        return Reading(question, "history: ignored, since allow_client_history is off in this crate")
    asked = [turn.text.strip() for turn in history if turn.role == "user" and turn.text.strip()]
    if not asked or len(content_terms(question)) >= _ELLIPTICAL_TERMS:
        return Reading(question, "history: not needed, the question stands for itself")
    return Reading(
        f"{asked[-1][:_HISTORY_CHARS]} {question}", "history: the last question was used to look for evidence"
    )
