"""HTML tags into places: which stretch of text is a heading, a paragraph, a cell, an item, or not content at all.

The tree is built by lexbor, so that unclosed and misnested tags mean what they mean in a browser. It gets a skeleton of
the page: block tags, and for each stretch of text its number. So every piece of text keeps its place in the source, and
inline markup, which can blow a tree up, never reaches it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.ingest.domain.normalize.html_tokens import Tag, Text, Tokens, attributes, unescape
from services.ingest.domain.normalize.lines import line_number
from services.ingest.domain.normalize.links import Links
from services.ingest.domain.normalize.metadata import Collector
from services.ingest.domain.normalize.model import InvalidDocument

# Browsers stop at 512.
MAX_DEPTH = 400
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CONTAINERS = (
    "address", "article", "aside", "blockquote", "body", "center", "details", "dialog", "div", "fieldset", "figcaption",
    "figure", "form", "frameset", "header", "hgroup", "legend", "main", "search", "section", "summary",
)  # fmt: skip
_NEVER_SHOWN = ("template", "svg", "noscript", "select", "datalist", "object", "audio", "video", "canvas", "button")
_KEPT = (
    "p",
    "li",
    "ul",
    "ol",
    "dl",
    "dt",
    "dd",
    "pre",
    "table",
    "caption",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "td",
    "th",
    "hr",
)
# What each block tag is in the skeleton; all other tags are inline and left out.
_SKELETON = {
    **dict.fromkeys(_CONTAINERS, "div"),
    **dict.fromkeys(_NEVER_SHOWN, "section"),
    **{name: name for name in (*_KEPT, *_HEADINGS)},
    "nav": "nav", "footer": "nav", "menu": "ul", "dir": "ul", "listing": "pre",
}  # fmt: skip
# The parser closes these by itself, so that leaving their end tags out is no nesting.
_SELF_CLOSING = frozenset({"p", "li", "dt", "dd", "thead", "tbody", "tfoot", "caption", "tr", "td", "th", "hr"})
_LANDMARKS = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "menubar"})
_FIELD_LISTS = frozenset({"header", "docinfo", "field-list", "rfc2822"})

SHOWN, BOILERPLATE, NEVER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stretch of text stands in the page. Numbers identify elements; 0 means there is none."""

    hidden: int = SHOWN
    level: int = 0
    heading: int = 0
    pre: int = 0
    table: int = 0
    row: int = 0
    cell: int = 0
    # The open lists with their current items, outermost first.
    lists: tuple[tuple[int, int], ...] = ()
    # "dt" or "dd", and the field list that it belongs to.
    term: str = ""
    fields: int = 0


@dataclass(slots=True)
class Stretch:
    """Text between two block tags: pieces of source as (start, end), a line break as (start, end) of its tag."""

    pieces: list[tuple[int, int, bool]] = field(default_factory=list)
    visible: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page taken apart. `layout` holds the numbers of tables and lists that only arrange other content."""

    stretches: list[Stretch]
    places: list[tuple[int, Place]]
    layout: frozenset[int]
    title: str
    metadata: Collector
    broken_at: int
    links: tuple[str, ...]


def page_of(source: str) -> Page:
    """Take a page apart.

    Args:
        source: HTML.

    Raises:
        InvalidDocument: It is nested deeper than `MAX_DEPTH`.
    """
    skeleton = _Skeleton(source)
    walk = _Walk()
    tree = LexborHTMLParser("<!DOCTYPE html><body>" + skeleton.build())
    for body in tree.css("body"):
        walk.visit(body)
    walk.places.sort(key=lambda item: item[0])
    return Page(
        skeleton.stretches,
        walk.places,
        frozenset(walk.layout),
        skeleton.title,
        skeleton.metadata,
        skeleton.broken_at,
        skeleton.links.all(),
    )


class _Skeleton:
    """The page with block tags only, and numbers in place of its text."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = Tokens(source)
        self._parts: list[str] = []
        self._open: dict[str, int] = {}
        self._depth = 0
        self._current = Stretch()
        self._titled = False
        self.stretches: list[Stretch] = []
        self.title = ""
        self.metadata = Collector()
        self.links = Links()

    @property
    def broken_at(self) -> int:
        return self._tokens.broken_at

    def build(self) -> str:
        for token in self._tokens:
            if isinstance(token, Text):
                self._text(token)
            elif token.name in _SKELETON:
                self._flush()
                self._block(token, _SKELETON[token.name])
            elif token.name == "br":
                self._current.pieces.append((token.start, token.end, True))
            elif token.name == "meta":
                self._meta(token)
            elif token.name == "a":
                self._anchor(token)
        self._flush()
        return "".join(self._parts)

    def _text(self, token: Text) -> None:
        if not token.raw:
            self._current.pieces.append((token.start, token.end, False))
            self._current.visible = self._current.visible or not self._source[token.start : token.end].isspace()
        elif token.raw == "title" and not self._titled and not self._open.get("section"):
            self._titled = True
            self.title = unescape(self._source[token.start : min(token.end, token.start + 10_000)])

    def _flush(self) -> None:
        if self._current.visible:
            self._parts.append(f"{len(self.stretches)};")
            self.stretches.append(self._current)
        if self._current.pieces:
            self._current = Stretch()

    def _block(self, tag: Tag, name: str) -> None:
        if tag.closing:
            if name not in _SELF_CLOSING and self._open.get(name):
                self._open[name] -= 1
                self._depth -= 1
            self._parts.append(f"</{name}>")
            return
        if name not in _SELF_CLOSING:
            self._open[name] = self._open.get(name, 0) + 1
            self._depth += 1
            if self._depth > MAX_DEPTH:
                line = line_number(self._source, tag.start)
                raise InvalidDocument(
                    f"elements are nested deeper than {MAX_DEPTH} levels at line {line}; close them, or send plain text"
                )
        self._parts.append(f"<{name}{_marks(tag)}>")

    def _anchor(self, tag: Tag) -> None:
        """Note where a link leads; menus and footers lead everywhere."""
        if not (tag.closing or self.links.full or self._open.get("nav") or self._open.get("section")):
            self.links.add(attributes(tag).get("href", ""))

    def _meta(self, tag: Tag) -> None:
        found = attributes(tag)
        self.metadata.add(found.get("name") or found.get("property", ""), found.get("content", ""))


