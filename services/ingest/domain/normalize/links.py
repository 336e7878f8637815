"""Targets of the links in a document, as written: what one document says of others by pointing at them."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from services.ingest.domain.normalize.metadata import clean
from services.ingest.domain.normalize.model import Block, BlockKind

MOST_LINKS = 500
_TARGET_CHARS = 2_000
# Point at no document.
_NO_DOCUMENT = re.compile(r"(?:mailto|tel|sms|javascript|data|about|cid|mid):", re.IGNORECASE)
_URL = r"https?://[^\s<>\"`\u2018-\u201f\ufffd]{1,2000}+"
_PLAIN = re.compile(_URL, re.IGNORECASE)
_TRAILING = ".,;:!?'*_~|\\"
_CLOSERS = {")": "(", "]": "[", "}": "{"}
_FENCE = re.compile(r"^[ \t>*+\-\d.)]{0,40}(`{3,}|~{3,})", re.MULTILINE)
_TICKS = re.compile(r"`+")
_DESTINATION = (
    r"(?:<(?P<{0}pointed>[^<>\r\n]{{0,2000}}+)>|(?P<{0}bare>(?:\\.|[^\s()\\<]|\((?:\\.|[^\s()\\])*+\)){{1,2000}}+))"
)
_MARKDOWN = re.compile(
    r"\\."
    rf"|\]\([ \t\r\n]*+{_DESTINATION.format('inline_')}(?=[ \t\r\n]*+[)\"'(])"
    rf"|^[ ]{{0,3}}+\[(?!\^)(?P<label>[^\[\]\r\n]{{1,999}}+)\]:[ \t]*+(?:\r?\n[ \t]*+)?{_DESTINATION.format('defined_')}"
    r"|(?P<open>!?\[)"
    r"|(?P<close>\])"
    r"|<(?P<auto>[A-Za-z][A-Za-z0-9+.-]{1,31}+:[^\s<>]{0,2000}+)>"
    r"|<a[ \t\r\n](?:[^<>]{0,2000}?[ \t\r\n])??href[ \t]*+=[ \t]*+[\"']?(?P<anchor>[^\"'<>\s]{1,2000}+)"
    rf"|(?P<url>{_URL})",
    re.MULTILINE | re.IGNORECASE,
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_RESTRUCTURED = re.compile(
    r"``[^`\r\n]{0,2000}+(?:``)?"
    r"|:(?P<role>[A-Za-z][\w.+-]{0,40}+(?::[A-Za-z][\w.+-]{0,40}+){0,3}+):`(?P<text>[^`]{1,2000}+)`"
    r"|`(?P<named>[^`<>]{0,1000}+)<(?P<embedded>[^`<>]{1,2000}+)>`__?"
    r"|^[ \t]*+(?:\.\.[ \t]+(?:_`[^`\r\n]{1,500}+`|_(?:\\.|[^:\\\r\n]){0,500}+|__):|__)[ \t]+(?P<defined>\S{1,2000}+)[ \t]*$"
    rf"|(?P<url>{_URL})",
    re.MULTILINE,
)
_ROLE_TARGET = re.compile(r"[^<>]*<([^<>]+)>\s*\Z")
# Roles whose text is a number in a series of documents, and those whose text is a path.
_SERIES = frozenset({"pep", "rfc", "cve", "cwe"})
_PATHS = frozenset({"doc", "download"})


class Links:
    """Collects targets in order, each once, at most `MOST_LINKS`."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    @property
    def full(self) -> bool:
        """Whether no more are taken."""
        return len(self._found) >= MOST_LINKS

    def add(self, target: str) -> None:
        """Add a target without its fragment, unless it points at no document."""
        name = " ".join(clean(target).partition("#")[0].split())
        usable = name and len(name) <= _TARGET_CHARS and name.isprintable() and not _NO_DOCUMENT.match(name)
        if usable and not self.full:
            self._found[name] = None

    def all(self) -> tuple[str, ...]:
        """What was collected."""
        return tuple(self._found)


