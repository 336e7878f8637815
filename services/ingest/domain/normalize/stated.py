"""What a text states about itself elsewhere than in front of it: a table below its title, and its closing lines."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date

from services.ingest.domain import effect
from services.ingest.domain.normalize.lines import LINE_END
from services.ingest.domain.normalize.markdown_rules import UNESCAPED_PIPE
from services.ingest.domain.normalize.metadata import Collector
from services.ingest.domain.normalize.model import Block, BlockKind, Pairs
from services.ingest.domain.normalize.preamble import HEADER_NAMES

_LINE_END = re.compile(LINE_END)
# Names that say the same: what stands in front of a document under one of them is not told again under another.
_SAME = (
    {"status", "document-status", "doc-status", "publication-status", "lifecycle-status", "lifecycle", "state"},
    {
        "next-review", "next-review-on", "next-review-date", "review-by", "review-due", "review-due-on", "review-in",
        "review-every", "review-interval",
    },
    {
        "expires", "expires-on", "expiry", "expiry-date", "expiration-date", "valid-until", "valid-to", "valid-through",
    },
)  # fmt: skip

_TABLE_CHARS = 16_384
_COMMENT_CHARS = 4_096
_LEAST_NAMES = 2
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Above a table that is metadata there is a title at most, and a heading that says so.
_ABOUT = re.compile(
    r"(?:\d[\d.]*\s+)?(?:(?:\w+\s+)?meta-?data|administrivia|about(?:\s+this\s+(?:\w+\s+)?\w+)?|"
    r"(?:document|page|policy|record|proposal|report)\s+"
    r"(?:control|details|information|properties|status|header|summary))",
    re.IGNORECASE,
)
_VALUES = frozenset(
    {"", "value", "values", "detail", "details", "information", "info", "content", "contents", "data", "entry"}
)
# Second columns that say something of the names, not of the document.
_SAID_OF_NAMES = frozenset(
    {"description", "descriptions", "meaning", "definition", "purpose", "explanation", "type", "format", "default",
     "example", "required", "comment", "comments", "notes"}
)  # fmt: skip
_NAME = re.compile(r"[^\W\d_][\w ./&'()-]{0,60}")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_MARKS = re.compile(r"(\*\*|[*`]|(?<!\w)__?(?!_))(.+?)\1")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)

_CLOSING_LINES = 10
_LINE_CHARS = 300
# One line more than they may be, so that none that counts is cut.
_CLOSING_CHARS = (_CLOSING_LINES + 1) * (_LINE_CHARS + len("\r\n"))
_MARKED = r"[ ]{0,3}(?:[-*+][ \t]+|:)?[*_]{0,3}"
_CLOSING = re.compile(rf"{_MARKED}([^\W\d_][^:|]{{0,60}}?)[*_]{{0,3}}:[*_]{{0,3}}\s+(\S.{{0,200}})")
_LOOK = (
    r"(?:review|test|audit|assessment|inspection|check|revision|evaluation|exercise|drill|survey|certification|update)"
)
_WHEN = r"(?: (?:date|due|scheduled|planned|on|by))?"
_NEXT_REVIEW, _EXPIRES = "next-review", "expires"
# The names that they get, by the labels that mean them; the first goes first. "Review date" is left out: it may be the
# past one.
_DUE = (
    (
        _NEXT_REVIEW,
        re.compile(
            rf"next (?:scheduled |planned )?review{_WHEN}|review(?: is)? due(?: date| on| by)?|"
            r"(?:to be|due for) review(?:ed)?(?: by| on)?|review (?:by|before|no later than)",
            re.IGNORECASE,
        ),
    ),
    (_NEXT_REVIEW, re.compile(rf"next (?:[\w/'-]+ ){{0,3}}{_LOOK}{_WHEN}", re.IGNORECASE)),
    (_EXPIRES, re.compile(r"expir(?:es|y|ation)(?: on| date)?|valid (?:until|to|through|till)", re.IGNORECASE)),
)


def with_stated(metadata: Pairs, *more: Pairs) -> Pairs:
    """Add what a document states elsewhere; what stands in front of it goes first, and earlier places before later."""
    found = dict(metadata)
    for pairs in more:
        told = {_meaning(name) for name in found}
        found |= {name: value for name, value in pairs if _meaning(name) not in told}
    return tuple(found.items())


def metadata_table(text: str, blocks: Iterable[Block], rows: Callable[[str, Block], Iterable[Sequence[str]]]) -> Pairs:
    """Read a table of names and values that stands before everything else, front matter and comments aside.

    Args:
        text: The text of the document.
        blocks: Its blocks, in order.
        rows: Reads the cells of a table, as people see them, row by row.

    Returns:
        Its rows. Nothing where the table is content: it has another number of columns, too few of the usual names of
        headers, a head that announces something else than values, or a section of its own.
    """
    headings: list[str] = []
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            headings.append(block.heading_path[-1])
        elif block.kind is BlockKind.TABLE and block.text_end - block.text_start <= _TABLE_CHARS:
            return _table_pairs(list(rows(text, block)), headings)
        elif block.kind is not BlockKind.RECORD and not _is_comment(text, block):
            break
    return ()


def markdown_rows(text: str, block: Block) -> list[list[str]]:
    """Cells of a Markdown table, without inline markup and without the row of dashes."""
    head, _, *rows = _LINE_END.split(text[block.text_start : block.text_end])
    return [[_shown(cell) for cell in _cells(line)] for line in (head, *rows)]


def closing_fields(text: str, blocks: Sequence[Block]) -> Pairs:
    """Read when a document falls due for review or expires, from the few "Label: value" lines that end it.

    Args:
        text: The text of a document in prose.
        blocks: Its blocks, in order; code and comments say nothing.

    Returns:
        The days as YYYY-MM-DD, by the names that a header has for them; labels that say anything else are text. Of
        several reviews the document's own counts, else the earliest. A label that comes with another day elsewhere
        tells of something else than the document, and says nothing.
    """
    end = len(text.rstrip())
    if not blocks or blocks[-1].kind is BlockKind.CODE or blocks[-1].text_end < end:
        return ()
    fields = _closing_lines(text[max(0, end - _CLOSING_CHARS) : end])
    found: dict[str, date] = {}
    for name, meant in _DUE:
        days = [
            day
            for label, day in ((label, _day(value)) for label, value in fields)
            if day and meant.fullmatch(" ".join(label.split())) and _days_of(text, label) == {day}
        ]
        if days:
            found.setdefault(name, min(days))
    return tuple((name, day.isoformat()) for name, day in found.items())


def _meaning(name: str) -> str:
    plain = _plain(name)
    return next((min(names) for names in _SAME if plain in names), plain)


def _plain(name: str) -> str:
    return "-".join(re.split(r"[\s_-]+", name.strip().lower()))


def _is_comment(text: str, block: Block) -> bool:
    if block.text_end - block.text_start > _COMMENT_CHARS:
        return False
    return not _COMMENT.sub("", text[block.text_start : block.text_end]).strip()


def _table_pairs(rows: Sequence[Sequence[str]], headings: Sequence[str]) -> Pairs:
    about = [bool(_ABOUT.fullmatch(name)) for name in headings]
    if not all(about[1:]) or not rows or len(rows[0]) != 2:
        return ()
    (head, announced), *fields = ((_name(row[0]), row[1]) for row in rows if len(row) == 2)
    if announced.lower() not in _VALUES:
        # The first row is a field itself, since Markdown has no table without a head.
        if _plain(head) not in HEADER_NAMES or announced.lower() in _SAID_OF_NAMES:
            return ()
        fields.insert(0, (head, announced))
    usual = sum(_plain(name) in HEADER_NAMES for name, _ in fields)
    return _collected(fields) if usual >= (1 if any(about) else _LEAST_NAMES) else ()


def _collected(fields: Iterable[tuple[str, str]]) -> Pairs:
    collector = Collector()
    for name, value in fields:
        if _NAME.fullmatch(name):
            collector.add(name, value)
    return collector.pairs()


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    cells = [cell.strip() for cell in UNESCAPED_PIPE.split(inner)]
    return cells[:-1] if len(cells) > 1 and not cells[-1] else cells


def _name(cell: str) -> str:
    return cell.rstrip(": ").replace("(s)", "s")


def _shown(cell: str) -> str:
    """A cell without links and emphasis, as it is read."""
    plain = _BREAK.sub(" ", _LINK.sub(r"\1", cell))
    return " ".join(_MARKS.sub(r"\2", _MARKS.sub(r"\2", plain)).replace("\\|", "|").split())


def _closing_lines(tail: str) -> list[tuple[str, str]]:
    """Labels and values of the lines that end a text; none where they are too many to be its close."""
    fields: list[tuple[str, str]] = []
    for line in reversed(_LINE_END.split(tail)):
        field = _CLOSING.fullmatch(line.rstrip())
        if field is None or len(line) > _LINE_CHARS:
            return fields
        fields.append((field[1], field[2]))
        if len(fields) > _CLOSING_LINES:
            return []
    return fields


def _days_of(text: str, label: str) -> set[date]:
    """All days that lines with a label name."""
    marked = rf"(?:\A|[\r\n])[ \t*_>+:-]*{re.escape(label)}[*_]*:[*_]*[^\S\r\n]+([^\r\n]{{1,200}})"
    lines = re.finditer(marked, text, re.IGNORECASE)
    return {day for day in (_day(line[1]) for line in lines) if day}


def _day(value: str) -> date | None:
    return effect.day(_BREAK.sub("", value).strip(" \t\r\n\xa0.*_\\"))
