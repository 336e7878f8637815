"""What stands before a document: front matter (YAML, TOML) and blocks of RFC-822 style headers."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from services.ingest.domain.normalize.lines import LINE_END
from services.ingest.domain.normalize.metadata import Collector
from services.ingest.domain.normalize.model import Block, BlockKind, InvalidDocument, Pairs
from services.ingest.domain.normalize.records import RECORD_CHARS
from services.ingest.domain.normalize.yaml_records import yaml_mapping

_MOST_CHARS = 65_536
_OPENING = re.compile(rf"(---|\+\+\+)[ \t]*{LINE_END}")
_CLOSING = {
    "---": re.compile(rf"(?:---|\.\.\.)[ \t]*(?:{LINE_END}|\Z)"),
    "+++": re.compile(rf"\+\+\+[ \t]*(?:{LINE_END}|\Z)"),
}
_LINE = re.compile(rf"([^\r\n]*)({LINE_END}|\Z)")
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,60})[ \t]*:(?:[ \t]+(.*))?\Z")
# A block of "Name: value" lines is a header where one of these is among the names; else it may be a dialogue.
HEADER_NAMES = frozenset(
    {
        "title", "author", "authors", "date", "status", "version", "created", "updated", "subject", "from", "to", "pep",
        "supersedes", "superseded-by", "replaces", "obsoletes", "obsoleted-by", "updates", "requires", "category",
        "last-modified", "post-history", "published", "effective", "effective-date", "valid-from", "review", "owner",
        "document", "doc-id", "id", "type", "message-id", "approved", "expires", "series", "replaced-by", "updated-by",
        "implements", "see-also", "derived-from", "contradicts", "amends", "amended-by", "is-version-of", "effective-from",
        "effective-at", "in-force-since", "withdrawn", "withdrawn-on", "deprecated", "retired", "review-by", "review-date",
        "next-review", "valid-until", "expiry", "expiry-date", "family", "class",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Preamble:
    """Metadata before the body, as records and as pairs. `body` is where the document goes on."""

    blocks: tuple[Block, ...]
    body: int
    metadata: Pairs
    notices: tuple[str, ...] = ()


def front_matter(text: str) -> Preamble | None:
    """YAML between lines of three dashes, or TOML between lines of three plus signs, at the very start.

    Front matter that doesn't parse, as templates leave it, is read line by line, with a notice.
    """
    opening = _OPENING.match(text)
    if not opening:
        return None
    start = end = opening.end()
    for line in _LINE.finditer(text[:_MOST_CHARS], start):
        closing = _CLOSING[opening[1]].match(text, line.start())
        if closing:
            return _matter(text, start, end, closing.end())
        end = line.end()
    return None


def _matter(text: str, start: int, end: int, body: int) -> Preamble | None:
    inner = text[start:end]
    whole = (Block(BlockKind.RECORD, start, start + len(inner.rstrip())),) if inner.strip() else ()
    if not whole:
        return Preamble((), body, ())
    try:
        if text.startswith("+++"):
            return Preamble(whole, body, _toml(inner))
        mapping = yaml_mapping(inner)
    except (InvalidDocument, tomllib.TOMLDecodeError, RecursionError) as error:
        pairs = _by_line(inner)
        notice = f"the front matter was read line by line: {str(error).split(';')[0]}"
        return Preamble(whole, body, pairs, (notice,)) if pairs else None
    if mapping is None:
        return None
    records = tuple(
        Block(item.kind, start + item.text_start, start + item.text_end, (), item.context) for item in mapping[0]
    )
    return Preamble(records if len(inner) > RECORD_CHARS else whole, body, mapping[1])


def _toml(text: str) -> Pairs:
    collector = Collector()
    for name, value in _flatten(tomllib.loads(text), ""):
        collector.add(name, value)
    return collector.pairs()


def _flatten(value: object, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from _flatten(member, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for member in value:
            yield from _flatten(member, name)
    else:
        yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _by_line(text: str) -> Pairs:
    collector = Collector()
    for line in _LINE.finditer(text):
        field = _FIELD.match(line[1])
        if field and field[2]:
            collector.add(field[1], field[2].strip().strip("\"'"))
    return collector.pairs()


def header_block(text: str, *, any_names: bool) -> Preamble | None:
    """Lines of "Name: value" at the start, up to a blank line; indented lines continue a value.

    Args:
        text: The document.
        any_names: Take any names; else one has to be among the usual ones, such as Title or Status.

    Returns:
        The block, at least two fields long, or None.
    """
    blank = re.compile(rf"(?:[ \t]*{LINE_END})*").match(text)
    start = end = blank.end() if blank else 0
    fields: list[list[str]] = []
    for line in takewhile(lambda line: line[1].strip(), _LINE.finditer(text[: start + _MOST_CHARS], start)):
        if line[1][0] in " \t" and fields:
            fields[-1][1] += " " + line[1].strip()
        elif field := _FIELD.match(line[1]):
            fields.append([field[1], field[2] or ""])
        else:
            return None
        end = line.end(1)
    names = {name.lower() for name, _ in fields}
    if len(fields) < 2 or not (any_names or names & HEADER_NAMES):
        return None
    collector = Collector()
    for name, value in fields:
        collector.add(name, value)
    return Preamble((Block(BlockKind.RECORD, start, end),), end, collector.pairs())
