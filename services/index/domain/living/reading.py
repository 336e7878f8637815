"""What a revision says about its own life: read from its metadata, its source id and its title, by rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from services.index.domain.living import words
from services.index.domain.living.dates import later, parse_date, parse_interval
from services.index.domain.living.references import (
    Reference,
    aliases,
    link_reference,
    notice_reference,
    read_references,
    stem,
)
from services.index.domain.living.values import SUPERSEDES, RevisionFacts, Rules, State
from services.index.domain.living.versions import Version, read_version

_STATUS = ("status", "document-status", "doc-status", "publication-status", "lifecycle-status", "lifecycle", "state")
_WITHDRAWN_ON = (
    "withdrawn-on",
    "withdrawal-date",
    "withdrawn-at",
    "deprecated-on",
    "archived-on",
    "retired-on",
    "revoked-on",
)
_ACTS = ("withdrawn", "deprecated", "archived", "retired", "revoked")
_SUPERSEDED_ON = ("superseded-on", "replaced-on", "obsoleted-on")
_REVIEW = ("review-by", "next-review", "next-review-on", "next-review-date", "review-due", "review-due-on")
_REVIEWED = ("last-reviewed-on", "last-reviewed", "reviewed-on", "reviewed")
_REVIEW_IN = ("review-in", "review-every", "review-interval")
_EXPIRY = (
    "expires",
    "expires-on",
    "expiry",
    "expiry-date",
    "expiration-date",
    "valid-until",
    "valid-to",
    "valid-through",
)
_CLASS = ("class", "document-class", "kind", "doc-type")
_YES = frozenset({"true", "yes", "1", "on"})
_KEY = re.compile(r"[\s_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a revision says of itself.

    Attributes:
        word: Status word as its table has it, and what it stands for.
        status: Status as written.
        notice: Title or front-matter key that says it is out of force; empty for none.
        withdrawn_at: From when on it is withdrawn.
        withdrawn_detail: The date as written.
        superseded_at: From when on it says that it is superseded.
        stale_at: When its review or expiry falls due, each with its rule and the date as written.
        version: Series and version.
        erratum: It corrects another document.
        document_class: Its class, for windows.
        references: Relations that it states.
        aliases: Names that it answers to.
    """

    word: tuple[str, words.Word] | None
    status: str
    notice: str
    withdrawn_at: datetime | None
    withdrawn_detail: str
    superseded_at: datetime | None
    stale_at: tuple[tuple[datetime, str, str], ...]
    version: Version
    erratum: bool
    document_class: str
    references: tuple[Reference, ...]
    aliases: frozenset[str]

    @property
    def came_into_force(self) -> bool:
        """Whether it was in force at some time, as far as it says."""
        return self.word is None or self.word[1].came_into_force

    @property
    def names_successor(self) -> bool:
        """Whether it says which document supersedes it."""
        return any(one.inward and one.type == SUPERSEDES for one in self.references)


def read(facts: RevisionFacts, rules: Rules) -> Reading:
    """Read a revision.

    Args:
        facts: As recorded.
        rules: The crate's, for its status words.

    Returns:
        What it says of itself.
    """
    metadata = {_KEY.sub("-", key.strip()).casefold(): value for key, value in sorted(facts.metadata.items())}
    status = _first(metadata, _STATUS)
    named = words.notice(facts.title)
    withdrawn_at, withdrawn_detail = _withdrawal(metadata)
    document_class = _first(metadata, _CLASS).strip()
    word = words.status_word(status, rules.status_words) if status else _flagged(metadata)
    if withdrawn_at is not None and word is not None and word[1].state is State.DEPRECATED and word[0] != "rejected":
        # The date says when; until then it was in force.
        word = None
    return Reading(
        word=word,
        status=status.strip(),
        notice=facts.title.strip() if named is not None else _act(metadata),
        withdrawn_at=withdrawn_at,
        withdrawn_detail=withdrawn_detail,
        superseded_at=parse_date(_first(metadata, _SUPERSEDED_ON)),
        stale_at=tuple(_due(metadata)),
        version=read_version(
            metadata, stem(facts.source_id), facts.title, folder=facts.source_id.rstrip("/").rpartition("/")[0]
        ),
        erratum=words.is_erratum(document_class, facts.title),
        document_class=document_class,
        references=tuple(_references(facts, metadata, status, named)),
        aliases=aliases(facts.document_id, facts.source_id, facts.title, facts.uri),
    )


def _first(metadata: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((metadata[key] for key in keys if metadata.get(key, "").strip()), "")


def _flagged(metadata: Mapping[str, str]) -> tuple[str, words.Word] | None:
    for key in ("superseded", "obsolete", "draft"):
        if metadata.get(key, "").strip().casefold() in _YES:
            return key, words.WORDS[key]
    return None


def _act(metadata: Mapping[str, str]) -> str:
    return next((key for key in _ACTS if metadata.get(key, "").strip().casefold() in _YES), "")


def _withdrawal(metadata: Mapping[str, str]) -> tuple[datetime | None, str]:
    for key in (*_WITHDRAWN_ON, *_ACTS):
        moment = parse_date(metadata.get(key, ""))
        if moment is not None:
            return moment, metadata[key].strip()
    return None, ""


def _due(metadata: Mapping[str, str]) -> Iterator[tuple[datetime, str, str]]:
    for keys, rule in ((_REVIEW, "review_date"), (_EXPIRY, "expiry_date")):
        text = _first(metadata, keys)
        moment = parse_date(text)
        if moment is not None:
            yield moment, rule, text.strip()
    reviewed, interval = parse_date(_first(metadata, _REVIEWED)), parse_interval(_first(metadata, _REVIEW_IN))
    if reviewed is not None and interval is not None:
        moment = later(reviewed, *interval)
        if moment is not None:
            yield (
                moment,
                "review_date",
                f"{_first(metadata, _REVIEWED).strip()} + {_first(metadata, _REVIEW_IN).strip()}",
            )


def _references(
    facts: RevisionFacts, metadata: Mapping[str, str], status: str, named: tuple[str, ...] | None
) -> Iterator[Reference]:
    yield from read_references(facts.source_id, metadata, status)
    if named:
        yield notice_reference(named)
    for link in facts.links:
        reference = link_reference(facts.source_id, link)
        if reference is not None:
            yield reference
