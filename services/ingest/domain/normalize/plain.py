"""Plain text: paragraphs between blank lines."""

import re
from collections.abc import Iterator

from services.ingest.domain.normalize.lines import LINE_END
from services.ingest.domain.normalize.links import links_of, plain_links
from services.ingest.domain.normalize.model import Block, BlockKind, MappedText, Reading
from services.ingest.domain.normalize.preamble import Preamble, header_block
from services.ingest.domain.normalize.stated import closing_fields, with_stated

_GAP = re.compile(rf"{LINE_END}[ \t\f\v]*{LINE_END}\s*")
_FIRST_WORD = re.compile(r"\S")
# In a long text small paragraphs are joined up to this size, so that the number of blocks stays bounded.
_LONG_TEXT_CHARS = 4_000_000
_JOINED_CHARS = 512


def read_plain(content: MappedText) -> Reading:
    """Read plain text.

    Args:
        content: The decoded text.

    Returns:
        Its paragraphs; a header block at the start is a record of its own and becomes metadata, and so do the dates
        that its closing lines state.
    """
    text = content.text
    header = header_block(text, any_names=False) or Preamble((), 0, ())
    blocks = (*header.blocks, *paragraphs(text, header.body))
    metadata = with_stated(header.metadata, closing_fields(text, blocks))
    return Reading(content, blocks, metadata=metadata, links=links_of(plain_links(text[header.body :])))


def paragraphs(text: str, start: int = 0) -> tuple[Block, ...]:
    """Paragraphs of a text from an offset on."""
    least = _JOINED_CHARS if len(text) > _LONG_TEXT_CHARS else 0
    return tuple(Block(BlockKind.PARAGRAPH, first, end) for first, end in _spans(text, start, least))


def _spans(text: str, start: int, least: int) -> Iterator[tuple[int, int]]:
    word = _FIRST_WORD.search(text, start)
    if not word:
        return
    # The first line keeps its indentation, as all others do.
    first = max(start, text.rfind("\n", start, word.start()) + 1, text.rfind("\r", start, word.start()) + 1)
    for gap in _GAP.finditer(text, word.start()):
        if gap.end() == len(text):
            break
        if gap.start() - first >= least:
            yield first, gap.start()
            first = max(text.rfind("\n", *gap.span()), text.rfind("\r", *gap.span())) + 1
    yield first, len(text.rstrip())
