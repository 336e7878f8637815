"""Whatever a document holds: no chunk too long, nothing lost, nothing whole cut, spans exact, progress guaranteed."""

from __future__ import annotations

import itertools
import random

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from services.chunker.domain.chunking import chunk
from services.chunker.domain.document import KEPT_WHOLE, Block, BlockKind, Chunk, NormalizedText, Run
from services.chunker.domain.graphemes import boundary_at_or_after, boundary_at_or_before

LETTERS = "abé語\u0301 \n\t\r🇫🇷\u200d👩…\u3000ก\u0e33가\u1100\u1161"
CHARSETS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "windows-1252", "shift_jis", "gb18030")
texts = st.text(st.sampled_from(LETTERS + "a" * 12 + " " * 4), max_size=160)
sizes = st.integers(1, 30).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size // 2)))


def identity(text: str, blocks: tuple[Block, ...] = ()) -> NormalizedText:
    size_bytes = len(text.encode())
    runs = (Run(0, len(text), 0, len(text), 0, size_bytes, verbatim=True),) if text else ()
    return NormalizedText(text, runs, blocks)


@st.composite
def blocked(draw: st.DrawFn) -> NormalizedText:
    """A text with headings, blocks and, sometimes, a block inside a block."""
    text = draw(texts)
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)))
    blocks: list[Block] = []
    path: tuple[str, ...] = ()
    for start, end in itertools.pairwise(places):
        kind = draw(st.sampled_from(BlockKind))
        if kind is BlockKind.HEADING:
            path = (*path[: draw(st.integers(0, 2))], f"h{start}")
        blocks.append(Block(kind, start, end, path, draw(st.sampled_from(("", f"c{start}")))))
        if kind in KEPT_WHOLE and end - start > 2 and draw(st.booleans()):
            blocks.append(Block(BlockKind.CODE, start + 1, end - 1, path))
    return identity(text, tuple(blocks))


def covered(chunks: tuple[Chunk, ...]) -> set[int]:
    return {at for each in chunks for at in range(each.char_start, each.char_end)}


@given(blocked(), sizes)
def test_chunks_cover_the_text_within_the_size(document: NormalizedText, limits: tuple[int, int]) -> None:
    size, overlap = limits
    chunks = chunk(document, size_chars=size, overlap_chars=overlap)
    assert [each.ordinal for each in chunks] == list(range(len(chunks)))
    before = 0
    for each in chunks:
        assert 0 < len(each.text) <= size
        assert each.text.strip()
        assert each.text == document.text[each.char_start : each.char_end]
        fresh = each.char_start + each.overlap_chars
        assert each.overlap_chars <= overlap
        assert fresh >= before
        assert not document.text[before:fresh].strip()
        assert fresh == before or each.overlap_chars == 0
        assert document.text[fresh : each.char_end].strip()
        before = each.char_end
    left_out = set(range(len(document.text))) - covered(chunks)
    assert all(document.text[at].isspace() for at in left_out)


@given(st.text(st.sampled_from("ab語 "), max_size=200), sizes)
def test_without_long_white_space_the_chunks_joined_are_the_text(text: str, limits: tuple[int, int]) -> None:
    text = regex.sub(r"\s+", " ", text).strip()
    size, overlap = limits
    if size < 4:
        return
    chunks = chunk(identity(text), size_chars=size, overlap_chars=overlap)
    assert "".join(each.text[each.overlap_chars :] for each in chunks) == text


@given(blocked(), sizes)
@example(
    identity("# h\nxxxxxx", (Block(BlockKind.HEADING, 0, 4, ("h",)), Block(BlockKind.CODE, 4, 10, ("h",)))), (8, 0)
)
def test_no_cut_goes_through_what_fits(document: NormalizedText, limits: tuple[int, int]) -> None:
    size, overlap = limits
    chunks = chunk(document, size_chars=size, overlap_chars=overlap)
    headings = [block for block in document.blocks if block.kind is BlockKind.HEADING]
    for block in document.blocks:
        if block.kind not in KEPT_WHOLE:
            continue
        # A heading right above counts as part of the block, and so does what a heading goes along with.
        before = max((heading.start for heading in headings if heading.end <= block.start), default=block.start)
        if block.end - block.start > size or (block.end - before > size and before != block.start):
            continue
        visible = document.text[block.start : block.end].rstrip()
        for each in chunks:
            assert not block.start < each.char_end < block.start + len(visible)
            skipped = document.text[block.start : max(each.char_start, block.start)]
            assert not block.start < each.char_start < block.end or not skipped.strip()