def _marks(tag: Tag) -> str:
    """Attributes of the skeleton: x for boilerplate and hidden elements, d for lists of document fields."""
    lower = tag.attributes.lower()
    if "role" not in lower and "hidden" not in lower and not (tag.name == "dl" and "class" in lower):
        return ""
    found = attributes(tag)
    if (
        found.get("role", "").lower() in _LANDMARKS
        or "hidden" in found
        or found.get("aria-hidden", "").lower() == "true"
    ):
        return " x"
    return " d" if tag.name == "dl" and _FIELD_LISTS & set(found.get("class", "").split()) else ""


class _Walk:
    """A walk over the skeleton's tree that notes the place of each stretch."""

    def __init__(self) -> None:
        self._elements = 0
        self.places: list[tuple[int, Place]] = []
        self.layout: set[int] = set()

    def visit(self, body: LexborNode) -> None:
        stack: list[tuple[Iterator[LexborNode], Place]] = [(body.iter(include_text=True), Place())]
        while stack:
            children, place = stack[-1]
            node = next(children, None)
            if node is None:
                stack.pop()
            elif node.is_text_node:
                numbers = (node.text_content or "").split(";")
                self.places += [(int(number), place) for number in numbers if number.strip()]
            else:
                stack.append((node.iter(include_text=True), self._enter(node, place)))

    def _enter(self, node: LexborNode, place: Place) -> Place:
        self._elements += 1
        name, marks = node.tag or "", node.attributes
        if "x" in marks or name == "nav":
            place = replace(place, hidden=max(place.hidden, BOILERPLATE))
        if name == "section":
            return replace(place, hidden=NEVER)
        if name in _HEADINGS or name in {"pre", "table"}:
            self._arranges(place)
        if name in _HEADINGS:
            return replace(place, heading=self._elements, level=_HEADINGS[name])
        if name == "pre":
            return replace(place, pre=self._elements)
        if name in {"table", "caption", "tr", "td", "th"}:
            return _in_table(name, self._elements, place)
        if name in {"ul", "ol", "dl", "li", "dt", "dd"}:
            return _in_list(name, self._elements, place, has_fields="d" in marks)
        return place

    def _arranges(self, place: Place) -> None:
        """Tables and lists around a heading, a table or preformatted text only arrange it."""
        if place.table:
            self.layout.add(place.table)
        self.layout.update(number for number, _ in place.lists)


def _in_table(name: str, number: int, place: Place) -> Place:
    if name == "table":
        return replace(place, table=number, row=0, cell=0)
    if name in {"tr", "caption"}:
        return replace(place, row=number, cell=0)
    return replace(place, cell=number)


def _in_list(name: str, number: int, place: Place, *, has_fields: bool) -> Place:
    if name in {"ul", "ol", "dl"}:
        return replace(place, lists=(*place.lists, (number, 0)), fields=number if has_fields else place.fields)
    lists = (*place.lists[:-1], (place.lists[-1][0], number)) if place.lists else ()
    return replace(place, lists=lists, term=name if name in {"dt", "dd"} else "")
