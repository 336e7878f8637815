"""What a crate adds to the rules of living states: status words, windows, superseding series."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from services.ingest.domain.refusals import Refused

WORD_STATES: Final = ("superseded", "deprecated", "dormant", "draft", "active")
MAX_WORDS: Final = 100
MAX_WINDOWS: Final = 100
MAX_SERIES: Final = 100
MAX_NAME_CHARS: Final = 256
MAX_DAYS: Final = 36_500


@dataclass(frozen=True, slots=True)
class StateWindow:
    """After how many days without anything new documents of a class change their state; 0 is off.

    Attributes:
        document_class: Value of the metadata key "class"; empty for documents without a window of their own.
        stale_after_days: Until stale.
        dormant_after_days: Until dormant.
    """

    document_class: str = ""
    stale_after_days: int = 0
    dormant_after_days: int = 0


@dataclass(frozen=True, slots=True)
class StateRules:
    """A crate's own rules.

    Attributes:
        status_words: Word and the state that it stands for, sorted.
        windows: Sorted by class.
        superseding_series: Version series whose newest version in force supersedes the others, sorted; "*" for every one.
    """

    status_words: tuple[tuple[str, str], ...] = ()
    windows: tuple[StateWindow, ...] = ()
    superseding_series: tuple[str, ...] = ()


NO_RULES: Final = StateRules()


def checked(rules: StateRules) -> StateRules:
    """Check rules and bring them to their one form.

    Args:
        rules: As the caller gave them.

    Returns:
        The rules with words and classes in folded case and everything in order.

    Raises:
        Refused: When there are too many, or one can't be used.
    """
    _check_count("status_words", len(rules.status_words), MAX_WORDS)
    _check_count("windows", len(rules.windows), MAX_WINDOWS)
    _check_count("superseding_series", len(rules.superseding_series), MAX_SERIES)
    series = {_name("superseding_series", name) for name in rules.superseding_series}
    return StateRules(_words(rules), _windows(rules), tuple(sorted(series)))


def _words(rules: StateRules) -> tuple[tuple[str, str], ...]:
    words: dict[str, str] = {}
    for given, state in rules.status_words:
        word, wanted = _name("status_words", given).casefold(), state.strip().lower()
        if wanted not in WORD_STATES:
            raise Refused(
                f"status word {given[:40]!r} can't stand for {state[:40]!r}: choose from {', '.join(WORD_STATES)}"
            )
        if words.setdefault(word, wanted) != wanted:
            raise Refused(f"status word {word[:40]!r} stands for two states, case aside: name one of them")
    return tuple(sorted(words.items()))


def _windows(rules: StateRules) -> tuple[StateWindow, ...]:
    windows: dict[str, StateWindow] = {}
    for window in rules.windows:
        name = _name("document_class", window.document_class).casefold() if window.document_class else ""
        for field in ("stale_after_days", "dormant_after_days"):
            days = getattr(window, field)
            if not 0 <= days <= MAX_DAYS:
                raise Refused(f"{field} {days} is out of range: choose 0 (off) to {MAX_DAYS}")
        if name in windows:
            raise Refused(f"class {name[:40]!r} has two windows: give one, with both of its limits")
        windows[name] = StateWindow(name, window.stale_after_days, window.dormant_after_days)
    return tuple(window for _, window in sorted(windows.items()))


def _check_count(field: str, count: int, limit: int) -> None:
    if count > limit:
        raise Refused(f"{field} has {count} entries: at most {limit} are allowed")


def _name(field: str, value: str) -> str:
    name = " ".join(unicodedata.normalize("NFC", value).split())
    if not name:
        raise Refused(f"{field} holds an empty name: leave it out, or name it")
    if len(name) > MAX_NAME_CHARS:
        raise Refused(f"{field} holds a name of {len(name)} characters: at most {MAX_NAME_CHARS} are allowed")
    if not name.isprintable():
        raise Refused(f"{field} holds an invisible or control character: leave it out")
    return name