@given(blocked(), sizes)
def test_no_chunk_reaches_over_a_heading_with_text_before_it(document: NormalizedText, limits: tuple[int, int]) -> None:
    size, overlap = limits
    chunks = chunk(document, size_chars=size, overlap_chars=overlap)
    bodies = [block for block in document.blocks if block.kind is not BlockKind.HEADING]
    for heading in document.blocks:
        if heading.kind is not BlockKind.HEADING:
            continue
        has_body_before = [body for body in bodies if body.end <= heading.start]
        for each in chunks:
            crossing = each.char_start < heading.start < each.char_end
            assert not crossing or all(body.end <= each.char_start for body in has_body_before)


@given(blocked(), sizes)
def test_a_chunk_has_the_path_of_its_blocks(document: NormalizedText, limits: tuple[int, int]) -> None:
    size, overlap = limits
    for each in chunk(document, size_chars=size, overlap_chars=overlap):
        touched = [b for b in document.blocks if b.start < each.char_end and b.end > each.char_start]
        bodies = [block for block in touched if block.kind is not BlockKind.HEADING]
        assert all(block.heading_path == each.heading_path for block in bodies)
        contexts = [block.context for block in touched if block.context]
        assert each.context == (contexts[0] if contexts else "")


@given(texts, sizes)
def test_the_number_of_chunks_is_bounded(text: str, limits: tuple[int, int]) -> None:
    size, overlap = limits
    chunks = chunk(identity(text), size_chars=size, overlap_chars=overlap)
    assert len(chunks) <= 1 + len(text) / max(size // 4, 1)


@given(texts)
def test_clusters_near_a_place_are_those_of_the_whole_text(text: str) -> None:
    bounds = [0]
    for cluster in regex.findall(r"\X", text):
        bounds.append(bounds[-1] + len(cluster))
    for at in range(len(text) + 1):
        assert boundary_at_or_before(text, at) == max(bound for bound in bounds if bound <= at)
        assert boundary_at_or_after(text, at) == min(bound for bound in bounds if bound >= at)


@st.composite
def sourced(draw: st.DrawFn) -> tuple[NormalizedText, bytes]:
    """A text and its original, which differ: a mark of byte order, CRLF, entities, things left out."""
    charset = draw(st.sampled_from(CHARSETS))
    plain = "utf-8" if charset == "utf-8-sig" else "utf-16-le" if charset == "utf-16" else charset
    letters = st.sampled_from("ab é x") if charset == "windows-1252" else st.sampled_from("ab 語 字x")
    original = "\ufeff" if charset in ("utf-8-sig", "utf-16") else ""
    mark_bytes = len(original.encode(plain))
    text, runs, chars, at_bytes = "", [], 0, mark_bytes
    for kind in draw(st.lists(st.sampled_from(("same", "crlf", "entity", "made")), max_size=8)):
        shown, source = {"crlf": ("\n", "\r\n"), "entity": ("&", "&amp;"), "made": ("\n\n", "")}.get(kind, ("", ""))
        if kind == "same":
            shown = source = draw(st.text(letters, min_size=1, max_size=20))
        size_bytes = len(source.encode(plain))
        runs.append(
            Run(
                len(text),
                len(text) + len(shown),
                chars,
                chars + len(source),
                at_bytes,
                at_bytes + size_bytes,
                kind == "same",
            )
        )
        text, original, chars, at_bytes = text + shown, original + source, chars + len(source), at_bytes + size_bytes
    return NormalizedText(text, tuple(runs), (), charset), original.encode(plain)


@given(sourced(), sizes)
def test_spans_cut_the_original_exactly(document: tuple[NormalizedText, bytes], limits: tuple[int, int]) -> None:
    normalized, original = document
    size, overlap = limits
    plain = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(normalized.charset, normalized.charset)
    decoded = original.decode(plain).removeprefix("\ufeff")
    for each in chunk(normalized, size_chars=size, overlap_chars=overlap):
        assert each.runs[0].text_start == 0
        assert each.runs[-1].text_end == len(each.text)
        for run in each.runs:
            shown = each.text[run.text_start : run.text_end]
            source = original[run.byte_start : run.byte_end].decode(plain)
            assert source == decoded[run.char_start : run.char_end]
            assert run.verbatim == (source == shown)
            assert each.byte_start <= run.byte_start or run.byte_start == run.byte_end
            assert each.byte_end >= run.byte_end or run.byte_start == run.byte_end
        assert original[each.byte_start : each.byte_end].decode(plain) == decoded[each.char_start : each.char_end]


@given(st.randoms(use_true_random=False), sizes)
def test_the_same_document_gives_the_same_chunks(source: random.Random, limits: tuple[int, int]) -> None:
    text = "".join(source.choices("ab \n", k=100))
    size, overlap = limits
    assert chunk(identity(text), size_chars=size, overlap_chars=overlap) == chunk(
        identity(text), size_chars=size, overlap_chars=overlap
    )
