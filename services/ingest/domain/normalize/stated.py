"""What a text states about itself elsewhere than in front of it: a table below its title, and its closing lines."""

import re
from collections.abc import Sequence

from services.ingest.domain.normalize.metadata import Collector
from services.ingest.domain.normalize.model import Block, BlockKind, Pairs
from services.ingest.domain.normalize.preamble import HEADER_NAMES

_TABLE_CHARS = 16_384
_LEAST_NAMES = 2
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9 _-]{0,60}")
_DELIMITER = re.compile(r"[|\s:-]+")
_PIPE = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_MARKS = re.compile(r"(\*\*|__|[*`])(.+?)\1")
_CLOSING_CHARS = 2_000
_CLOSING_LINES = 10
_CLOSING = re.compile(r"[-*>\s]*(?:\*\*|__)?([A-Za-z][A-Za-z '/-]{1,60}?)(?:\*\*|__)?:(?:\*\*|__)?[ \t]+(\S.{0,200})")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}[ -]{_MONTH}[ -]\d{{4}}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}", re.IGNORECASE
)
_LOOK = (
    r"(?:review|test|audit|assessment|inspection|check|revision|evaluation|exercise|drill|survey|certification|update)"
)
# Names that the living state reads, by the labels that mean them. "Review date" is left out: it may be the past one.
_DUE = (
    (
        "next-review",
        re.compile(rf"next (?:[\w/'-]+ ){{0,3}}{_LOOK}(?: (?:date|due|scheduled|planned|on|by))?", re.IGNORECASE),
    ),
    (
        "review-due",
        re.compile(r"review(?: is)? due(?: date| on| by)?|(?:to be|due for) review(?:ed)?(?: by| on)?", re.IGNORECASE),
    ),
    ("review-by", re.compile(r"review (?:by|before|no later than)", re.IGNORECASE)),
    ("expires", re.compile(r"expir(?:es|y|ation)(?: on| date)?", re.IGNORECASE)),
    ("valid-until", re.compile(r"valid (?:until|to|through|till)", re.IGNORECASE)),
)


def with_stated(metadata: Pairs, *more: Pairs) -> Pairs:
    """Add what a document states elsewhere; what stands in front of it goes first."""
    found = dict(metadata)
    names = {_plain(name) for name in found}
    for name, value in (pair for pairs in more for pair in pairs):
        if _plain(name) not in names:
            names.add(_plain(name))
            found[name] = value
    return tuple(found.items())


def metadata_table(text: str, blocks: Sequence[Block]) -> Pairs:
    """Read a table of names and values that stands before everything else, headings and front matter aside.

    Args:
        text: The Markdown text.
        blocks: Its blocks, in order.

    Returns:
        Its rows, without inline markup; nothing where it has more than two columns, or fewer than two of the usual
        names of headers: then it is content.
    """
    shown = (block for block in blocks if block.kind not in {BlockKind.HEADING, BlockKind.RECORD})
    first = next(shown, None)
    if first is None or first.kind is not BlockKind.TABLE or first.text_end - first.text_start > _TABLE_CHARS:
        return ()
    rows = [_cells(line) for line in text[first.text_start : first.text_end].splitlines()]
    if any(len(row) != 2 for row in rows):
        return ()
    fields = [(_shown(name), _shown(value)) for name, value in rows if not _DELIMITER.fullmatch(name + value)]
    if sum(_plain(name) in HEADER_NAMES for name, _ in fields) < _LEAST_NAMES:
        return ()
    collector = Collector()
    for name, value in fields[_is_head(fields[0][0]) :]:
        if _NAME.fullmatch(name):
            collector.add(name, value)
    return collector.pairs()


def closing_fields(text: str) -> Pairs:
    """Read when a document falls due for review or expires, from the "Label: value" lines that end it.

    Args:
        text: The text of a document in prose.

    Returns:
        The date by the name that a header has for it; labels that say anything else are text.
    """
    lines = reversed(text[-_CLOSING_CHARS:].rstrip().splitlines()[-_CLOSING_LINES:])
    found: dict[str, str] = {}
    for line in lines:
        field = _CLOSING.fullmatch(line.rstrip())
        if field is None:
            break
        label, value = field[1].strip(), field[2].strip(" \t.*_")
        date = _DATE.fullmatch(value)
        name = next((name for name, meant in _DUE if meant.fullmatch(label)), "")
        if date and name:
            found.setdefault(name, date[0])
    return tuple(found.items())


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    cells = [cell.strip() for cell in _PIPE.split(inner)]
    return cells[:-1] if cells and not cells[-1] and inner.endswith("|") else cells


def _is_head(name: str) -> bool:
    return _plain(name) not in HEADER_NAMES


def _shown(cell: str) -> str:
    """A cell without links and emphasis, as it is read."""
    return " ".join(_MARKS.sub(r"\2", _LINK.sub(r"\1", cell)).replace("\\|", "|").split())


def _plain(name: str) -> str:
    return "-".join(re.split(r"[\s_-]+", name.strip().lower()))
