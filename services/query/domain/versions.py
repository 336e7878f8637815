"""Which member of a version series answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import regex

from services.query.domain.intent import Intent, VersionWish
from services.query.domain.living import Family, Relation, RelationType, StateReport

_PARTS = regex.compile(r"\d+|\p{L}+")
_BEFORE_RELEASE = regex.compile(
    r"\d[-._]?(?:a|alpha|b|beta|c|rc|pre|preview|dev|draft|snapshot|m)[-._]?\d*\s*$", regex.IGNORECASE
)
_MOST_STEPS = 64


def is_prerelease(version: str) -> bool:
    """Whether a version is one before a release: 2.0-rc1, 1.4.0b2, 3.0-draft."""
    return bool(_BEFORE_RELEASE.search(version))


def same_version(wanted: str, version: str) -> bool:
    """Tell whether two spellings mean one version.

    Args:
        wanted: As a question has it, for example "v1.9".
        version: As a series has it.

    Returns:
        True when their numbers and words agree; "1.0" and "1" are one version, "1.0" and "1.0-rc1" are two.
    """
    one, other = _parts(wanted), _parts(version)
    return bool(one) and _trimmed(one) == _trimmed(other)


def in_line(wanted: str, version: str) -> bool:
    """Tell whether a version belongs to a line: "3.0" is the line of 3.0.4, not of 3.1."""
    line, parts = _parts(wanted), _parts(version)
    return bool(line) and parts[: len(line)] == line


def current_member(members: Sequence[StateReport]) -> StateReport | None:
    """Find the newest member in force.

    Args:
        members: Oldest first.

    Returns:
        The member; None when none is in force. A draft isn't, and a pre-release only where there is no release.
    """
    held = [member for member in members if member.in_force and not member.not_in_force_yet]
    best = [member for member in held if not is_prerelease(member.version)] or held
    return best[-1] if best else None


def wanted_member(family: Family, intent: Intent) -> StateReport | None:
    """Find the member that a question wants.

    Args:
        family: The series.
        intent: The question's.

    Returns:
        The member; None when the series has no such one. An explicit version is that very one, else the newest of
        its line. "Previous" is the one before the current one.
    """
    members = family.members
    if intent.version is VersionWish.EXPLICIT:
        return _explicit(members, intent.versions)
    line = tuple(member for member in members if any(in_line(version, member.version) for version in intent.versions))
    considered = line or members
    if intent.version is VersionWish.ORIGINAL:
        return considered[0] if considered else None
    current = current_member(considered)
    if intent.version is VersionWish.PREVIOUS:
        place = considered.index(current) if current else len(considered)
        return considered[place - 1] if place else None
    return current


def series_of(document_id: str, relations: Sequence[Relation], states: Mapping[str, StateReport]) -> Family | None:
    """Make a series of documents that supersede one another, where no version tells.

    Args:
        document_id: Where to begin.
        relations: Edges around it.
        states: Of the documents on the edges, by document id.

    Returns:
        The chain, oldest first: what a document superseded comes before it, among equals by effective time and id.
        None when it stands alone.
    """
    older: dict[str, set[str]] = {}
    for edge in relations:
        if edge.kind is RelationType.SUPERSEDES:
            older.setdefault(edge.source, set()).add(edge.target)
    chain = _above(document_id, older) | _below(document_id, older)
    held = [states[item] for item in chain if item in states]
    if len(held) < 2:
        return None
    depth = {item: len(_below(item, older)) for item in chain}
    ordered = sorted(
        held,
        key=lambda report: (
            depth[report.document_id],
            report.effective_at.timestamp() if report.effective_at else 0.0,
            report.document_id,
        ),
    )
    return Family("", tuple(ordered))


def version_note(chosen: StateReport, family: Family) -> str:
    """Tell that a cited version isn't the current one.

    Args:
        chosen: The cited member.
        family: Its series.

    Returns:
        The note; empty when it is the current one.
    """
    current = current_member(family.members)
    if current is not None and current.document_id == chosen.document_id:
        return ""
    version = f" (version {chosen.version})" if chosen.version else ""
    if current is None:
        return f"{chosen.name}{version} is cited as asked; no version of it is in force"
    named = f" (version {current.version})" if current.version else ""
    return f"{chosen.name}{version} is cited as asked and is not current: {current.name}{named} is"


def _explicit(members: Sequence[StateReport], versions: Sequence[str]) -> StateReport | None:
    """The version as it is written, else the newest of its line, else the same one written otherwise."""
    for version in versions:
        for member in reversed(members):
            if _parts(version) == _parts(member.version):
                return member
        line = [member for member in members if in_line(version, member.version)]
        if line:
            return current_member(line) or line[-1]
        for member in reversed(members):
            if same_version(version, member.version):
                return member
    return None


def _parts(version: str) -> tuple[str, ...]:
    return tuple(
        str(int(part)) if part.isdecimal() else part.casefold() for part in _PARTS.findall(version.removeprefix("v"))
    )


def _trimmed(parts: tuple[str, ...]) -> tuple[str, ...]:
    while len(parts) > 1 and parts[-1] == "0":
        parts = parts[:-1]
    return parts


def _below(start: str, older: Mapping[str, set[str]]) -> set[str]:
    """A document and everything that it superseded, step by step; a cycle ends by itself."""
    seen, waiting = {start}, [start]
    while waiting and len(seen) < _MOST_STEPS:
        for item in sorted(older.get(waiting.pop(), ())):
            if item not in seen:
                seen.add(item)
                waiting.append(item)
    return seen


def _above(start: str, older: Mapping[str, set[str]]) -> set[str]:
    newer: dict[str, set[str]] = {}
    for source, targets in older.items():
        for target in targets:
            newer.setdefault(target, set()).add(source)
    return _below(start, newer)
