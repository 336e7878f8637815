"""What a question wants of the graph: which version, which standing, which relation. Rules, no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import regex

from services.query.domain.living import Reach, RelationType
from services.query.domain.question import AnswerKind, answer_kind

_FLAGS = regex.IGNORECASE | regex.V1


class VersionWish(Enum):
    """Which member of a version series a question wants."""

    NONE = "none"
    CURRENT = "current"
    ORIGINAL = "original"
    PREVIOUS = "previous"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Intent:
    """A question's intent.

    Attributes:
        version: Which member of a series.
        versions: Versions that the question names, in order, without a leading v.
        status: It asks how something stands: accepted, rejected, withdrawn, still in force.
        past: It asks about what no longer holds, without a date.
        contested: It asks for contradictions.
        pair: Types of relations between the two things that it asks about; empty when it asks about one.
        replacement: It asks for what took something's place.
        documents: It asks for documents themselves, not for what they say.
        many: It asks for several.
        particular: It asks for a number, a moment, a person, a place or a reason.
    """

    version: VersionWish = VersionWish.NONE
    versions: tuple[str, ...] = ()
    status: bool = False
    past: bool = False
    contested: bool = False
    pair: tuple[RelationType, ...] = ()
    replacement: bool = False
    documents: bool = False
    many: bool = False
    particular: bool = False

    @property
    def reach(self) -> Reach:
        """How far the lanes look for it: beyond what is in force only where the question does."""
        older = self.version in {VersionWish.ORIGINAL, VersionWish.PREVIOUS, VersionWish.EXPLICIT}
        replaced = RelationType.SUPERSEDES in self.pair
        return Reach.EVERY if older or self.status or self.past or replaced else Reach.IN_FORCE


def _any(*patterns: str) -> regex.Pattern[str]:
    return regex.compile("|".join(f"(?:{pattern})" for pattern in patterns), _FLAGS)


_THING = (
    r"(?:documents?|specifications?|specs?|standards?|proposals?|peps?|rfcs?|adrs?|pages?|polic(?:y|ies)|statements?|terms"
    r"|texts?|versions?|revisions?|editions?|releases?|drafts?|designs?|guides?|guidance|manuals?|rules?|formats?|interfaces?"
    r"|notices?|decisions?|contracts?|agreements?|addend(?:um|a)|schedules?|schemas?|definitions?|procedures?|runbooks?)"
)
_STANDING = (
    r"(?:accepted|adopted|approved|rejected|declined|withdrawn|deprecated|superseded|obsoleted?|retired|revoked|abandoned"
    r"|archived|deferred|implemented|merged|enacted|in\s+force|in\s+effect|go(?:ne)?\s+through|accept|adopt|reject|approve"
    r"|withdraw|deprecate|land(?:ed)?|reviewed|up\s+to\s+date|outdated|stale|out\s+of\s+date|still\s+(?:valid|apply|applies"
    r"|hold|holds|current|binding))"
)
_WRITTEN = (
    r"(?:laid\s+down|set\s+out|written|described?|explain(?:ed)?|defined?|specified|specify|stated?|documented|listed|covered"
    r"|recorded|published|announced|read|look(?:ed)?\s+up|found)"
)
_VERSION = regex.compile(
    r"\b(?:v(?:ersion|\.)?\s*(?P<named>\d+(?:\.\d+)*[\w.+\-]*?)|(?P<bare>\d+(?:\.\d+)+(?:-?(?:rc|alpha|beta|a|b)\.?\d*)?))(?=[\s,;:?!)]|\.(?:\s|$)|$)",
    _FLAGS,
)
_ORIGINAL = _any(
    rf"\b(?:original|initial|earliest|oldest|very\s+first|first)\s+(?:\w+[\s\-]+){{0,3}}?(?:published\s+)?{_THING}\b(?!\s+candidate)",
    r"\b(?:was|were|is|are)?\s*first\s+(?:published|introduced|described|defined|specified|issued|adopted|written|released"
    r"|proposed|replaced|stated)\b",
    r"\b(?:defined|introduced|described|specified)\s+the\s+(?:very\s+)?first\b",
    r"\boriginally\b",
    r"\bbefore\s+(?:it|they|that|this)\s+(?:was|were|got)\s+(?:revised|changed|replaced|updated|amended|rewritten|split)\b",
    r"\bearly\s+(?:\w+\s+){0,2}?(?:proposal|version|draft|design)\b",
)
_CURRENT = _any(
    r"\b(?:latest|newest|most\s+recent|current(?:ly)?|nowadays|today|presently|at\s+present|up-to-date|valid\s+now)\b",
    rf"\bpresent\s+{_THING}\b",
    r"\bnow\b(?!\s+that)",
    r"\bin\s+force\b(?!\s+(?:in|on|at|before|until|as)\b)",
)
_PREVIOUS = _any(
    rf"\b(?:previous|preceding|prior|penultimate|last\s+but\s+one)\s+(?:\w+\s+){{0,2}}?{_THING}\b",
    r"\bpredecessors?\b",
    r"\bbefore\s+(?!(?:19|20)\d\d\b)(?:\w+[\s\-]+){1,6}?(?:was|were|got|came)\s+(?:introduced|changed|replaced|adopted|added|into)\b",
    r"\buntil\s+(?:the\s+)?(?:\w+[\s\-]+){0,5}?(?:change|revision|amendment|update|switch)\b",
)
_STATUS = _any(
    rf"^\W*(?:(?:and|so|but)\s+)?(?:was|were|is|are|has|have|had|did|does|do|can|may)\b.*\b{_STANDING}\b",
    r"\b(?:was|were|is|are|has\s+been|have\s+been)\s+(?:it|they|that|this)\s+(?:ever\s+)?"
    rf"{_STANDING}\b",
    rf"\bwhich\s+(?:one\s+)?(?:was|were)\s+{_STANDING}\s+and\s+which\b",
    r"\b(?:state|status|standing|fate)\s+of\b",
    r"\bwhat\s+(?:happened\s+to|became\s+of)\b",
    r"\b(?:still|no\s+longer|any\s*more)\b",
    r"\b(?:may|can|should)\s+i\s+(?:still\s+)?(?:use|rely|trust|follow)\b",
    r"\bwithin\s+its\s+review\b|\breview(?:ed)?\s+(?:in\s+time|period|date)\b|\baccepted\s+or\s+not\b|\bold\s+and\s+new\b",
    rf"\bwas\s+not\s+{_STANDING}\b",
)
_EXISTS = _any(
    r"^\W*(?:is|are|was|were)\s+there\b",
    r"^\W*(?:has|have|had)\s+(?:\w+\s+){1,4}?(?:got|ever|had)\b",
    r"^\W*(?:do|does|did)\s+.*\b(?:exist|ever)\b",
)
_PAST = _any(
    r"\b(?:used\s+to|formerly|in\s+the\s+past|historically|at\s+(?:the|that)\s+time|back\s+then)\b",
)
_CONTESTED = _any(
    r"\bcontra(?:dict\w*|ry|st\w*)\b",
    r"\b(?:disagree\w*|disput\w*|contested|controvers\w*|conflict(?:s|ing)?|both\s+sides|opposing|debated|objections?)\b",
)
_REPLACED_BY = _any(
    r"\b(?:what|who|which(?:\s+\w+){0,6}?)\s+(?:has\s+|have\s+)?(?:replaced|superseded|obsoleted|succeeded|supplanted)\b",
    r"\b(?:replaced|superseded|obsoleted|succeeded)\s+by\b",
    r"\b(?:merged|consolidated|folded|split|moved|integrated|turned|incorporated)\b",
    r"\bwhat\s+became\s+of\b",
    r"\binto\s+(?:what|which)\b",
)
_REPLACES = _any(
    r"\b(?:replaces?|supersedes?|obsoletes?|did\s+.{1,120}\b(?:replace|supersede|obsolete))\b",
    r"\bcompet(?:ed|ing)\b",
)
_CARRIED_OUT = _any(
    r"\bimplement(?:ed|s|ation)\b",
    r"\b(?:led\s+to|promoted|shipped|delivered|brought|rolled\s+out|put\s+into\s+practice|carried\s+out|executed)\b",
    r"\bin(?:to)?\s+(?:which|what)\s+(?:release|version)\b|\blists?\b.*\bamong\b",
)
_BUILDS_ON = _any(
    r"\b(?:build|builds|built|based|depends?)\s+(?:up)?on\b",
    r"\b(?:requires?|required|prerequisite|precondition|must\s+be\s+in\s+place|extends?|derived\s+from)\b",
)
# Kinds of pairs, either half first: the reason and the doing, the rule and its use, the plan and what came of it.
_HALVES = (
    (
        r"rationale|reasons?|motivation|decision|adr",
        r"implement\w*|execution|executed|rolled\s+out|follow-?ups?|runbook",
    ),
    (r"design", r"runbook|implement\w*|operat\w+"),
    (r"polic(?:y|ies)", r"procedures?"),
    (r"incidents?|outage", r"post-?mortems?|root\s+cause|remediation"),
    (r"post-?mortems?", r"remediation|fix(?:es)?|actions?"),
    (r"requirements?", r"tests?|verification"),
    (r"specifications?|spec", r"configur\w+|settings?"),
    (r"regulations?|law", r"controls?"),
    (r"proposals?|request", r"approv\w+|decision"),
    (r"plan(?:ned|s)?", r"results?|outcomes?|actual"),
    (r"risks?", r"mitigat\w+"),
    (r"originals?", r"amend\w+|revision"),
)
_JOINED = regex.compile(r"\band\b|\bboth\b|;", _FLAGS)
_DOCUMENTS = _any(
    rf"\b(?:which|what)\s+(?:\w+[\s\-]+){{0,5}}?{_THING}\b",
    rf"^\W*(?:\w+\s+){{0,2}}where\s+(?:is|are|was|were|do|does|did|can)\b.*\b{_WRITTEN}\b",
    rf"^\W*what\s+are\s+(?:the\s+)?(?:\w+\s+){{0,4}}?{_THING}\b",
    rf"\b(?:show|find|give|need|name|cite|list)\s+(?:me\s+)?(?:the\s+)?(?:\w+\s+){{0,4}}?{_THING}\b",
    rf"\binto\s+(?:what|which)\b|\b(?:under|in|by|to)\s+which\s+{_THING}\b",
    r"\b(?:what|which)\s+(?:\w+\s+){0,3}?(?:replaced|superseded|succeeded)\b|\bwhat\s+became\s+of\b",
)
_MANY = _any(
    r"\b(?:list|all|everything|every|each)\b",
    r"\bwhich\s+(?:(?:two|three|four|five|six|earlier|other|\d+)\s+)*(?:\w+\s+){0,2}?(?:documents|pages|versions|proposals|releases|policies|definitions|terms)\b",
    r"\b(?:both|two|three)\b",
    r"^\W*what\s+are\s+(?:the\s+)?(?:\w+\s+){0,4}?"
    r"(?:policies|standards|runbooks|procedures|documents|specifications|proposals|rules|guides|designs)\b",
)


def read_intent(question: str) -> Intent:
    """Read what a question wants of the graph.

    Args:
        question: As asked.

    Returns:
        The intent. Of several version wordings the one that looks furthest back wins: "the original text, replaced by
        the current one" wants the original. In a question about a pair the versions it names tell the halves apart,
        and neither is the one wanted.
    """
    pair, replacement = _pair(question)
    versions = _versions(question)
    version = _version(question, versions, paired=bool(pair))
    if version in {VersionWish.ORIGINAL, VersionWish.PREVIOUS}:
        pair, replacement = (), False
    return Intent(
        version=version,
        versions=versions,
        status=bool(_STATUS.search(question) or _EXISTS.search(question)),
        past=bool(_PAST.search(question)),
        contested=bool(_CONTESTED.search(question)),
        pair=pair,
        replacement=replacement,
        documents=bool(_DOCUMENTS.search(question)),
        many=bool(_MANY.search(question)),
        particular=answer_kind(question) is not AnswerKind.ANY,
    )


def _version(question: str, versions: Sequence[str], *, paired: bool) -> VersionWish:
    if _ORIGINAL.search(question):
        return VersionWish.ORIGINAL
    if _PREVIOUS.search(question):
        return VersionWish.PREVIOUS
    if paired:
        return VersionWish.NONE
    if versions:
        return VersionWish.EXPLICIT
    return VersionWish.CURRENT if _CURRENT.search(question) else VersionWish.NONE


def _versions(question: str) -> tuple[str, ...]:
    found = (match["named"] or match["bare"] for match in _VERSION.finditer(question))
    return tuple(dict.fromkeys(version.rstrip(".-").casefold() for version in found))


def _pair(question: str) -> tuple[tuple[RelationType, ...], bool]:
    replaced_by = bool(_REPLACED_BY.search(question))
    kinds: list[RelationType] = []
    if replaced_by or _REPLACES.search(question):
        kinds += [RelationType.SUPERSEDES, RelationType.DERIVED_FROM]
    if _CARRIED_OUT.search(question):
        kinds += [RelationType.IMPLEMENTS, RelationType.ELABORATES, RelationType.DERIVED_FROM]
    if _BUILDS_ON.search(question):
        kinds += [RelationType.DERIVED_FROM, RelationType.ELABORATES]
    if _JOINED.search(question) and any(_halves(question, *pair) for pair in _HALVES):
        kinds += [RelationType.IMPLEMENTS, RelationType.ELABORATES, RelationType.DERIVED_FROM, RelationType.CITES]
    return tuple(dict.fromkeys(kinds)), replaced_by


def _halves(question: str, one: str, other: str) -> bool:
    return all(regex.search(rf"\b(?:{half})\b", question, _FLAGS) for half in (one, other))
