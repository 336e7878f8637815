"""Status words, and titles that are a notice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from services.index.domain.living.values import State


@dataclass(frozen=True, slots=True)
class Word:
    """What a status word stands for.

    Attributes:
        state: The state; a draft is active and not in force yet.
        came_into_force: A document with this word was in force at some time.
        draft: It is not in force yet.
    """

    state: State
    came_into_force: bool = True
    draft: bool = False


_SUPERSEDED = Word(State.SUPERSEDED)
_OUT = Word(State.DEPRECATED)
_NEVER = Word(State.DEPRECATED, came_into_force=False)
_PAUSED = Word(State.DORMANT, came_into_force=False)
_DRAFT = Word(State.ACTIVE, came_into_force=False, draft=True)
_IN_FORCE = Word(State.ACTIVE)
WORDS: Mapping[str, Word] = {
    "superseded": _SUPERSEDED, "obsolete": _SUPERSEDED, "obsoleted": _SUPERSEDED, "replaced": _SUPERSEDED,
    "rejected": _NEVER, "withdrawn": _NEVER, "abandoned": _NEVER, "cancelled": _NEVER, "canceled": _NEVER,
    "deprecated": _OUT, "archived": _OUT, "retired": _OUT, "historic": _OUT, "historical": _OUT, "revoked": _OUT,
    "deferred": _PAUSED, "stagnant": _PAUSED, "on hold": _PAUSED, "dormant": Word(State.DORMANT),
    "draft": _DRAFT, "proposed": _DRAFT, "proposal": _DRAFT, "review": _DRAFT, "in review": _DRAFT,
    "provisional": _DRAFT,
    "accepted": _IN_FORCE, "active": _IN_FORCE, "final": _IN_FORCE, "living": _IN_FORCE, "approved": _IN_FORCE,
    "published": _IN_FORCE,
}  # fmt: skip
_OF_CRATE = {
    "superseded": _SUPERSEDED,
    "deprecated": _OUT,
    "dormant": _PAUSED,
    "draft": _DRAFT,
    "active": _IN_FORCE,
}
_SPACES = re.compile(r"[\s_-]+")
_ACTS = "deprecated|archived|withdrawn|retired|obsolete|revoked"
_NOUNS = "deprecation|withdrawal|archival|archive|retirement|revocation|end[- ]of[- ]life|sunset"
_DASH = "[:\N{EN DASH}\N{EM DASH}-]"
_NOTICES = (
    re.compile(rf"\[(?:{_ACTS})\]\s*{_DASH}?\s*(?P<named>.*)", re.IGNORECASE),
    re.compile(rf"(?:{_ACTS})\s*{_DASH}\s*(?P<named>.+)", re.IGNORECASE),
    re.compile(rf"notice\s+of\s+(?:{_NOUNS})(?:\s*(?:{_DASH}|\bof\b|\bfor\b)\s*(?P<named>.+))?", re.IGNORECASE),
    re.compile(rf"(?:{_NOUNS})\s+notice(?:\s*(?:{_DASH}|\bof\b|\bfor\b)\s*(?P<named>.+))?", re.IGNORECASE),
    re.compile(rf"(?P<named>.+?)\s*{_DASH}\s*(?:{_NOUNS})\s+notice", re.IGNORECASE),
    re.compile(rf"(?P<named>.+?)\s*[\[(](?:{_ACTS})[\])]", re.IGNORECASE),
)
_ASIDE = re.compile("\\s+(?:\N{EN DASH}|\N{EM DASH}|--|-)\\s+")
_ERRATUM = re.compile(r"\b(?:errat(?:um|a)|corrigend(?:um|a))\b", re.IGNORECASE)


def status_word(value: str, own: Mapping[str, str]) -> tuple[str, Word] | None:
    """Read a status.

    Args:
        value: "Final", "Deferred (2019)", "on_hold", "Superseded by ADR-7".
        own: The crate's own words, which go first.

    Returns:
        The word as the table has it, and what it stands for; None for a word that isn't known.
    """
    text = _SPACES.sub(" ", value.strip().strip("\"'*")).casefold()
    mine = {_SPACES.sub(" ", word.strip()).casefold(): state for word, state in own.items()}
    words = text.split(" ")
    for candidate in (text, " ".join(words[:2]), words[0].rstrip(",.;:!")):
        state = mine.get(candidate)
        if state in _OF_CRATE:
            known = WORDS.get(candidate)
            return candidate, known if known and known.state == state and not known.draft else _OF_CRATE[state]
        if candidate in WORDS:
            return candidate, WORDS[candidate]
    return None


def notice(title: str) -> tuple[str, ...] | None:
    """Tell whether a title is a notice that something is out of force.

    Args:
        title: "DEPRECATED: Old guide - see the new one", "Notice of withdrawal".

    Returns:
        Names that it may speak of, the longest first; None when it is no notice.
    """
    for pattern in _NOTICES:
        found = pattern.fullmatch(title.strip())
        if found:
            named = (found["named"] or "").strip()
            short = _ASIDE.split(named, maxsplit=1)[0].strip()
            return tuple(dict.fromkeys(name for name in (named, short) if name))
    return None


def is_erratum(kind: str, title: str) -> bool:
    """Whether a document corrects another one: by its kind in metadata, else by its title."""
    return bool(_ERRATUM.search(kind) or _ERRATUM.search(title))
