"""Headings: what they bound, what they go along with."""

from __future__ import annotations

from collections.abc import Callable

from services.chunker.domain.chunking import chunk
from services.chunker.domain.document import Block, BlockKind, NormalizedText

CODE, HEADING, PARAGRAPH, RECORD = BlockKind.CODE, BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.RECORD
Compose = Callable[..., NormalizedText]


def cut(document: NormalizedText, size: int = 1_000) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.text, each.heading_path) for each in chunk(document, size_chars=size, overlap_chars=0)]


def test_a_heading_goes_with_its_text(compose: Compose) -> None:
    document = compose(
        (HEADING, "# A\n", ("A",)),
        (PARAGRAPH, "one\n", ("A",)),
        (HEADING, "## B\n", ("A", "B")),
        (PARAGRAPH, "two", ("A", "B")),
    )
    assert cut(document) == [("# A\none\n", ("A",)), ("## B\ntwo", ("A", "B"))]


def test_a_heading_with_nothing_of_its_own_goes_with_the_section_below(compose: Compose) -> None:
    document = compose((HEADING, "# A\n", ("A",)), (HEADING, "## B\n", ("A", "B")), (PARAGRAPH, "two", ("A", "B")))
    assert cut(document) == [("# A\n## B\ntwo", ("A", "B"))]


def test_a_heading_with_nothing_below_is_a_chunk(compose: Compose) -> None:
    document = compose(
        (HEADING, "# A\n", ("A",)), (HEADING, "# B\n", ("B",)), (PARAGRAPH, "two", ("B",)), (HEADING, "# C", ("C",))
    )
    assert cut(document) == [("# A\n", ("A",)), ("# B\ntwo", ("B",)), ("# C", ("C",))]


def test_two_sections_of_one_name_are_two(compose: Compose) -> None:
    document = compose(
        (HEADING, "# A\n", ("A",)), (PARAGRAPH, "one\n", ("A",)), (HEADING, "# A\n", ("A",)), (PARAGRAPH, "two", ("A",))
    )
    assert cut(document) == [("# A\none\n", ("A",)), ("# A\ntwo", ("A",))]


def test_text_before_the_first_heading_is_a_section(compose: Compose) -> None:
    document = compose(
        (None, "\n", ()), (PARAGRAPH, "zero\n", ()), (HEADING, "# A\n", ("A",)), (PARAGRAPH, "one", ("A",))
    )
    assert cut(document) == [("\nzero\n", ()), ("# A\none", ("A",))]


def test_a_long_section_repeats_its_path(compose: Compose) -> None:
    document = compose((HEADING, "# A\n", ("A",)), (PARAGRAPH, "word " * 30, ("A",)))
    chunks = cut(document, 50)
    assert len(chunks) > 2
    assert {path for _, path in chunks} == {("A",)}


def test_records_under_different_paths_are_not_packed(compose: Compose) -> None:
    document = compose((RECORD, "one\n", ("A",)), (RECORD, "two\n", ("A",)), (RECORD, "three\n", ("B",)))
    assert cut(document) == [("one\ntwo\n", ("A",)), ("three\n", ("B",))]


def test_a_heading_never_stays_behind_alone(compose: Compose) -> None:
    document = compose((HEADING, "# Heading\n", ("Heading",)), (CODE, "k" * 20 + "\n" + "k" * 20 + "\n", ("Heading",)))
    assert [text for text, _ in cut(document, 50)] == ["# Heading\n" + "k" * 20 + "\n", "k" * 20 + "\n"]


def test_a_heading_and_a_block_that_fit_together_stay_together(compose: Compose) -> None:
    document = compose(
        (HEADING, "# H\n", ("H",)), (CODE, "k k k k k k\n", ("H",)), (PARAGRAPH, "some more words to read", ("H",))
    )
    assert cut(document, 17)[0] == ("# H\nk k k k k k\n", ("H",))


def test_an_oversized_block_inside_another_counts_once() -> None:
    text = "line of words\n" * 10
    blocks = (Block(BlockKind.LIST, 0, len(text)), Block(CODE, 14, len(text) - 14))
    chunks = chunk(NormalizedText(text, (), blocks), size_chars=50, overlap_chars=0)
    assert all(each.text.endswith("words\n") for each in chunks)


def test_g01_comments_in_a_fence_bound_nothing(compose: Compose) -> None:
    fence = "```bash\n# fetch the package\nrelayctl fetch --channel stable\n# start the service\nrelayctl up\n```\n"
    top, sub = ("Installing the relay",), ("Installing the relay", "Removing the relay")
    document = compose(
        (HEADING, "# Installing the relay\n", top),
        (None, "\n", ()),
        (PARAGRAPH, "Run the steps below.\n", top),
        (None, "\n", ()),
        (CODE, fence, top),
        (None, "\n", ()),
        (PARAGRAPH, "The relay listens on port 7443.\n", top),
        (None, "\n", ()),
        (HEADING, "## Removing the relay\n", sub),
        (None, "\n", ()),
        (PARAGRAPH, "Run `relayctl purge`.\n", sub),
    )
    for size in (100, 120, 150, 1_000):
        chunks = cut(document, size)
        assert {path for _, path in chunks} == {top, sub}
        assert [text.count("```") for text, _ in chunks if "```" in text] == [2]
        assert next(path for text, path in chunks if "7443" in text) == top
