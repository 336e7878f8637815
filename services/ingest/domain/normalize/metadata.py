"""Metadata of a document: names and values for people and rules, bounded in number and size."""

import re

from services.ingest.domain.normalize.model import Pairs

_MAX_PAIRS = 200
_MAX_VALUE_CHARS = 4_000
# Lists of documents, one name each.
_MAX_LIST_CHARS = 64_000
_MAX_NAME_CHARS = 100
_SEPARATORS = re.compile(r"[\s_.-]+")
# Name other documents, often several; their lists become one value, joined by commas.
_RELATIONAL = frozenset(
    {
        "supersedes", "supersededby", "replaces", "replacedby", "obsoletes", "obsoletedby", "updates", "updatedby",
        "requires", "requiredby", "implements", "implementedby", "seealso", "related", "relatedto", "relates", "derivedfrom",
        "basedon", "cites", "references", "elaborates", "contradicts", "contradictedby", "isversionof", "versionof",
        "amends", "amendedby", "withdraws", "deprecates", "retires", "objectsto", "corrects", "erratumto",
    }
)  # fmt: skip
_NONE = frozenset({"null", "~", "none", "n/a", "-", "[]"})
_SURROGATES = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Text without what storage refuses: NUL characters and lone surrogates become U+FFFD."""
    return _SURROGATES.sub("\ufffd", text)


def relational(name: str) -> bool:
    """Whether a name stands for a relation to other documents, whatever its case and separators."""
    return _SEPARATORS.sub("", name).lower() in _RELATIONAL


class Collector:
    """Collects pairs in order. A name that comes again adds to its value; empty values are left out."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def add(self, name: str, value: str) -> None:
        """Add one value."""
        name, value = " ".join(clean(name).split())[:_MAX_NAME_CHARS], clean(value).strip()
        if not name or not value or (relational(name) and value.lower() in _NONE):
            return
        most = _MAX_LIST_CHARS if relational(name) else _MAX_VALUE_CHARS
        if name in self._values:
            if len(self._values[name]) >= most:
                return
            self._values[name] = f"{self._values[name]}, {value}"[:most]
        elif len(self._values) < _MAX_PAIRS:
            self._values[name] = value[:most]

    def pairs(self) -> Pairs:
        """All pairs."""
        return tuple(self._values.items())


def value_of(metadata: Pairs, *names: str) -> str:
    """The value of the first of some names, whatever its case; empty if there is none."""
    lower = {name.lower(): value for name, value in reversed(metadata)}
    return next((lower[name] for name in names if name in lower), "")