def links_of(targets: Iterable[str]) -> tuple[str, ...]:
    """Bring targets to the form in which a document's links are kept.

    Args:
        targets: As written, in order.

    Returns:
        Those that may point at documents: without fragments, each once, at most `MOST_LINKS`.
    """
    links = Links()
    for target in targets:
        links.add(target)
        if links.full:
            break
    return links.all()


def plain_links(text: str) -> Iterator[str]:
    """URLs in plain text, without the punctuation that ends a sentence or a bracket around them."""
    for match in _PLAIN.finditer(text):
        yield _trimmed(match.group())


def markdown_links(text: str, blocks: Iterable[Block]) -> Iterator[str]:
    """Targets of inline links, link definitions, autolinks, plain URLs and HTML anchors; images are none.

    Args:
        text: The document.
        blocks: Its blocks; code and front matter hold no links.
    """
    for block in blocks:
        if block.kind not in (BlockKind.CODE, BlockKind.RECORD):
            piece = text[block.text_start : block.text_end]
            if "](" in piece or "://" in piece or "]:" in piece or "<" in piece:
                yield from _markdown(_without_code(_without_fences(piece)))


def _markdown(text: str) -> Iterator[str]:
    images: list[bool] = []
    for match in _MARKDOWN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "open":
            images.append(match.group().startswith("!"))
        elif kind == "close":
            del images[-1:]
        elif kind.startswith("inline_"):
            # Without an opening bracket it is text.
            if images and not images.pop():
                yield _ESCAPED.sub(r"\1", match[kind])
        elif kind == "url":
            yield _trimmed(match.group())
        elif kind:
            yield _ESCAPED.sub(r"\1", match[kind])


def _without_fences(text: str) -> str:
    """A list or quote without the fenced code in it."""
    if "```" not in text and "~~~" not in text:
        return text
    kept, position, fence = [], 0, ""
    for match in _FENCE.finditer(text):
        if not fence:
            kept.append(text[position : match.start()])
            fence = match[1]
        elif match[1].startswith(fence):
            position, fence = match.end(), ""
    return "\n".join([*kept, "" if fence else text[position:]])


def _without_code(text: str) -> str:
    """Markdown without its code spans: each run of backticks up to the next one of the same length."""
    runs: dict[int, list[int]] = {}
    marks = [match.span() for match in _TICKS.finditer(text)]
    for start, end in marks:
        runs.setdefault(end - start, []).append(start)
    kept, position = [], 0
    for start, end in marks:
        if start < position:
            continue
        same = runs[end - start]
        at = bisect_right(same, start)
        if at < len(same):
            kept.append(text[position:start])
            position = same[at] + (end - start)
    return " ".join([*kept, text[position:]])


def restructured_links(text: str, blocks: Iterable[Block]) -> Iterator[str]:
    """Targets of references, target definitions, plain URLs, and of roles that name documents, such as `:pep:`.

    A role of a series gives its name and number: "PEP 440" for `:pep:` with 440.

    Args:
        text: The document.
        blocks: Its blocks; code and header fields hold no links.
    """
    for block in blocks:
        if block.kind in (BlockKind.CODE, BlockKind.RECORD):
            continue
        for match in _RESTRUCTURED.finditer(text, block.text_start, block.text_end):
            if match["role"]:
                yield _role(match["role"].lower(), match["text"])
            elif match["url"]:
                yield _trimmed(match["url"])
            else:
                target = (match["embedded"] or match["defined"] or "").strip()
                # A trailing underscore names another target of the same document.
                yield "" if target.endswith("_") else target


def _role(role: str, text: str) -> str:
    titled = _ROLE_TARGET.match(text)
    target = (titled[1] if titled else text).partition("#")[0].strip().lstrip("!~")
    name = role.rsplit(":", 1)[-1]
    if name in _SERIES:
        return f"{name.upper()} {target}" if target else ""
    return target if name in _PATHS else ""


def _trimmed(url: str) -> str:
    """A URL without what belongs to the sentence around it."""
    end = len(url)
    counts = {mark: url.count(mark) for pair in _CLOSERS.items() for mark in pair}
    while True:
        last = url[end - 1]
        opener = _CLOSERS.get(last)
        if last not in _TRAILING and not (opener and counts[last] > counts[opener]):
            break
        if opener:
            counts[last] -= 1
        end -= 1
    return url[:end]
