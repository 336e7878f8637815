"""HTML source into tags and stretches of text with their places, as the HTML standard's tokeniser sees them."""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

# An attribute's value may hold a ">" when it is quoted. Possessive, so that a broken tag costs one pass.
_TAG = re.compile(
    r"<(/?)([A-Za-z][^\s/>]*+)"
    r"((?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'>][^\s>]*+|(?=>)))?+)*+)>"
)
_ATTRIBUTE = re.compile(r"([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>][^\s>]*+)))?+")
_COMMENT_END = re.compile(r"--!?>")
# Their content is no markup; it ends at their own end tag only.
RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
_SOURCE_ATTRIBUTES = frozenset(
    {"name", "property", "http-equiv", "content", "charset", "role", "hidden", "aria-hidden", "class", "href"}
)
_MAX_ENTITY_CHARS = 32
_ENTITY = re.compile(r"&(?:\#[0-9]+|\#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]{1,31});?")


class Tag(NamedTuple):
    """A start or end tag and where it stands."""

    name: str
    closing: bool
    start: int
    end: int
    attributes: str


class Text(NamedTuple):
    """A stretch of text between tags; `raw` names the element whose content it is, if that is no markup."""

    start: int
    end: int
    raw: str = ""


class Tokens:
    """The tokens of an HTML source. `broken_at` is where it ends inside a tag or comment, else -1."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.broken_at = -1
        # Names of elements that don't end any more, so that the end is looked for once.
        self._unending: set[str] = set()

    def __iter__(self) -> Iterator[Tag | Text]:
        source, position, text = self._source, 0, 0
        while True:
            start = source.find("<", position)
            if start < 0:
                break
            end, tag = self._markup(start)
            if end == start:
                position = start + 1
                continue
            if start > text:
                yield Text(text, start)
            position = text = end
            if tag:
                yield tag
                if tag.name in RAW and not tag.closing:
                    position = text = self._raw_end(tag)
                    yield Text(tag.end, position, tag.name)
        if len(source) > text:
            yield Text(text, len(source))

    def _markup(self, start: int) -> tuple[int, Tag | None]:
        """End of the markup at a "<" and its tag if it is one; the start itself if the "<" is text."""
        source = self._source
        following = source[start + 1 : start + 2]
        if following.isascii() and (following.isalpha() or following == "/"):
            if following == "/" and not source[start + 2 : start + 3].isalpha():
                return self._until(">", start + 2) if source[start + 2 : start + 3] else start, None
            match = _TAG.match(source, start)
            if not match:
                return self._until_end(start), None
            return match.end(), Tag(match[2].lower(), bool(match[1]), start, match.end(), match[3])
        if source.startswith("<!--", start):
            return self._comment_end(start), None
        if following in {"!", "?"}:
            return self._until(">", start + 2), None
        return start, None

    def _comment_end(self, start: int) -> int:
        if self._source.startswith(("<!-->", "<!--->"), start):
            return self._source.index(">", start) + 1
        end = _COMMENT_END.search(self._source, start + 4)
        return end.end() if end else self._until_end(start)

    def _until(self, mark: str, start: int) -> int:
        end = self._source.find(mark, start)
        return end + 1 if end >= 0 else self._until_end(start)

    def _until_end(self, start: int) -> int:
        self.broken_at = start
        return len(self._source)

    def _raw_end(self, tag: Tag) -> int:
        """End of an element without markup. One that never ends is empty, a script or style apart."""
        if tag.name not in self._unending:
            end = re.compile(rf"</{tag.name}(?=[\s/>])", re.IGNORECASE).search(self._source, tag.end)
            if end:
                return end.start()
            self._unending.add(tag.name)
        return self._until_end(tag.start) if tag.name in {"script", "style"} else tag.end


def attributes(tag: Tag) -> dict[str, str]:
    """Attributes of a tag that this package looks at, the first of each name."""
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(tag.attributes):
        name = match[1].lower()
        if name in _SOURCE_ATTRIBUTES and name not in found:
            found[name] = unescape((match[2] or match[3] or match[4] or "")[:10_000])
    return found


def unescape(text: str) -> str:
    """Text with its character references replaced, and white space collapsed."""
    parts, position = [], 0
    for match in _ENTITY.finditer(text):
        parts += [text[position : match.start()], character(match.group())]
        position = match.end()
    return " ".join("".join([*parts, text[position:]]).split())


def entities(source: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Character references between two places: start, end and what each stands for."""
    for match in _ENTITY.finditer(source, start, end):
        yield match.start(), match.end(), character(match.group())


def character(reference: str) -> str:
    """What a character reference stands for; a no-break space counts as a space."""
    if len(reference) > _MAX_ENTITY_CHARS:
        return "\ufffd"
    return html.unescape(reference).replace("\u00a0", " ")
